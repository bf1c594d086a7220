/**
 * The roll-back guard: a log that comes back smaller than something it signed, or with another history, must not sign
 * on, because its next checkpoint would be a second history under the same key. What was signed is known from the head
 * file, from a checkpoint that somebody outside has kept, or from neither; after a restore, neither is not enough.
 */

import { readFileSync } from 'node:fs'
import { messageOf, SignalError } from '../errors.ts'
import { type Checkpoint, openCheckpoint } from '../log/checkpoint.ts'
import { proveConsistency, verifyConsistency } from '../log/consistency.ts'
import { EMPTY_ROOT } from '../log/hash.ts'
import type { VerifierKey } from '../log/note.ts'
import type { ReadHashes } from '../log/tree.ts'
import { hasStore } from '../store/engine/store-files.ts'
import { HeadFile } from './head-file.ts'
import { INDEX_LOG, KEY_LOG, type KeptLog } from './kept-log.ts'
import { type LogStore, openHead } from './log-store.ts'
import { markerPath, type RestoreMarker, readRestoreMarker, removeRestoreMarker } from './restore-marker.ts'

export interface RollBackGuardOptions {
  /** Left out: the log of keys. */
  readonly of?: KeptLog
  readonly dataFolder: string
  readonly verifier: VerifierKey
  /** The value of `CALLSIGN_LOG_HEAD_FILE`. */
  readonly headFile: string | undefined
  /** The value of `--known-checkpoint`, or what the output log of an index has in its place. */
  readonly knownCheckpoint: string | undefined
  /** The newest checkpoint that a node has recorded beside the changes. */
  readonly recordedHead?: string | undefined
  /** Whether nothing will be signed: then a restored copy may be shown unasked, and is asked about at a later start. */
  readonly isFrozen: boolean
  /** Whether there was a log with another key in its place: a head file of another key counts as none, and is written over. */
  readonly takesOver?: boolean
}

/** A checkpoint of this log that was signed before, and where it was found. */
interface Witness {
  readonly where: string
  readonly checkpoint: Checkpoint
}

export class RollBackGuard {
  readonly #options: RollBackGuardOptions
  readonly #of: KeptLog
  readonly #marker: RestoreMarker | undefined
  #headFile: HeadFile | undefined

  /**
   * Looks at what there is to compare with, before the store is opened or made. Throws `CHECKPOINT_INVALID`, with a
   * sentence that says what to do, when any of it is not of this log, or when the data directory can't be the one to
   * go on with.
   */
  constructor(options: RollBackGuardOptions) {
    this.#options = options
    this.#of = options.of ?? KEY_LOG
    this.#marker = readRestoreMarker(options.dataFolder, this.#of)
    const witnesses = this.#readWitnesses()
    if (!hasStore(options.dataFolder)) this.#assertMayBegin(witnesses)
    // Also where an earlier log had another key: the copy may be from before the key changed.
    if (this.#marker !== undefined && !options.isFrozen) this.#assertAnswered(this.#marker, witnesses)
  }

  /** Whether this is the first start after a restore: the store may be older than what clients have seen. */
  get isRestored(): boolean {
    return this.#marker !== undefined
  }

  /**
   * Where checkpoints are to be recorded, if anywhere. A restored copy that is shown frozen is recorded nowhere: the
   * next start would take that record for the answer to the question of the restore.
   */
  get headFile(): HeadFile | undefined {
    return this.#isOnlyShown ? undefined : this.#headFile
  }

  /**
   * Throws `CHECKPOINT_INVALID`, with a sentence that says what to do, unless the stored log extends every checkpoint
   * that is known. A store without a log is an empty one. To be called when nobody else can write to the store any
   * more, and before anything of the log is shown.
   */
  assertExtends(store: Pick<LogStore, 'head' | 'readHashes'>): void {
    const head = store.head()
    const own = head === undefined ? EMPTY_TREE : openHead(head, this.#options.verifier)
    // Read again: a server that was just stopping may have recorded one more checkpoint.
    for (const { where, checkpoint } of this.#readWitnesses()) {
      if (checkpoint.treeSize > own.treeSize) throw this.#older(own.treeSize, where, checkpoint.treeSize)
      try {
        assertGrownFrom(checkpoint, own, store)
      } catch (cause) {
        throw new SignalError(
          'CHECKPOINT_INVALID',
          `the ${this.#of.what} in ${this.#options.dataFolder} is not the one of ${where}: their first ${checkpoint.treeSize} ${this.#of.units} differ, so start the data directory that this checkpoint was signed in, and no other${this.#of.orElse}`,
          { cause },
        )
      }
    }
  }

  /** Takes the mark of a restore away, once the log has been found to go on where it was; a frozen one does not go on. */
  async confirm(): Promise<void> {
    if (this.#marker !== undefined && !this.#isOnlyShown)
      await removeRestoreMarker(this.#options.dataFolder, this.#of)
  }

  get #isOnlyShown(): boolean {
    return this.#marker !== undefined && this.#options.isFrozen
  }

  #readWitnesses(): Witness[] {
    const { verifier, headFile, knownCheckpoint, recordedHead, takesOver = false } = this.#options
    const { headFileSuffix, knownFlag } = this.#of
    const path = headFile === undefined ? undefined : headFile + headFileSuffix
    const recorded = recordedHead === undefined ? undefined : openCheckpoint(recordedHead, verifier)
    const name = `CALLSIGN_LOG_HEAD_FILE ${path}`
    this.#headFile =
      path === undefined ? undefined : HeadFile.open(path, verifier, { of: this.#of, name, takesOver })
    return [
      ...witnessOf(name, this.#headFile?.checkpoint),
      ...witnessOf(`${knownFlag} ${knownCheckpoint}`, readKnown(knownCheckpoint, verifier, knownFlag)),
      ...witnessOf('the head in PostgreSQL', recorded),
    ]
  }

  #assertAnswered({ restoredAt, backup }: RestoreMarker, witnesses: readonly Witness[]): void {
    if (witnesses.length > 0) return
    const { dataFolder } = this.#options
    const { what, knownFlag, keySetting } = this.#of
    const ofWhat = this.#of === KEY_LOG ? '' : ` of the ${what}`
    const never =
      this.#of === INDEX_LOG
        ? `; if ${keySetting} is a new key, which has signed none, remove ${markerPath(dataFolder, this.#of)}`
        : ''
    throw new SignalError(
      'CHECKPOINT_INVALID',
      `the data directory ${dataFolder} was restored at ${restoredAt} from ${backup}: start once with ${knownFlag} FILE, the newest checkpoint${ofWhat} that an auditor or a client has seen, so that an older copy does not sign a second history${never}`,
    )
  }

  #assertMayBegin(witnesses: readonly Witness[]): void {
    if (this.#marker !== undefined) {
      throw new SignalError(
        'CHECKPOINT_INVALID',
        `the restore into ${this.#options.dataFolder} did not finish: empty the directory and restore again`,
      )
    }
    for (const { where, checkpoint } of witnesses) {
      if (checkpoint.treeSize > 0) throw this.#older(0, where, checkpoint.treeSize)
    }
  }

  #older(treeSize: number, where: string, knownSize: number): SignalError {
    const { what, units, orElse } = this.#of
    return new SignalError(
      'CHECKPOINT_INVALID',
      `the ${what} in ${this.#options.dataFolder} has ${treeSize} ${units}, but ${where} is its signed checkpoint of ${knownSize}: put a newer copy of the data directory in its place, because this one would sign a second history${orElse}`,
    )
  }
}

/** Throws unless the stored tree begins with the earlier one, which is not larger. */
export function assertGrownFrom(
  earlier: Checkpoint,
  own: Pick<Checkpoint, 'treeSize' | 'rootHash'>,
  { readHashes }: { readonly readHashes: ReadHashes },
): void {
  // Not only the old root from the old tiles: the proof ties it to the root that is signed now.
  verifyConsistency({
    oldSize: earlier.treeSize,
    oldRoot: earlier.rootHash,
    newSize: own.treeSize,
    newRoot: own.rootHash,
    proof: proveConsistency(earlier.treeSize, own.treeSize, readHashes),
  })
}

function witnessOf(where: string, checkpoint: Checkpoint | undefined): Witness[] {
  return checkpoint === undefined ? [] : [{ where, checkpoint }]
}

function readKnown(path: string | undefined, verifier: VerifierKey, flag: string): Checkpoint | undefined {
  if (path === undefined) return undefined
  try {
    return openCheckpoint(noteIn(readFileSync(path, 'utf8')), verifier)
  } catch (cause) {
    const reason = messageOf(cause)
    throw new SignalError(
      'CHECKPOINT_INVALID',
      `${flag} ${path} is not a file with a checkpoint of ${verifier.name} (${reason})`,
      { cause },
    )
  }
}

/** The note itself, or the newest one in a state file of `audit`. */
function noteIn(text: string): string {
  if (!text.startsWith('{')) return text
  const { checkpoints }: { checkpoints?: { note?: unknown }[] } = JSON.parse(text)
  return String(checkpoints?.at(-1)?.note)
}

const EMPTY_TREE = { treeSize: 0, rootHash: EMPTY_ROOT }
