/**
 * The fronts of a writer, as it waits for them: those of its machine, which hear of changes from this process, and those of
 * other nodes, which have a copy of the store. A client that is answered finds what it changed at every front.
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

  /** Its link is lost. One that only fell silent is waited for until its copy is too old to be read. */
  leave(front: FrontLink, isSilent: boolean): void {
    this.#near.delete(front)
    this.#far.delete(front)
    if (isSilent) this.#silent.add(front)
    else front.onLost()
  }

  /**
   * Resolves when no front shows an older checkpoint any more, or none that counts: reads of the log wait there until this one is
   * published, which is for the caller to do then.
   */
  async announce(head: LogHead): Promise<void> {
    // Reads wait for as long as a message takes, not for as long as the slowest copy.
    await inTime(this.#far)
    this.#coming = head
    for (const front of this.#all()) this.#announceTo(front)
    await inTime(this.#all())
  }

  /**
   * Resolves when every front shows all that is durable and published by now: a client that is answered then finds it at any
   * front. One that hangs is waited for until its copy is too old to be read: two or three seconds.
   */
  async caughtUp(): Promise<void> {
    await Promise.all(Array.from(this.#all(), front => front.caughtUp()))
  }

  /** Has each front send what its connections have acknowledged, before it acknowledges what comes next. */
  flush(): void {
    for (const front of this.#all()) front.send({ kind: 'flush' })
  }

  /** Resolves when no front of another node reads on the word of this writer, so that another one may follow it. */
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

/** As `caughtUp`, but one that hangs is waited for once: each time it would keep the rest from reading the log. */
async function inTime(fronts: Iterable<FrontLink>): Promise<void> {
  await Promise.all(Array.from(fronts, front => (front.isLate ? undefined : front.caughtUp())))
}

/** Two of them are longer than `COPY_AGE_MS_MAX`. */
const LAG_TICK_MS = 1_100
