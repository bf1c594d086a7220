/**
 * The newest checkpoint that a node has shown, or its copy has had: on disk before any client sees it, in the data
 * directory and in the head file. A ledger that does not extend it has lost acknowledged entries, as after
 * the promotion of a standby that lagged. The node neither writes to such a ledger nor copies it, because its next checkpoint
 * would be a second history.
 */

import { join } from 'node:path'
import { messageOf, SignalError } from '../errors.ts'
import { type Checkpoint, type LogHead, openCheckpoint } from '../log/checkpoint.ts'
import { equalHashes } from '../log/hash.ts'
import type { VerifierKey } from '../log/note.ts'
import { HeadFile } from './head-file.ts'
import { KEY_LOG, type KeptLog } from './kept-log.ts'
import { type LogStore, openHead } from './log-store.ts'
import { assertGrownFrom } from './roll-back-guard.ts'

export class ShownHeads {
  readonly #of: KeptLog
  readonly #verifier: VerifierKey
  readonly #files: readonly HeadFile[]
  #newest: LogHead | undefined

  private constructor(
    of: KeptLog,
    verifier: VerifierKey,
    files: readonly HeadFile[],
    newest: LogHead | undefined,
  ) {
    this.#of = of
    this.#verifier = verifier
    this.#files = files
    this.#newest = newest
  }

  /**
   * `headFile` is the value of `CALLSIGN_LOG_HEAD_FILE`. Throws `CHECKPOINT_INVALID` where a file is not of this log; an index
   * takes over from one with another key.
   */
  static open(
    dataFolder: string,
    headFile: string | undefined,
    verifier: VerifierKey,
    of: KeptLog = KEY_LOG,
  ): ShownHeads {
    const path = join(dataFolder, of.shownHeadFile)
    const use = { of, takesOver: of !== KEY_LOG }
    const files = [HeadFile.open(path, verifier, { ...use, name: path })]
    if (headFile !== undefined) files.push(HeadFile.open(headFile + of.headFileSuffix, verifier, use))
    const [newest] = files
      .flatMap(({ head }) => head ?? [])
      .toSorted((one, other) => other.treeSize - one.treeSize)
    return new ShownHeads(of, verifier, files, newest)
  }

  /**
   * Resolves when this head, or a later one, is on disk. One that is smaller than the newest changes nothing: a copy that
   * catches up meets it again; nor does one of another key, which an index had before it was begun anew. Rejects as
   * `HeadFile.record` does.
   */
  async record(head: LogHead): Promise<void> {
    if (head.treeSize < this.#newestSize || !this.#isOwn(head)) return
    await Promise.all(this.#files.map(file => file.record(head)))
    if (head.treeSize >= this.#newestSize) this.#newest = head
  }

  /** Throws `CHECKPOINT_INVALID`, with a sentence that says what to do, unless the log extends the newest head. */
  assertExtendedBy(store: Pick<LogStore, 'head' | 'readHashes'>): void {
    const shown = this.#openNewest()
    const head = store.head()
    if (shown === undefined) return
    if (head === undefined || head.treeSize < shown.treeSize) throw this.#shorter(head?.treeSize ?? 0, shown)
    try {
      assertGrownFrom(shown, openHead(head, this.#verifier), store)
    } catch (cause) {
      throw this.#refusal(
        `it has other ${this.#of.units} than the ${shown.treeSize} that this node has shown`,
        cause,
      )
    }
  }

  /** The same by the head of a ledger alone: whether a larger tree extends it remains open. */
  assertNotBehind(note: string | undefined): void {
    const shown = this.#openNewest()
    if (shown === undefined) return
    const { treeSize, rootHash } = note === undefined ? EMPTY : this.#open(note)
    if (treeSize < shown.treeSize) throw this.#shorter(treeSize, shown)
    if (treeSize === shown.treeSize && !equalHashes(rootHash, shown.rootHash))
      throw this.#refusal(`it has other ${this.#of.units} than the ${treeSize} that this node has shown`)
  }

  #isOwn({ checkpoint }: LogHead): boolean {
    if (this.#of === KEY_LOG) return true
    try {
      openCheckpoint(checkpoint, this.#verifier)
      return true
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      return false
    }
  }

  get #newestSize(): number {
    return this.#newest?.treeSize ?? 0
  }

  #openNewest(): Checkpoint | undefined {
    return this.#newest === undefined || this.#newestSize === 0
      ? undefined
      : this.#open(this.#newest.checkpoint)
  }

  #open(note: string): Checkpoint {
    try {
      return openCheckpoint(note, this.#verifier)
    } catch (cause) {
      throw this.#refusal(
        `its head is not a checkpoint of ${this.#verifier.name} (${messageOf(cause)})`,
        cause,
      )
    }
  }

  #shorter(treeSize: number, shown: Checkpoint): SignalError {
    const { units } = this.#of
    return this.#refusal(
      `it has ${treeSize} ${units}, and this node has shown its checkpoint of ${shown.treeSize}`,
    )
  }

  #refusal(why: string, cause?: unknown): SignalError {
    const { what, orElse } = this.#of
    const options = cause === undefined ? {} : { cause }
    return new SignalError(
      'CHECKPOINT_INVALID',
      `the ${what} in PostgreSQL is not the one that was shown: ${why}; ${ADVICE}${orElse}`,
      options,
    )
  }
}

const ADVICE =
  'acknowledged changes are lost, as after the promotion of a standby that lagged: put the former primary back; or stop all nodes, empty the database (drop schema callsign cascade), and run `callsign migrate --to postgres` with the data directory of the node whose tree is the largest'
const EMPTY = { treeSize: 0, rootHash: new Uint8Array(32) }
