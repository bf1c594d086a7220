/**
 * The log appender: the one writer of the log (exactly one actor, id `log`). It turns waiting registrations into
 * batches and answers each only when a signed checkpoint that covers its index is durable.
 *
 * A batch goes through these steps; beside each, what a crash there leaves.
 *
 *   1. collect    registrations wait in memory: no caller was answered, only the question is lost
 *   2. assign     indexes, in the order of arrival; the same key again gets the index it has: as 1
 *   3. integrate  hash the leaves, extend tiles, bundles and root in memory: as 1
 *   4. sign       a checkpoint of the new size, not shown yet: as 1
 *   5. commit     one change; a crash before it leaves the old tree, one after it the new tree with its signed
 *                 checkpoint, whose entries a repeated registration finds. The change holds what callers write alongside
 *   6. record     the checkpoint goes into the head file, outside the data directory, where there is one. A crash
 *                 before it leaves a store ahead of the file, which start-up finds to be an extension, records and
 *                 publishes; one after it leaves both equal. From here on a store without this tree is refused
 *   7. cosign     a quorum of witnesses, where a policy asks for one, and the cosigned checkpoint becomes durable: see
 *                 `witness-rounds.ts`. After a crash start-up goes on showing the last one that was cosigned
 *   8. publish    other processes hear that the checkpoint comes, and the ledger of a cluster that it is shown; then it and
 *                 the tree become visible together: start-up publishes what 5 and 6 left
 *   9. reply      a caller that heard nothing asks again and gets the same index
 *
 * The next batch is made ready while the last one waits for the disk; its change starts by comparing the
 * committed size, so it can't land without its predecessor. When a commit fails the actor is dropped with all it held
 * and rebuilt from the store. A failure that is not lack of room or the loss of a node's lease, or a lost invariant,
 * stops the process: a log that is unsure of its last tree signs nothing.
 *
 * A head file that can't be written fails the commit for its callers though the tree has grown and is durable. That
 * tree was never shown, so nothing is taken back: the actor is rebuilt on it, records it first of all, and until that
 * is done publishes nothing, answers no caller (a repeated key would get an index that no published checkpoint
 * covers) and appends nothing, so that a head file that stays broken costs at most the batches that were under way.
 *
 * Appending goes on while witnesses cosign, and one round covers all batches before it. While their quorum is missing nothing
 * is appended: callers are refused, and a key that is in the log by then has its index when its caller asks again.
 */

import { assert, SignalError } from '../src/errors.ts'
import { type BatchEntry, type LogBatch, type LogStore, openHead } from '../src/keyserver/log-store.ts'
import {
  APPENDS_WAITING_MAX,
  BATCH_ENTRIES_MAX,
  BATCHES_IN_FLIGHT_MAX,
  KEYS_PER_DEVICE_MAX,
} from '../src/limits.ts'
import { type LogHead, signCheckpoint } from '../src/log/checkpoint.ts'
import { formatEntry, parseEntry } from '../src/log/entry.ts'
import { equalHashes } from '../src/log/hash.ts'
import { TreeTail } from '../src/log/integrate.ts'
import type { SignerKey } from '../src/log/note.ts'
import type { Actor, ActorKind, Context, Reply } from '../src/runtime/actor.ts'
import { nameOfKey } from '../src/store/engine/keys.ts'
import { isOfLostLease, isOutOfSpace } from '../src/store/engine/write-failure.ts'
import type { LogAppenderMessage, LogAppendMessage } from './messages.ts'

export interface LogAppenderDeps {
  readonly store: Pick<
    LogStore,
    'head' | 'openTail' | 'append' | 'newestIndex' | 'identity' | 'entryVolatile'
  >
  readonly signer: SignerKey
  /** Signs, too, while the log changes its key. */
  readonly secondSigner?: SignerKey
  /** Size of the last published tree, undefined before the first. */
  readonly publishedSize: () => number | undefined
  /**
   * Resolves when a durable checkpoint is recorded outside the store; rejects with `STORE_UNAVAILABLE` when it could
   * not be. Left out: there is no head file.
   */
  readonly record?: (head: LogHead) => Promise<void>
  /** Left out: no policy asks for witnesses. */
  readonly witnesses?: {
    /** Takes a head that is durable and recorded. The head with the quorum's cosignatures comes back as `cosigned`. */
    submit(head: LogHead): void
    /** Whether registrations are refused. */
    readonly isQuorumLost: boolean
  }
  /**
   * Resolves when other processes are ready to show a durable checkpoint, undefined where there are none; `publish` is next.
   * Rejects as `record`. Left out: there are no other processes. Cosigned heads are announced before they come here.
   */
  readonly announce?: (head: LogHead) => Promise<void> | undefined
  /** Called with each durable checkpoint, in order, before the registrations it covers are answered. */
  readonly publish: (head: LogHead) => void
  /** Called when the appender can't say what the last tree is; must end the process. */
  readonly fatal: (error: unknown) => void
}

export function logAppenderKind(deps: LogAppenderDeps): ActorKind<LogAppenderMessage> {
  const unrecorded: UnrecordedTree = { treeSize: undefined }
  return {
    kind: 'log-appender',
    mailboxMessagesMax: APPENDS_WAITING_MAX,
    onFailure: 'stop-process',
    create: (_id, context) => new LogAppender(deps, context, unrecorded),
  }
}

/** An appender's legacy to the next: the last tree known to be durable that may not have been recorded or cosigned. */
interface UnrecordedTree {
  treeSize: number | undefined
}

/** An entry with an index that is not durable yet, and who waits for it. */
interface UnpublishedEntry extends BatchEntry {
  /** The VRF hash as a map key: one character a byte. */
  readonly hashText: string
  readonly index: number
  readonly publicKey: string
  readonly waiting: Reply<number>[]
}

/** A batch that is durable, and that no published checkpoint covers. */
interface UnpublishedBatch {
  readonly treeSize: number
  readonly entries: readonly UnpublishedEntry[]
}

class LogAppender implements Actor<LogAppenderMessage> {
  readonly #deps: LogAppenderDeps
  readonly #context: Context<LogAppenderMessage>
  readonly #unrecorded: UnrecordedTree
  readonly #tail: TreeTail
  /** Whether the tree it began with is recorded. */
  #hasBegun = false
  /** Whether the tree it began with is published, before which nothing is appended or answered. */
  #isOpen = false
  #opening: Reply<number>[] = []
  #waiting: LogAppendMessage[] = []
  #batchesInFlight = 0
  #lastAppend: Promise<unknown> = Promise.resolve()
  #hasFailed = false
  #integrateIsDue = false
  /** Oldest first; empty without witnesses. */
  #uncosigned: UnpublishedBatch[] = []
  // The newest entry of each VRF hash (as latin1) in the batches that are being written or cosigned.
  readonly #unpublished = new Map<string, UnpublishedEntry>()

  constructor(deps: LogAppenderDeps, context: Context<LogAppenderMessage>, unrecorded: UnrecordedTree) {
    this.#deps = deps
    this.#context = context
    this.#unrecorded = unrecorded
    const head = deps.store.head()
    if (head === undefined) throw new SignalError('CHECKPOINT_INVALID', 'the log has no signed checkpoint')
    const checkpoint = openHead(head, deps.signer)
    // After a failed commit the store must be where it was: a tree that was never shown may not be durable. Where it
    // is known to be, because only its record failed or it was not cosigned, the store may be ahead.
    assert(this.#isKnownDurable(head), 'the store went on without its writer')
    if (deps.witnesses !== undefined) unrecorded.treeSize = head.treeSize
    this.#tail = new TreeTail(deps.store.openTail(checkpoint.treeSize))
    if (!equalHashes(this.#tail.rootHash(), checkpoint.rootHash)) {
      throw new SignalError(
        'CHECKPOINT_INVALID',
        `the log's tiles of size ${head.treeSize} have another root than its signed checkpoint`,
      )
    }
    const recorded = deps.record?.(head).catch(this.#onRecordFailed)
    const ready = recorded === undefined ? this.#announce(head) : recorded.then(() => this.#announce(head))
    if (ready === undefined) this.#begin(head)
    else context.commit(ready, () => this.#begin(head))
  }

  #isKnownDurable({ treeSize }: LogHead): boolean {
    const publishedSize = this.#deps.publishedSize()
    if (publishedSize === undefined || publishedSize === treeSize) return true
    if (this.#unrecorded.treeSize !== undefined) return this.#unrecorded.treeSize === treeSize
    // At a start the last cosigned tree is shown already.
    return this.#deps.witnesses !== undefined && publishedSize < treeSize
  }

  receive(message: LogAppenderMessage): void {
    switch (message.kind) {
      case 'append':
        return this.#onAppend(message)
      case 'integrate':
        return this.#onIntegrate()
      case 'open':
        return this.#onOpen(message.reply)
      case 'cosigned':
        return this.#onCosigned(message.head)
      case 'quorum-lost':
        return this.#onQuorumLost()
    }
  }

  #onOpen(reply: Reply<number>): void {
    if (this.#hasBegun) reply.answer(this.#deps.publishedSize()!)
    else this.#opening.push(reply)
  }

  /** Shows the tree found in the store, unless witnesses have to see it first, and lets waiting callers in. */
  #begin(head: LogHead): void {
    const { publish, publishedSize, witnesses } = this.#deps
    if (witnesses === undefined) publish(head)
    this.#hasBegun = true
    for (const reply of this.#opening) reply.answer(publishedSize()!)
    this.#opening = []
    this.#openIfShown()
    witnesses?.submit(head)
  }

  #openIfShown(): void {
    if (this.#isOpen || !this.#hasBegun || this.#deps.publishedSize() !== this.#tail.treeSize) return
    this.#isOpen = true
    if (this.#waiting.length > 0) this.#scheduleIntegrate()
  }

  #onCosigned(head: LogHead): void {
    this.#deps.publish(head)
    this.#openIfShown()
    const covered = this.#uncosigned.filter(({ treeSize }) => treeSize <= head.treeSize)
    this.#uncosigned = this.#uncosigned.slice(covered.length)
    for (const { entries } of covered) this.#answer(entries)
    if (this.#waiting.length > 0) this.#scheduleIntegrate()
  }

  #onQuorumLost(): void {
    const batches = this.#uncosigned.flatMap(({ entries }) => entries)
    const callers = [
      ...this.#waiting.map(({ reply }) => reply),
      ...batches.flatMap(({ waiting }) => waiting.splice(0)),
    ]
    this.#waiting = []
    for (const reply of callers) reply.refuse(quorumLost())
  }

  #onAppend(message: LogAppendMessage): void {
    if (this.#deps.witnesses?.isQuorumLost) return message.reply.refuse(quorumLost())
    if (this.#waiting.length >= APPENDS_WAITING_MAX) {
      return message.reply.refuse(new SignalError('OVERLOADED', 'the log has too many registrations waiting'))
    }
    this.#waiting.push(message)
    this.#scheduleIntegrate()
  }

  /** The message goes behind those in the mailbox, so that the batch holds them all. */
  #scheduleIntegrate(): void {
    if (this.#integrateIsDue || !this.#mayIntegrate) return
    // A full mailbox refuses it, but it is full of registrations, and each comes back here.
    this.#integrateIsDue = this.#context.self.tell({ kind: 'integrate' }) === 'accepted'
  }

  get #mayIntegrate(): boolean {
    if (!this.#isOpen || this.#batchesInFlight >= BATCHES_IN_FLIGHT_MAX) return false
    const uncosigned = this.#uncosigned.reduce((total, { entries }) => total + entries.length, 0)
    return uncosigned < ENTRIES_UNCOSIGNED_MAX && !this.#deps.witnesses?.isQuorumLost
  }

  #onIntegrate(): void {
    this.#integrateIsDue = false
    if (!this.#mayIntegrate) return
    const collected = this.#waiting.slice(0, BATCH_ENTRIES_MAX)
    this.#waiting = this.#waiting.slice(BATCH_ENTRIES_MAX)

    const firstIndex = this.#tail.treeSize
    const entries: UnpublishedEntry[] = []
    for (const append of collected) {
      const entry = this.#assign(append, firstIndex + entries.length)
      if (entry !== undefined) entries.push(entry)
    }
    if (entries.length > 0) this.#append(firstIndex, entries)
    if (this.#waiting.length > 0) this.#scheduleIntegrate()
  }

  #append(firstIndex: number, entries: readonly UnpublishedEntry[]): void {
    const texts = entries.map(({ vrfHash, publicKey }) => formatEntry(vrfHash, publicKey))
    const integration = this.#tail.integrate(texts)
    assert(integration.treeSize === firstIndex + entries.length, 'the tree grew by the batch')
    const checkpoint = signCheckpoint(integration, this.#deps.signer, this.#deps.secondSigner)
    this.#commit({ firstIndex, entries, integration, checkpoint }, entries)
  }

  /** Answers or joins a registration of the newest key, refuses one too many, else gives it `index`. */
  #assign(append: LogAppendMessage, index: number): UnpublishedEntry | undefined {
    const { userId, deviceId, vrfHash, publicKey, alongside, reply } = append
    const hashText = nameOfKey(vrfHash)
    const unpublished = this.#unpublished.get(hashText)
    if (unpublished?.publicKey === publicKey) {
      unpublished.waiting.push(reply)
      return undefined
    }
    const newest = unpublished ?? this.#storedKey(vrfHash)
    if (newest?.publicKey === publicKey) {
      reply.answer(newest.index)
      return undefined
    }
    const earlierKeys = newest === undefined ? 0 : newest.earlierKeys + 1
    if (earlierKeys >= KEYS_PER_DEVICE_MAX) {
      reply.refuse(new SignalError('TOO_MANY_KEYS', `the device has ${earlierKeys} keys in the log`))
      return undefined
    }
    const entry: UnpublishedEntry = {
      userId,
      deviceId,
      previousIndex: newest?.index,
      earlierKeys,
      vrfHash,
      alongside,
      hashText,
      index,
      publicKey,
      waiting: [reply],
    }
    this.#unpublished.set(hashText, entry)
    return entry
  }

  #storedKey(vrfHash: Uint8Array): Pick<UnpublishedEntry, 'index' | 'publicKey' | 'earlierKeys'> | undefined {
    const { store } = this.#deps
    const index = store.newestIndex(vrfHash)
    if (index === undefined) return undefined
    const entry = parseEntry(store.entryVolatile(index))
    // The index knows 16 bytes of a hash; another hash that shares them is not this device.
    if (!equalHashes(entry.vrfHash, vrfHash)) return undefined
    const identity = store.identity(index)
    assert(identity !== undefined, 'every leaf has an identity record')
    return { index, publicKey: entry.publicKey, earlierKeys: identity.earlierKeys }
  }

  #commit(batch: LogBatch, entries: readonly UnpublishedEntry[]): void {
    this.#batchesInFlight++
    const head = { treeSize: batch.integration.treeSize, checkpoint: batch.checkpoint }
    const predecessor = this.#lastAppend
    const appended = this.#deps.store.append(batch)
    this.#lastAppend = appended
    const durable = appended.then(
      () => this.#record(head),
      error => this.#onAppendFailed(error, predecessor),
    )
    const ready = durable.then(() => this.#announce(head))
    this.#context.commit(ready, () => this.#onCommitted(head, entries))
  }

  /** Witnesses see a head first. */
  #announce(head: LogHead): Promise<void> | undefined {
    return this.#deps.witnesses === undefined
      ? this.#deps.announce?.(head)?.catch(this.#onRecordFailed)
      : undefined
  }

  /** A later batch that becomes durable behind a failed one is left alone: the next appender object stops over it. */
  #record(head: LogHead): Promise<void> | undefined {
    const { record, witnesses } = this.#deps
    if ((record === undefined && witnesses === undefined) || this.#hasFailed) return undefined
    this.#unrecorded.treeSize = head.treeSize
    return record?.(head).catch(this.#onRecordFailed)
  }

  async #onAppendFailed(error: unknown, predecessor: Promise<unknown>): Promise<never> {
    this.#hasFailed = true
    // A batch behind one that failed meets another tree than it was made for: then that one's reason counts.
    await predecessor
    if (!isOutOfSpace(error) && !isOfLostLease(error)) this.#deps.fatal(error)
    throw error
  }

  readonly #onRecordFailed = (error: unknown): never => {
    if (!(error instanceof SignalError) || error.code !== 'STORE_UNAVAILABLE') this.#deps.fatal(error)
    throw error
  }

  #onCommitted(head: LogHead, entries: readonly UnpublishedEntry[]): void {
    this.#batchesInFlight--
    const { publish, witnesses } = this.#deps
    if (witnesses === undefined) {
      publish(head)
      this.#answer(entries)
    } else {
      this.#uncosigned.push({ treeSize: head.treeSize, entries })
      witnesses.submit(head)
      if (witnesses.isQuorumLost) this.#onQuorumLost()
    }
    if (this.#waiting.length > 0) this.#scheduleIntegrate()
  }

  #answer(entries: readonly UnpublishedEntry[]): void {
    for (const entry of entries) {
      if (this.#unpublished.get(entry.hashText) === entry) this.#unpublished.delete(entry.hashText)
      for (const reply of entry.waiting) reply.answer(entry.index)
    }
  }
}

function quorumLost(): SignalError {
  return new SignalError('LOG_UNAVAILABLE', 'the log’s witnesses do not answer: ask again later')
}

/** Their callers wait for the round under way. */
const ENTRIES_UNCOSIGNED_MAX = 4 * APPENDS_WAITING_MAX
