/**
 * A writer's fronts, as it waits for them. Fronts of its machine hear of changes from this process; fronts of other
 * nodes have a copy of the store. A client with an answer finds its change at every front.
 */

import type { LogHead } from '../log/checkpoint.ts'
import type { World } from '../runtime/clock.ts'
import type { FrontLink } from './front-link.ts'

/** The log as the writer publishes it. */
interface Published {
  /** Undefined before the first checkpoint. */
  readonly size: number | undefined
  readonly head: LogHead
  subscribe(onPublished: () => void): void
}

export class FrontLinks {
  readonly #published: Published
  /** Fronts of this machine. */
  readonly #near = new Set<FrontLink>()
  /** Fronts of other nodes. */
  readonly #far = new Set<FrontLink>()
  /** Fronts of other nodes that may read for as long as their leases last, though their links are lost. */
  readonly #lost = new Set<FrontLink>()
  /** The last checkpoint that was announced. */
  #coming: LogHead | undefined
  #isOver = false

  constructor(published: Published, { every }: Pick<World, 'every'>) {
    this.#published = published
    // Fronts of this machine hear it from their parent process, which may not be the writer.
    published.subscribe(() => {
      for (const front of this.#far) front.send({ kind: 'published', head: published.head })
    })
    every(TICK_MS, () => {
      for (const front of this.#all()) {
        front.onTick()
        if (!front.mayRead) this.#lost.delete(front)
      }
    })
  }

  joinNear(front: FrontLink): void {
    this.#near.add(front)
    this.#announceTo(front)
  }

  joinFar(front: FrontLink): void {
    this.#far.add(front)
    front.send({ kind: 'published', head: this.#published.head })
    this.#announceTo(front)
  }

  /** The front's link is lost; where the front itself may not be, the writer waits until its read lease has ended. */
  leave(front: FrontLink, isGone: boolean): void {
    this.#near.delete(front)
    if (!this.#far.delete(front) || isGone) return front.onGone()
    front.onLinkLost()
    this.#lost.add(front)
  }

  /**
   * Resolves when no front shows an older checkpoint: reads of the log wait there until this one is published. The
   * caller publishes it then.
   */
  async announce(head: LogHead): Promise<void> {
    // Far fronts catch up first: reads then wait for a message, not for the slowest copy.
    await caughtUp([...this.#far, ...this.#lost])
    this.#coming = head
    for (const front of this.#linked()) this.#announceTo(front)
    await this.caughtUp()
  }

  /**
   * Resolves when every front that may read shows all that is durable and published: a client with an answer finds it at
   * any front. One that does not answer is waited for until its read lease has ended.
   */
  async caughtUp(): Promise<void> {
    if (!this.#isOver) await caughtUp(this.#all())
  }

  /** Ends all waits for fronts: this process is no longer the writer, and those that waited have to look. */
  end(): void {
    this.#isOver = true
    for (const front of this.#all()) front.endWaits()
  }

  /** Has each front report its connections' acknowledgements before it acknowledges the next message. */
  flush(): void {
    for (const front of this.#linked()) front.send({ kind: 'flush' })
  }

  /** Resolves when no front of another node has a read lease from this writer, so that the next writer may begin. */
  async endReadLeases(): Promise<void> {
    await Promise.all(Array.from([...this.#far, ...this.#lost], front => front.endReadLease()))
  }

  /** One for each linked front. */
  figures(): readonly Pick<FrontLink, 'name' | 'lagMs' | 'waitedMs'>[] {
    return [...this.#linked()]
  }

  #announceTo(front: FrontLink): void {
    const head = this.#coming
    if (head === undefined || head.treeSize <= (this.#published.size ?? 0)) return
    front.send({ kind: 'published', head, isComing: true })
  }

  *#linked(): Iterable<FrontLink> {
    yield* this.#near
    yield* this.#far
  }

  *#all(): Iterable<FrontLink> {
    yield* this.#linked()
    yield* this.#lost
  }
}

async function caughtUp(fronts: Iterable<FrontLink>): Promise<void> {
  await Promise.all(Array.from(fronts, front => front.caughtUp()))
}

/** By so much a wait may outlast a read lease. */
const TICK_MS = 100
