/**
 * In a front: which checkpoint it shows, and when. No client may see the tree shrink by asking another front. So every
 * front knows of a new checkpoint before any process shows it, and holds reads of the log until it is published.
 * Earlier reads were answered before any client saw it.
 */

import type { LogHead } from '../log/checkpoint.ts'
import type { World } from '../runtime/clock.ts'
import { Watermark } from '../watermark.ts'
import type { WriterPlace } from './messages.ts'
import type { ReadLease } from './read-lease.ts'

export interface ShownLogDeps {
  /** Size of the checkpoint that is shown, undefined before the first. */
  readonly size: () => number | undefined
  readonly show: (head: LogHead) => void
  readonly lease: Pick<ReadLease, 'mayRead'> | undefined
  readonly world: Pick<World, 'every'>
}

export class ShownLog {
  readonly #deps: ShownLogDeps
  /** The store of this machine has at least this head. A copy may have it before the writer publishes it. */
  #stored: LogHead
  #isWriterHere = false
  #comingSize = 0
  /** Size of the tree that is shown. */
  readonly #shown = new Watermark()
  #stopWaiting = () => {}

  constructor(deps: ShownLogDeps, stored: LogHead) {
    this.#deps = deps
    this.#stored = stored
  }

  /** The writer's place, as the front's parent process reports it. */
  goTo(writer: WriterPlace | undefined): void {
    this.#isWriterHere = writer === 'here'
    if (this.#isWriterHere) this.#show(this.#stored)
  }

  /** The front's parent process has stored or announced a head. */
  onStored(head: LogHead, isComing: boolean): void {
    if (this.#isWriterHere) return this.onPublished(head, isComing)
    this.#stored = head
  }

  /** The writer has announced or published a head. */
  onPublished(head: LogHead, isComing: boolean): void {
    if (isComing) this.#await(head.treeSize)
    else this.#show(head)
  }

  /** The writer may never publish the checkpoint that it announced. */
  onWriterLost(): void {
    this.#giveUp()
  }

  /** Undefined where the log may be read now; else resolves when it may. Throws and rejects as `ReadLease.mayRead`. */
  mayRead(): Promise<void> | undefined {
    const size = this.#comingSize
    if (size <= this.#shownSize) return this.#mayReadStore()
    return this.#shown.wait(size).then(() => this.#mayReadStore())
  }

  #mayReadStore(): Promise<void> | undefined {
    // Without a lease the copy counts: by then it has every head that any process may have shown.
    return this.#deps.lease?.mayRead()?.then(() => this.#show(this.#stored))
  }

  get #shownSize(): number {
    return this.#deps.size() ?? 0
  }

  #await(size: number): void {
    if (size <= this.#shownSize || size <= this.#comingSize) return
    this.#comingSize = size
    this.#stopWaiting()
    this.#stopWaiting = this.#deps.world.every(COMING_MS_MAX, () => this.#giveUp())
  }

  #show(head: LogHead): void {
    // A copy without a lease may have shown more than the writer that it reaches again.
    if (head.treeSize >= this.#shownSize) this.#deps.show(head)
    const size = this.#shownSize
    if (size >= this.#comingSize) this.#endWait()
    this.#shown.reach(size)
  }

  /** Lets all reads go on. */
  #giveUp(): void {
    this.#endWait()
    this.#shown.giveUp(Number.POSITIVE_INFINITY)
  }

  #endWait(): void {
    this.#comingSize = 0
    this.#stopWaiting()
  }
}

/**
 * A writer that announces a checkpoint and can't publish it delays reads no longer. Less than this it waits for fronts, and
 * asks PostgreSQL, before it gives up its lease, whether that has the head: from there another node may show it.
 */
const COMING_MS_MAX = 20_000
