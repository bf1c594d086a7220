/**
 * The two records of a log: who made it, and its signed checkpoint. The tree determines a checkpoint's text, so the
 * check can name the first wrong byte, up to the signature itself.
 */

import { LOG_TABLES, SHOWN } from '../../keyserver/log-store.ts'
import { type Checkpoint, formatCheckpoint, openCheckpoint, parseCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, type Hash } from '../../log/hash.ts'
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from '../../log/note.ts'
import { TILE_WIDTH } from '../../log/tile.ts'
import { indexKey } from '../../store/engine/keys.ts'
import { refusalOfForm } from '../../store/engine/store-form.ts'
import type { Findings } from './fault.ts'
import type { OneRowName, RawLog } from './raw-log.ts'

/** Keys that are known from outside the store. */
export interface KnownKeys {
  /** The log's verifier key, where the caller gives one: the maker record has to agree with it. */
  readonly verifier?: VerifierKey
  /** Base64 of the VRF public key. */
  readonly vrfPublicKey?: string
}

/** Why this program can't judge the store's rows: they have another form. Undefined also for a damaged maker record. */
export function refusalOfStore(raw: RawLog): string | undefined {
  const maker = decoded(raw, LOG_TABLES.maker, 'maker')
  return maker && refusalOfForm(maker.storeForm, 'the store')
}

/** The key to verify with: the given one, else the maker record's if that is whole. */
export function checkMaker(raw: RawLog, known: KnownKeys, findings: Findings): VerifierKey | undefined {
  const fault = (detail: string) => findings.report({ ...MAKER, detail, isDerived: false })
  checkKeys(raw, MAKER, findings)
  const maker = decoded(raw, LOG_TABLES.maker, 'maker')
  const refusal = refusalOfStore(raw)
  if (maker === undefined) fault('record is missing or can’t be decoded')
  else if (refusal !== undefined) fault(refusal)
  if (known.vrfPublicKey !== undefined && maker !== undefined && maker.vrfPublicKey !== known.vrfPublicKey) {
    fault('record has another VRF key')
  }
  const stored = parsedKey(maker?.vkey)
  if (maker !== undefined && stored === undefined) fault('record has no whole verifier key')
  if (known.verifier === undefined) return stored
  if (stored !== undefined && formatVerifierKey(stored) !== formatVerifierKey(known.verifier)) {
    fault('record has another verifier key than was given')
  }
  return known.verifier
}

/** The signed checkpoint as it is stored. */
export interface StoredHead {
  /** The log's key, which verified it. */
  readonly verifier: VerifierKey | undefined
  /** The record's own size, beside the note. */
  readonly recordedSize: unknown
  /** The note's checkpoint; undefined when it is no note. */
  readonly claimed: Checkpoint | undefined
  /** The same, if the log's key has signed it. */
  readonly verified: Checkpoint | undefined
}

export function readHead(raw: RawLog, verifier: VerifierKey | undefined): StoredHead {
  const head = decoded(raw, LOG_TABLES.head, 'head')
  const note = typeof head?.checkpoint === 'string' ? head.checkpoint : ''
  return {
    verifier,
    recordedSize: head?.treeSize,
    claimed: attempt(() => parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1))),
    verified: verifier && attempt(() => openCheckpoint(note, verifier)),
  }
}

/** Reports a stored checkpoint that is not that tree's. */
export function judgeHead(
  raw: RawLog,
  { verifier, recordedSize, claimed, verified }: StoredHead,
  tree: { readonly treeSize: number; readonly rootHash: Hash | undefined },
  findings: Findings,
): void {
  const fault = (detail: string, offset?: number) =>
    findings.report({ ...HEAD, ...(offset === undefined ? {} : { offset }), detail, isDerived: false })
  checkKeys(raw, HEAD, findings)
  const shown = shownFault(raw, verifier, claimed)
  if (shown !== undefined) findings.report({ ...HEAD, key: SHOWN, detail: shown, isDerived: false })
  const value = raw.recordBytes(LOG_TABLES.head, 'head')
  if (value === undefined) return fault('record is missing')
  const wrong = firstWrongByte(Buffer.from(value), tree, verifier)
  if (verified === undefined) {
    const reason =
      verifier === undefined ? 'there is no whole verifier key to verify with' : 'signature does not verify'
    fault(claimed === undefined ? 'checkpoint is not one' : reason, wrong)
  } else if (tree.rootHash !== undefined && !equalHashes(verified.rootHash, tree.rootHash)) {
    fault('the signed root is not that of the entries and tiles', wrong)
  } else if (recordedSize !== verified.treeSize) {
    fault(`record says size ${recordedSize}, the checkpoint ${verified.treeSize}`)
  }
}

/** The fault in the head shown last, where witnesses cosign. */
function shownFault(
  raw: RawLog,
  verifier: VerifierKey | undefined,
  head: Checkpoint | undefined,
): string | undefined {
  if (raw.recordBytes(LOG_TABLES.head, SHOWN) === undefined || verifier === undefined) return undefined
  const { checkpoint } = decoded(raw, LOG_TABLES.head, SHOWN) ?? {}
  const shown =
    typeof checkpoint === 'string' ? attempt(() => openCheckpoint(checkpoint, verifier)) : undefined
  if (shown === undefined) return 'the checkpoint that was shown is not one of this log'
  if (head !== undefined && shown.treeSize > head.treeSize) return 'a larger tree was shown than is there'
  return undefined
}

/** Counts entries up to the first gap: the size of a log without a readable checkpoint. */
export function sizeFromBundles(raw: RawLog): number {
  let bundles = 0
  while (raw.bundle(bundles) !== undefined) bundles++
  if (bundles === 0) return 0
  const last = raw.bundle(bundles - 1)!
  let entries = 0
  let at = 0
  while (at + 2 <= last.length && entries < TILE_WIDTH) {
    at += 2 + ((last[at]! << 8) | last[at + 1]!)
    if (at <= last.length) entries++
  }
  return (bundles - 1) * TILE_WIDTH + entries
}

/** Reports bundles beyond the tree. */
export function checkBundleKeys(raw: RawLog, treeSize: number, findings: Findings): void {
  const bundles = Math.ceil(treeSize / TILE_WIDTH)
  for (const key of raw.keys(LOG_TABLES.bundles)) {
    const bytes = Buffer.from(key)
    const isIndex = bytes.length === indexKey(0).length
    const index = isIndex ? bytes.readUIntBE(0, bytes.length) : -1
    if (isIndex && index < bundles) continue
    findings.report({
      check: 'entries',
      table: LOG_TABLES.bundles,
      key: isIndex ? `${index}` : bytes.toString('hex'),
      detail: 'the tree has no such bundle',
      isDerived: false,
    })
  }
}

/**
 * The record's first byte that differs from the text of the tree's checkpoint; where its signature begins, if none
 * does. Undefined when that can't be known.
 */
function firstWrongByte(
  value: Buffer,
  { treeSize, rootHash }: { readonly treeSize: number; readonly rootHash: Hash | undefined },
  verifier: VerifierKey | undefined,
): number | undefined {
  if (verifier === undefined || rootHash === undefined) return undefined
  const text = formatCheckpoint({ origin: verifier.name, treeSize, rootHash, extensions: [] })
  const front = Buffer.from(`${text}\n\u2014 ${verifier.name} `)
  // The note is the last member of the record.
  const start = value.length - front.length - SIGNATURE_CHARS - 1
  if (start < 0) return 0
  let at = 0
  while (at < front.length && value[start + at] === front[at]) at++
  return start + at
}

/** Reports all other records of its table. */
function checkKeys(raw: RawLog, record: typeof MAKER | typeof HEAD, findings: Findings): void {
  for (const key of raw.recordKeys(record.table)) {
    if (key === record.key || (record === HEAD && key === SHOWN)) continue
    findings.report({ ...record, key, detail: 'no such record belongs here', isDerived: false })
  }
}

/** The members of a record, of whatever kind they are; undefined when it is none. */
function decoded(raw: RawLog, table: OneRowName, key: string): Readonly<Record<string, unknown>> | undefined {
  const record = attempt(() => raw.record(table, key))
  return typeof record === 'object' && record !== null ? { ...record } : undefined
}

function parsedKey(vkey: unknown): VerifierKey | undefined {
  return typeof vkey === 'string' ? attempt(() => parseVerifierKey(vkey)) : undefined
}

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The base64 of key id and Ed25519 signature. */
const SIGNATURE_CHARS = 92
const MAKER = { check: 'maker', table: LOG_TABLES.maker, key: 'maker' } as const
const HEAD = { check: 'checkpoint', table: LOG_TABLES.head, key: 'head' } as const
