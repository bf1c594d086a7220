/**
 * The inbox of one actor: a bounded user lane and an unbounded control lane that overtakes it. An idle actor has
 * none: mailboxes are lent from a pool when a message comes and go back when the last one was taken.
 */

/** A queue in an array that is used round and round; it doubles when full and never shrinks. */
export class Ring<Item> {
  #slots: (Item | undefined)[] = new Array(RING_SLOTS_MIN)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many items fit before it grows. */
  get slots(): number {
    return this.#slots.length
  }

  push(item: Item): void {
    if (this.#length === this.#slots.length) this.#grow()
    this.#slots[(this.#head + this.#length) & (this.#slots.length - 1)] = item
    this.#length += 1
  }

  /** The oldest item, which stays; undefined when empty. */
  peek(): Item | undefined {
    return this.#slots[this.#head]
  }

  /** Takes out the oldest item; undefined when empty. */
  shift(): Item | undefined {
    if (this.#length === 0) return undefined
    const item = this.#slots[this.#head]
    this.#slots[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#slots.length - 1)
    this.#length -= 1
    return item
  }

  #grow(): void {
    const wider: (Item | undefined)[] = new Array(this.#slots.length * 2)
    for (let i = 0; i < this.#length; i++) {
      wider[i] = this.#slots[(this.#head + i) & (this.#slots.length - 1)]
    }
    this.#slots = wider
    this.#head = 0
  }
}

/** Two lanes of messages. Each lane is first in, first out; `undefined` is not a message. */
export class Mailbox {
  readonly #user = new Ring<unknown>()
  #control: Ring<unknown> | undefined = undefined

  /** Messages in both lanes. */
  get length(): number {
    return this.#user.length + (this.#control === undefined ? 0 : this.#control.length)
  }

  /** Slots held in both lanes, for the pool to judge whether to keep it. */
  get slots(): number {
    return this.#user.slots + (this.#control === undefined ? 0 : this.#control.slots)
  }

  /** Puts a message into the user lane; false, and nothing done, when `messagesMax` wait there already. */
  offer(message: unknown, messagesMax: number): boolean {
    if (this.#user.length >= messagesMax) return false
    this.#user.push(message)
    return true
  }

  /** Puts a message into the control lane, which is never full. */
  offerControl(message: unknown): void {
    this.#control ??= new Ring<unknown>()
    this.#control.push(message)
  }

  /** Removes and returns the messages that `isWanted` rejects; the rest keep their order. */
  sift(isWanted: (message: unknown) => boolean): unknown[] {
    const unwanted: unknown[] = []
    for (const lane of [this.#control, this.#user]) {
      for (let left = lane?.length ?? 0; left > 0; left--) {
        const message = lane!.shift()
        if (isWanted(message)) lane!.push(message)
        else unwanted.push(message)
      }
    }
    return unwanted
  }

  /** Takes the next message, control lane first; undefined when both are empty. */
  take(): unknown {
    if (this.#control !== undefined && this.#control.length > 0) return this.#control.shift()
    return this.#user.shift()
  }
}

/** Lends mailboxes. It keeps a bounded number of small ones, so that a burst leaves no memory behind. */
export class MailboxPool {
  readonly #idle: Mailbox[] = []

  borrow(): Mailbox {
    return this.#idle.pop() ?? new Mailbox()
  }

  /** Takes back an empty mailbox. */
  giveBack(mailbox: Mailbox): void {
    if (this.#idle.length < POOL_MAILBOXES_MAX && mailbox.slots <= POOLED_SLOTS_MAX) this.#idle.push(mailbox)
  }
}

/** A power of two, so that positions wrap with a mask. */
const RING_SLOTS_MIN = 8
const POOL_MAILBOXES_MAX = 1_024
const POOLED_SLOTS_MAX = 128
