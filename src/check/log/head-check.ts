/**
 * The two records of a log: who made it, and its signed checkpoint. The index's output log is checked the same way.
 * The tree determines a checkpoint's text, so the check can name the first wrong byte, up to the signature itself.
 */

import type { INDEX_TABLES } from '../../keyserver/index/index-tables.ts'
import { LOG_TABLES, SHOWN } from '../../keyserver/log-store.ts'
import { type Checkpoint, formatCheckpoint, openCheckpoint, parseCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, type Hash } from '../../log/hash.ts'
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from '../../log/note.ts'
import { TILE_WIDTH } from '../../log/tile.ts'
import { indexKey } from '../../store/engine/keys.ts'
import { refusalOfForm } from '../../store/engine/store-form.ts'
import type { Findings } from './fault.ts'
import type { OneRowName, RawLog, RawTiles } from './raw-log.ts'

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

/** Where a log's signed checkpoint is. */
export interface HeadRecord {
  readonly check: 'checkpoint' | 'index-checkpoint'
  readonly table: typeof LOG_TABLES.head | typeof INDEX_TABLES.head
  readonly key: 'head'
}
export const LOG_HEAD: HeadRecord = { check: 'checkpoint', table: LOG_TABLES.head, key: 'head' }

/** The signed checkpoint as it is stored. */
export interface StoredHead {
  readonly record: HeadRecord
  /** The log's key, which verified it. */
  readonly verifier: VerifierKey | undefined
  /** The record's own size, beside the note. */
  readonly recordedSize: unknown
  /** The note's checkpoint; undefined when it is no note. */
  readonly claimed: Checkpoint | undefined
  /** The same, if the log's key has signed it. */
  readonly verified: Checkpoint | undefined
  /** The checkpoint that was shown last, if the key has signed that. */
  readonly shown: Checkpoint | undefined
  readonly recordedShown: unknown
}

export function readHead(raw: RawLog, record: HeadRecord, verifier: VerifierKey | undefined): StoredHead {
  const head = decoded(raw, record.table, record.key)
  const note = noteIn(head)
  const shown = decoded(raw, record.table, SHOWN)
  return {
    record,
    verifier,
    recordedSize: head?.treeSize,
    claimed: claimIn(note),
    verified: verifier && attempt(() => openCheckpoint(note, verifier)),
    shown: verifier && attempt(() => openCheckpoint(noteIn(shown), verifier)),
    recordedShown: shown?.treeSize,
  }
}

/** The checkpoint in a note, its signatures unchecked; undefined when it is no note. */
export function claimIn(note: string): Checkpoint | undefined {
  return attempt(() => parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1)))
}

/** Reports a stored checkpoint that is not that tree's. */
export function judgeHead(
  raw: RawLog,
  head: StoredHead,
  tree: { readonly treeSize: number; readonly rootHash: Hash | undefined },
  findings: Findings,
): void {
  const { record, verifier, recordedSize, claimed, verified } = head
  const fault = (detail: string, offset?: number) =>
    findings.report({ ...record, ...(offset === undefined ? {} : { offset }), detail, isDerived: false })
  checkKeys(raw, record, findings)
  const shown = shownFault(raw, head)
  if (shown !== undefined) findings.report({ ...record, key: SHOWN, detail: shown, isDerived: false })
  const value = raw.recordBytes(record.table, record.key)
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
  { record, verifier, shown, recordedShown, claimed }: StoredHead,
): string | undefined {
  if (raw.recordBytes(record.table, SHOWN) === undefined || verifier === undefined) return undefined
  if (shown === undefined) return 'the checkpoint that was shown is not one of this log'
  if (claimed !== undefined && shown.treeSize > claimed.treeSize)
    return 'a larger tree was shown than is there'
  if (recordedShown !== shown.treeSize)
    return `record says size ${recordedShown}, the checkpoint ${shown.treeSize}`
  return undefined
}

/** Counts entries up to the first gap: the size of a log without a readable checkpoint. */
export function sizeFromBundles(raw: RawTiles): number {
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
export function checkBundleKeys(raw: RawTiles, treeSize: number, findings: Findings): void {
  const bundles = Math.ceil(treeSize / TILE_WIDTH)
  for (const key of raw.keys(raw.entriesAre.table)) {
    const bytes = Buffer.from(key)
    const isIndex = bytes.length === indexKey(0).length
    const index = isIndex ? bytes.readUIntBE(0, bytes.length) : -1
    if (isIndex && index < bundles) continue
    findings.report({
      ...raw.entriesAre,
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
function checkKeys(raw: RawLog, record: typeof MAKER | HeadRecord, findings: Findings): void {
  for (const key of raw.recordKeys(record.table)) {
    if (key === record.key || (record.key === 'head' && key === SHOWN)) continue
    findings.report({ ...record, key, detail: 'no such record belongs here', isDerived: false })
  }
}

/** The members of a record, of whatever kind they are; undefined when it is none. */
export function decoded(
  raw: RawLog,
  table: OneRowName,
  key: string,
): Readonly<Record<string, unknown>> | undefined {
  const record = attempt(() => raw.record(table, key))
  return typeof record === 'object' && record !== null ? { ...record } : undefined
}

function noteIn(record: Readonly<Record<string, unknown>> | undefined): string {
  return typeof record?.checkpoint === 'string' ? record.checkpoint : ''
}

export function parsedKey(vkey: unknown): VerifierKey | undefined {
  return typeof vkey === 'string' ? attempt(() => parseVerifierKey(vkey)) : undefined
}

/** Returns the result of `read`; undefined where it throws. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The base64 of key id and Ed25519 signature. */
const SIGNATURE_CHARS = 92
const MAKER = { check: 'maker', table: LOG_TABLES.maker, key: 'maker' } as const
