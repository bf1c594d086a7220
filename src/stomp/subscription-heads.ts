/**
 * Heads of subscriptions, shared by all that are alike: the same version, id, destination and mode, as they are in apps
 * of one kind. An idle connection then holds a reference, and a broadcast sees at once that its octets are the same.
 */
import type { StompVersion } from './frame.ts'
import { SubscriptionHead } from './serializer.ts'

/** A subscription's name, and the start of its MESSAGEs. */
export interface NamedHead {
  /** Undefined for a 1.0 client that gave none. */
  readonly id: string | undefined
  /** As the client spelt it. */
  readonly destination: string
  readonly head: SubscriptionHead
}

export class SubscriptionHeads {
  readonly #heads = new Map<string, NamedHead>()
  readonly #headsMax: number

  /** Remembers so many; the rest are made anew each time. */
  constructor(headsMax: number) {
    this.#headsMax = headsMax
  }

  /** `isAcknowledged`: in one of the modes in which the client acknowledges. */
  of(version: StompVersion, id: string | undefined, destination: string, isAcknowledged: boolean): NamedHead {
    // A header cannot hold NUL, so no two names run into one.
    const key = `${version}${isAcknowledged ? '+' : '-'}${destination}\0${id ?? '\0'}`
    const known = this.#heads.get(key)
    if (known !== undefined) return known
    const head = new SubscriptionHead(version, id, destination, isAcknowledged)
    const named = { id, destination, head }
    if (this.#heads.size < this.#headsMax) this.#heads.set(key, named)
    return named
  }
}
