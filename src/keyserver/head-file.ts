/**
 * The head file: the newest checkpoint of the log, kept outside the data directory and written before anyone sees it.
 * A data directory that is put back to an older copy is then behind its head file, and the server refuses to sign on
 * from there (`roll-back-guard.ts`).
 *
 * It holds the whole signed note and nothing else. Before each write the file is read and compared with the last write:
 * a second server that signs on from a copy of the same log meets the notes of the first one and stops.
 */

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { assert, messageOf, SignalError } from '../errors.ts'
import { type Checkpoint, type LogHead, openCheckpoint } from '../log/checkpoint.ts'
import { formatVerifierKey, statedKeys, type VerifierKey } from '../log/note.ts'
import { writeDurably } from '../store/engine/durable-file.ts'
import { KEY_LOG, type KeptLog } from './kept-log.ts'

export interface HeadFileUse {
  readonly of?: KeptLog
  /** For sentences about it; left out: the setting. */
  readonly name?: string
  /** Whether a note of another key counts as none, and is written over. */
  readonly takesOver?: boolean
  /** For tests. */
  readonly write?: typeof writeDurably
  /** For tests: the pause before the next attempt after one that failed. */
  readonly retryMs?: number
}

export class HeadFile {
  readonly path: string
  /** For sentences about it. */
  readonly #name: string
  /** The checkpoint that it held when it was opened; undefined when there was no such file. */
  readonly checkpoint: Checkpoint | undefined
  /** The head that it held then. */
  readonly head: LogHead | undefined
  readonly #write: typeof writeDurably
  /** The pause before the next attempt after one that failed. */
  readonly #retryMs: number
  #hasFailed = false
  /** The notes that may be in the file; undefined stands for no file. More than one only after a failed write. */
  #possible: Set<string | undefined>
  #newestSize: number
  #writing: Promise<void> = Promise.resolve()
  /** The write that has not begun, and the head it will write. */
  #next: { head: LogHead; readonly written: Promise<void> } | undefined

  private constructor(
    path: string,
    name: string,
    read: { readonly note: string | undefined; readonly checkpoint: Checkpoint | undefined },
    { write = writeDurably, retryMs = RETRY_MS }: HeadFileUse,
  ) {
    const { note, checkpoint } = read
    this.path = path
    this.#name = name
    this.checkpoint = checkpoint
    this.head = checkpoint && { treeSize: checkpoint.treeSize, checkpoint: note! }
    this.#write = write
    this.#retryMs = retryMs
    this.#possible = new Set([note])
    this.#newestSize = checkpoint?.treeSize ?? 0
  }

  /**
   * Reads the file, which need not be there. Throws `CHECKPOINT_INVALID` when it can't be read or is not a checkpoint
   * of the log with that key.
   */
  static open(path: string, verifier: VerifierKey, use: HeadFileUse = {}): HeadFile {
    const { of = KEY_LOG, name = `CALLSIGN_LOG_HEAD_FILE ${path}`, takesOver = false } = use
    const note = readNote(path, name)
    const none = { note, checkpoint: undefined }
    if (note === undefined) return new HeadFile(path, name, none, use)
    try {
      return new HeadFile(path, name, { note, checkpoint: openCheckpoint(note, verifier) }, use)
    } catch (cause) {
      if (takesOver && isOfAnother(note, verifier)) return new HeadFile(path, name, none, use)
      throw new SignalError(
        'CHECKPOINT_INVALID',
        `${name} is not a checkpoint of ${verifier.name} (${messageOf(cause)}): ${adviceOn(note, verifier, of)}`,
        { cause },
      )
    }
  }

  /**
   * Resolves when this head, or a later one, is durable in the file. One write is under way at a time; heads that
   * arrive during it share the next one, which writes the last of them. Rejects with `STORE_UNAVAILABLE` when the file
   * can't be written, and with `CHECKPOINT_INVALID` when someone else has written it. Sizes must not decrease.
   */
  record(head: LogHead): Promise<void> {
    assert(head.treeSize >= this.#newestSize, 'a recorded tree never shrinks')
    this.#newestSize = head.treeSize
    if (this.#next !== undefined) {
      this.#next.head = head
      return this.#next.written
    }
    const written = this.#writing.then(() => this.#writeNext())
    this.#next = { head, written }
    // Whether this write succeeds is for its own callers to hear; the one after it tries again.
    this.#writing = written.catch(() => {})
    return written
  }

  async #writeNext(): Promise<void> {
    // Whoever asks again at once would only keep the process busy: the log appender is rebuilt for each attempt.
    if (this.#hasFailed) await setTimeout(this.#retryMs)
    const { checkpoint } = this.#next!.head
    this.#next = undefined
    try {
      this.#compare(await readFile(this.path, 'utf8').catch(undefinedIfAbsent))
      // From here on a failure leaves the old note or this one.
      this.#possible.add(checkpoint)
      await this.#write(this.path, checkpoint, 0o644)
      this.#possible = new Set([checkpoint])
      this.#hasFailed = false
    } catch (cause) {
      this.#hasFailed = true
      if (cause instanceof SignalError) throw cause
      throw new SignalError('STORE_UNAVAILABLE', `${this.#name} can't be written (${codeOf(cause)})`, {
        cause,
      })
    }
  }

  #compare(note: string | undefined): void {
    if (this.#possible.has(note)) return
    if (note === undefined) {
      throw new SignalError('STORE_UNAVAILABLE', `${this.#name} is gone: put it back`)
    }
    throw new SignalError(
      'CHECKPOINT_INVALID',
      `${this.#name} was changed by someone else: find the other server that signs for this log, and stop the one with the older data directory`,
    )
  }
}

function readNote(path: string, name: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isAbsence(error)) return undefined
    throw new SignalError(
      'CHECKPOINT_INVALID',
      `${name} can't be read (${codeOf(error)}): mend that before the log goes on`,
      { cause: error },
    )
  }
}

/** A whole note of another key tells of a wrong setting at least as often as of a wrong file. */
function adviceOn(note: string, verifier: VerifierKey, { what, keySetting }: KeptLog): string {
  const putBack = `put this ${what}'s own file back there, or name another`
  if (!isOfAnother(note, verifier)) return putBack
  return `it is signed with ${keysIn(note).join(', ')}; if this ${what} was made with that key, set ${keySetting} to it, else ${putBack}`
}

/** Whether it is a whole note, and none of that key. */
function isOfAnother(note: string, verifier: VerifierKey): boolean {
  const vkey = formatVerifierKey(verifier)
  const keys = keysIn(note)
  return keys.length > 0 && !keys.some(key => vkey.startsWith(`${key}+`))
}

function keysIn(note: string): string[] {
  try {
    return statedKeys(note)
  } catch {
    return []
  }
}

function undefinedIfAbsent(error: unknown): undefined {
  if (!isAbsence(error)) throw error
}

function isAbsence(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** The system's short name for what went wrong; the cause has the rest. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}

const RETRY_MS = 500
