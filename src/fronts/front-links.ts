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
  /** Fronts of other nodes that fell silent: they may serve for a moment more. */
  readonly #silent = new Set<FrontLink>()
  /** The last checkpoint that was announced. */
  #coming: LogHead | undefined

  constructor(published: Published, { every }: Pick<World, 'every'>) {
    this.#published = published
    // Fronts of this machine hear it from their parent process, which may not be the writer.
    published.subscribe(() => {
      for (const front of this.#far) front.send({ kind: 'published', head: published.head })
    })
    every(LAG_TICK_MS, () => {
      for (const front of [...this.#all(), ...this.#silent]) front.onTick()
      for (const front of this.#silent) if (!front.isAwaited) this.#silent.delete(front)
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

  /** The front's link is lost. The writer waits for a silent one until its copy is too old to read. */
  leave(front: FrontLink, isSilent: boolean): void {
    this.#near.delete(front)
    this.#far.delete(front)
    if (isSilent) this.#silent.add(front)
    else front.onLost()
  }

  /**
   * Resolves when no front in time shows an older checkpoint: reads of the log wait there until this one is published.
   * The caller publishes it then.
   */
  async announce(head: LogHead): Promise<void> {
    // Far fronts catch up first: reads then wait for a message, not for the slowest copy.
    await inTime(this.#far)
    this.#coming = head
    for (const front of this.#all()) this.#announceTo(front)
    await inTime(this.#all())
  }

  /**
   * Resolves when every front shows all that is durable and published: a client with an answer finds it at any front.
   * Waits for a front that hangs until its copy is too old to read: two or three seconds.
   */
  async caughtUp(): Promise<void> {
    await Promise.all(Array.from(this.#all(), front => front.caughtUp()))
  }

  /** Has each front report its connections' acknowledgements before it acknowledges the next message. */
  flush(): void {
    for (const front of this.#all()) front.send({ kind: 'flush' })
  }

  /** Resolves when no front of another node has a read lease from this writer, so that the next writer may begin. */
  async endReadLeases(): Promise<void> {
    for (const front of this.#far) front.send({ kind: 'read-lease', askedAtMs: undefined })
    await Promise.all(Array.from(this.#far, front => front.caughtUp()))
  }

  #announceTo(front: FrontLink): void {
    const head = this.#coming
    if (head === undefined || head.treeSize <= (this.#published.size ?? 0)) return
    front.send({ kind: 'published', head, isComing: true })
  }

  *#all(): Iterable<FrontLink> {
    yield* this.#near
    yield* this.#far
  }
}

/** As `caughtUp`, but waits for a front that hangs only once: each time would keep the rest from reading the log. */
async function inTime(fronts: Iterable<FrontLink>): Promise<void> {
  await Promise.all(Array.from(fronts, front => (front.isLate ? undefined : front.caughtUp())))
}

/** Two ticks are longer than `COPY_AGE_MS_MAX`. */
const LAG_TICK_MS = 1_100
