/** The writer's end of a link with a front: counts messages sent and acknowledged, and waits for the front's lag to end. */

import { Watermark } from '../watermark.ts'
import type { Link } from './link/link.ts'
import type { MessageToFront } from './messages.ts'

export class FrontLink {
  readonly link: Pick<Link, 'send' | 'sendSoon'>
  #sent = 0
  #askedAt = 0
  /** Messages sent at the last two ticks, oldest first. */
  #sentAtTicks: readonly [number, number] = [0, 0]
  readonly #acknowledged = new Watermark()
  /** The writer has given up waiting for messages up to here. */
  #givenUp = 0

  constructor(link: Pick<Link, 'send' | 'sendSoon'>) {
    this.link = link
  }

  send(message: MessageToFront): void {
    this.#sent += 1
    this.link.send(message)
  }

  /** As `send`, but it may wait some milliseconds for the next message. */
  sendSoon(message: MessageToFront): void {
    this.#sent += 1
    this.link.sendSoon(message)
  }

  onAcknowledged(count: number): void {
    this.#acknowledged.reach(count)
  }

  /** Call this when its link is lost. */
  onLost(): void {
    this.onAcknowledged(Number.POSITIVE_INFINITY)
  }

  /** Releases waits older than two ticks. */
  onTick(): void {
    const [oldest, last] = this.#sentAtTicks
    if (this.#acknowledged.giveUp(oldest)) this.#givenUp = oldest
    this.#sentAtTicks = [last, this.#sent]
  }

  /** It still lacks messages that the writer has given up on. */
  get isLate(): boolean {
    return this.#acknowledged.reached < this.#givenUp
  }

  get isAwaited(): boolean {
    return this.#acknowledged.isAwaited
  }

  /** Resolves when it has acknowledged all messages sent so far; undefined where it has. */
  caughtUp(): Promise<void> | undefined {
    const count = this.#sent
    if (this.#acknowledged.reached >= count) return undefined
    if (this.#askedAt < count) {
      this.#askedAt = count
      this.link.send({ kind: 'barrier' } satisfies MessageToFront)
    }
    return this.#acknowledged.wait(count)
  }
}
