/**
 * What an auditor remembers in files: the checkpoints it has verified, how far an unfinished crawl came, and evidence.
 * The state file moves only to checkpoints that hold; what contradicts it goes into files of its own beside it.
 */

import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { TreeHead } from '../../src/client/tile-consistency.ts'
import { messageOf } from '../../src/errors.ts'
import { decodeBase64, encodeBase64 } from '../../src/log/base64.ts'
import { parseDecimal } from '../../src/log/decimal.ts'
import { HASH_BYTES } from '../../src/log/hash.ts'
import { readNote, type VerifierKey } from '../../src/log/note.ts'
import {
  addCheckpoint,
  type CheckpointState,
  highestCheckpoint,
  type KnownCheckpoint,
  readCheckpointState,
  replaceDurably,
  writeCheckpointState,
} from '../support/checkpoint-state.ts'
import { formatEvidence, judgeEvidence } from './evidence.ts'
import { type AuditFailure, type CheckName, unchecked } from './finding.ts'
import { openHead, type SignedHead } from './history.ts'

/** The last checkpoint that was verified, and since when the log has shown no other one. */
export interface RememberedHead extends SignedHead {
  readonly sinceMs: number
}

/** Two trees that the log signed, without tiles to compare them. */
export interface PendingEvidence {
  /** The check that found it. */
  readonly check: CheckName
  /** The source that showed it; absent for the log itself. */
  readonly url?: string
  readonly known: SignedHead
  readonly seen: SignedHead
}

export class AuditMemory {
  readonly #file: string
  readonly #verifiers: readonly VerifierKey[]
  #state: CheckpointState | undefined
  /** Texts of evidence that was judged already. */
  readonly #judged = new Map<string, boolean>()

  private constructor(file: string, verifiers: readonly VerifierKey[], state: CheckpointState | undefined) {
    this.#file = file
    this.#verifiers = verifiers
    this.#state = state
  }

  /** Throws `AuditFailure` for a file that is of no use, and leaves it as it is, or one that cannot be written. */
  static open(file: string, verifiers: readonly VerifierKey[]): AuditMemory {
    try {
      accessSync(dirname(resolve(file)), constants.W_OK)
      return new AuditMemory(file, verifiers, readCheckpointState(file, { program: PROGRAM, verifiers }))
    } catch (error) {
      throw unchecked('state', messageOf(error))
    }
  }

  get last(): RememberedHead | undefined {
    if (this.#state === undefined) return undefined
    const { treeSize, rootHash, note, verifiedAt } = highestCheckpoint(this.#state)
    return { treeSize, rootHash: decodeBase64(rootHash), note, sinceMs: Date.parse(verifiedAt) }
  }

  /** The tree of that size that was verified, where it is still remembered. */
  verified(size: number): SignedHead | undefined {
    const found = this.#state?.checkpoints.find(({ treeSize }) => treeSize === size)
    if (found === undefined) return undefined
    const { treeSize, rootHash, note } = found
    return { treeSize, rootHash: decodeBase64(rootHash), note }
  }

  /** Whether the log signed these very lines when last read. Foreign signatures do not count. */
  isLast({ note }: SignedHead): boolean {
    const { last } = this
    return last !== undefined && readNote(note).text === readNote(last.note).text
  }

  /** Durable when this returns. Throws `AuditFailure` when the file cannot be written. */
  remember({ treeSize, rootHash, note }: SignedHead, nowMs: number): void {
    const checkpoint: KnownCheckpoint = {
      treeSize,
      rootHash: encodeBase64(rootHash),
      note,
      verifiedAt: new Date(nowMs).toISOString(),
    }
    const state = this.#state ?? { program: PROGRAM, origin: this.#verifiers[0]!.name, checkpoints: [] }
    const next = addCheckpoint(state, checkpoint)
    this.#write(() => writeCheckpointState(this.#file, next))
    this.#state = next
    rmSync(this.#progressFile, { force: true })
  }

  /** Where a crawl was given up, undefined for a new one. It was not signed: what it is worth must be proven. */
  get progress(): TreeHead | undefined {
    try {
      const { treeSize, rootHash } = JSON.parse(readFileSync(this.#progressFile, 'utf8'))
      const head = { treeSize: parseDecimal(treeSize), rootHash: decodeBase64(rootHash) }
      return head.rootHash.length === HASH_BYTES ? head : undefined
    } catch {
      // There is none, or none of use: the crawl begins where the last verified checkpoint ends.
      return undefined
    }
  }

  /** Not durable: a file that is cut off is one of no use, and costs no more than the crawl so far. */
  setProgress({ treeSize, rootHash }: TreeHead): void {
    const progress = { treeSize: String(treeSize), rootHash: encodeBase64(rootHash) }
    this.#write(() => writeFileSync(this.#progressFile, `${JSON.stringify(progress)}\n`))
  }

  /** Evidence that is not decided yet; whatever the log did not sign is none. */
  pending(): PendingEvidence[] {
    const prefix = `${basename(this.#file)}.pending-`
    const folder = dirname(resolve(this.#file))
    const found = namesIn(folder).filter(name => name.startsWith(prefix) && name.endsWith('.json'))
    return found.map(name => this.#readPending(join(folder, name))).filter(kept => kept !== undefined)
  }

  /**
   * Keeps what the log signed until it is decided, once for each tree; returns the name of a new file. Throws
   * `AuditFailure` when it cannot be written, or when there are `PENDING_MAX` already: those are never dropped for it.
   */
  keepPending(evidence: PendingEvidence, detail: string, nowMs: number): string | undefined {
    const file = this.#pendingFile(evidence.seen)
    if (existsSync(file)) return undefined
    if (this.pending().length >= PENDING_MAX) {
      throw unchecked(evidence.check, `${PENDING_MAX} unanswered checkpoints are kept already`)
    }
    const { check, url, known, seen } = evidence
    const notes = [known.note, seen.note]
    const time = new Date(nowMs).toISOString()
    const kept = { verifiers: this.#signersOf(notes), notes, proof: null, time, check, url, detail }
    this.#write(() => replaceDurably(file, formatEvidence(kept)))
    return file
  }

  /** The tree was compared and is of the log's history. */
  dropPending(seen: SignedHead): void {
    this.#write(() => rmSync(this.#pendingFile(seen), { force: true }))
  }

  /** Keeps evidence, contradicting notes unless it is more, in a file of its own and returns its name; the same is kept once. */
  keepEvidence({ finding, evidence }: AuditFailure, nowMs: number): string {
    const { check, detail, url, notes = [], proof = null } = finding
    const file = `${this.#file}.evidence-${digestOf(evidence?.about ?? notes)}.json`
    if (existsSync(file)) return file
    const time = new Date(nowMs).toISOString()
    const contradiction = { verifiers: this.#signersOf(notes), notes, proof, time, check, url, detail }
    this.#write(() => replaceDurably(file, evidence?.text ?? formatEvidence(contradiction)))
    return file
  }

  /** The first key that signed them all; while a log changes its key, each that it has. */
  #signersOf(notes: readonly string[]): readonly VerifierKey[] {
    const signer = this.#verifiers.find(({ name, keyId }) =>
      notes.every(note => readNote(note).signatures.some(each => each.name === name && each.keyId === keyId)),
    )
    return signer === undefined ? this.#verifiers : [signer]
  }

  /** The texts of evidence that proves by itself that one of these keys was misused. */
  provenEvidence(known: readonly VerifierKey[]): readonly string[] {
    const prefix = `${basename(this.#file)}.evidence-`
    const folder = dirname(resolve(this.#file))
    const names = namesIn(folder).filter(name => name.startsWith(prefix) && name.endsWith('.json'))
    const texts = names.slice(0, EVIDENCE_MAX).map(name => textOf(join(folder, name)))
    return texts.filter(text => {
      const isProven = this.#judged.get(text) ?? judgeEvidence(text, known).kind === 'proven'
      this.#judged.set(text, isProven)
      return isProven
    })
  }

  #readPending(file: string): PendingEvidence | undefined {
    try {
      const { check, url, notes } = JSON.parse(readFileSync(file, 'utf8'))
      const [known, seen] = [notes[0], notes[1]].map(note => openHead(Buffer.from(note), this.#verifiers))
      return { check, ...(typeof url === 'string' ? { url } : {}), known: known!, seen: seen! }
    } catch {
      return undefined
    }
  }

  /** One for each tree, however often and by whomever it is shown. */
  #pendingFile({ treeSize, rootHash }: SignedHead): string {
    return `${this.#file}.pending-${digestOf([treeSize, encodeBase64(rootHash)])}.json`
  }

  get #progressFile(): string {
    return `${this.#file}.progress`
  }

  #write(write: () => void): void {
    try {
      write()
    } catch (error) {
      throw unchecked('state', `the state cannot be written: ${messageOf(error)}`)
    }
  }
}

/** Throws `AuditFailure` for a folder that cannot be read: evidence may be in it. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    throw unchecked('state', `the folder of the state file cannot be read: ${messageOf(error)}`)
  }
}

/** Evidence that can't be read proves nothing. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16)
}

const PROGRAM = 'audit'
/** Only the log can sign one, and each costs an audit a comparison. */
const PENDING_MAX = 100
const EVIDENCE_MAX = 100
