/** A front at the other end of a link: what it was told, and how much of that it has heeded. */

import type { Link } from './link/link.ts'
import type { SaidByWriter } from './messages.ts'

export class ToldFront {
  readonly link: Pick<Link, 'say' | 'saySoon'>
  #said = 0
  #askedAt = 0
  /** At the two ticks before, oldest first. */
  #saidAtTicks: readonly [number, number] = [0, 0]
  #heard = 0
  /** Up to here it was not waited for any more. */
  #givenUp = 0
  /** In the order of what they wait for. */
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []

  constructor(link: Pick<Link, 'say' | 'saySoon'>) {
    this.link = link
  }

  say(said: SaidByWriter): void {
    this.#said += 1
    this.link.say(said)
  }

  /** As `say`, but it may wait some milliseconds for the next word. */
  saySoon(said: SaidByWriter): void {
    this.#said += 1
    this.link.saySoon(said)
  }

  onHeard(count: number): void {
    this.#heard = count
    this.#release(count)
  }

  /** Call this when its link is lost. */
  onLost(): void {
    this.onHeard(Number.POSITIVE_INFINITY)
  }

  /** Releases all that have waited for two ticks, and some of the third. */
  onTick(): void {
    const [oldest, last] = this.#saidAtTicks
    if (this.#release(oldest) && this.#heard < oldest) this.#givenUp = oldest
    this.#saidAtTicks = [last, this.#said]
  }

  /** It has not heeded yet what it was given up on. */
  get isLate(): boolean {
    return this.#heard < this.#givenUp
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  /** Whether there was anything to release. */
  #release(count: number): boolean {
    const before = this.#waiting.length
    while (this.#waiting.length > 0 && this.#waiting[0]!.count <= count) this.#waiting.shift()!.resolve()
    return this.#waiting.length < before
  }

  /** Resolves when it has heeded all that was said so far; undefined where it has. */
  caughtUp(): Promise<void> | undefined {
    const count = this.#said
    if (this.#heard >= count) return undefined
    if (this.#askedAt < count) {
      this.#askedAt = count
      this.link.say({ kind: 'how-far' } satisfies SaidByWriter)
    }
    return new Promise(resolve => this.#waiting.push({ count, resolve }))
  }
}
