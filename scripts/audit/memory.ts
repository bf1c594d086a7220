/**
 * What an auditor remembers in files: the checkpoints it has verified, how far an unfinished crawl came, and evidence.
 * The state file moves only to checkpoints that hold; what contradicts it goes into files of its own beside it.
 */

import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { TreeHead } from '../../src/client/tile-consistency.ts'
import { messageOf } from '../../src/errors.ts'
import { decodeBase64, encodeBase64 } from '../../src/log/base64.ts'
import { parseDecimal } from '../../src/log/decimal.ts'
import { HASH_BYTES } from '../../src/log/hash.ts'
import { openNote, type VerifierKey } from '../../src/log/note.ts'
import {
  addCheckpoint,
  type CheckpointState,
  highestCheckpoint,
  type KnownCheckpoint,
  readCheckpointState,
  replaceDurably,
  writeCheckpointState,
} from '../support/checkpoint-state.ts'
import { unchecked } from './finding.ts'
import type { SignedHead } from './history.ts'

/** The last checkpoint that was verified, and since when the log has shown no other one. */
export interface RememberedHead extends SignedHead {
  readonly sinceMs: number
}

export class AuditMemory {
  readonly #file: string
  readonly #verifier: VerifierKey
  #state: CheckpointState | undefined

  private constructor(file: string, verifier: VerifierKey, state: CheckpointState | undefined) {
    this.#file = file
    this.#verifier = verifier
    this.#state = state
  }

  /** Throws `AuditFailure` for a file that is of no use, and leaves it as it is, or one that cannot be written. */
  static open(file: string, verifier: VerifierKey): AuditMemory {
    try {
      accessSync(dirname(resolve(file)), constants.W_OK)
      return new AuditMemory(file, verifier, readCheckpointState(file, { program: PROGRAM, verifier }))
    } catch (error) {
      throw unchecked('state', messageOf(error))
    }
  }

  get last(): RememberedHead | undefined {
    if (this.#state === undefined) return undefined
    const { treeSize, rootHash, note, verifiedAt } = highestCheckpoint(this.#state)
    return { treeSize, rootHash: decodeBase64(rootHash), note, sinceMs: Date.parse(verifiedAt) }
  }

  /** Whether the log signed these very lines when it was last heard of. Signatures that others add do not count. */
  isLast({ note }: SignedHead): boolean {
    const { last } = this
    return last !== undefined && this.#signedText(note) === this.#signedText(last.note)
  }

  /** Durable when this returns. Throws `AuditFailure` when the file cannot be written. */
  remember({ treeSize, rootHash, note }: SignedHead, nowMs: number): void {
    const checkpoint: KnownCheckpoint = {
      treeSize,
      rootHash: encodeBase64(rootHash),
      note,
      verifiedAt: new Date(nowMs).toISOString(),
    }
    const state = this.#state ?? { program: PROGRAM, origin: this.#verifier.name, checkpoints: [] }
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

  /** Keeps contradicting notes in a file of their own and returns its name; the same notes are kept once. */
  keepEvidence(notes: readonly string[], detail: string, nowMs: number): string {
    const digest = createHash('sha256').update(JSON.stringify(notes)).digest('hex').slice(0, 16)
    const file = `${this.#file}.evidence-${digest}.json`
    const evidence = { time: new Date(nowMs).toISOString(), detail, notes }
    if (!existsSync(file)) this.#write(() => replaceDurably(file, `${JSON.stringify(evidence, null, 2)}\n`))
    return file
  }

  get #progressFile(): string {
    return `${this.#file}.progress`
  }

  #signedText(note: string): string {
    return openNote(note, [this.#verifier]).text
  }

  #write(write: () => void): void {
    try {
      write()
    } catch (error) {
      throw unchecked('state', `the state cannot be written: ${messageOf(error)}`)
    }
  }
}

const PROGRAM = 'audit'
