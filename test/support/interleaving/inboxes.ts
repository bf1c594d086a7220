/**
 * An inbox hears of news only once until it looks: a writer puts an item in, sets a flag, and tells the inbox when
 * the flag was not set; the reader clears it and then reads.
 */
import type { Actor, Context, Ref } from '../../../src/runtime/actor.ts'
import { Deferred } from '../deferred.ts'
import type { Action, Part, Stage } from './stage.ts'

interface Shelf {
  readonly items: number[]
  hasNews: boolean
}

type InboxMessage =
  | { readonly kind: 'news' }
  | { readonly kind: 'read'; readonly items: readonly number[] }
  | { readonly kind: 'read-failed' }

interface Read {
  readonly items: readonly number[]
  readonly done: Deferred<readonly number[]>
}

class Inbox implements Actor<InboxMessage> {
  readonly #inboxes: Inboxes
  readonly #context: Context<InboxMessage>
  #isReading = false
  #mustReadAgain = false

  constructor(inboxes: Inboxes, context: Context<InboxMessage>) {
    this.#inboxes = inboxes
    this.#context = context
  }

  receive(message: InboxMessage): void {
    switch (message.kind) {
      case 'news':
        if (this.#isReading) this.#mustReadAgain = true
        else this.#read()
        return
      case 'read':
        return this.#onRead(message.items)
      case 'read-failed':
        this.#isReading = false
        return this.#read()
    }
  }

  #read(): void {
    this.#isReading = true
    this.#mustReadAgain = false
    const { shelf, stage } = this.#inboxes
    // Cleared before the read begins: a message after its snapshot sets it again and wakes the actor.
    if (stage.bug !== 'lost wake-up') shelf.hasNews = false
    this.#context.tellOutcome(
      this.#inboxes.startRead(),
      items => ({ kind: 'read', items }),
      () => ({ kind: 'read-failed' }),
    )
  }

  #onRead(items: readonly number[]): void {
    this.#isReading = false
    const { shelf, stage } = this.#inboxes
    if (stage.bug === 'lost wake-up') shelf.hasNews = false
    this.#inboxes.onDelivered(items)
    if (this.#mustReadAgain) this.#read()
  }
}

export class Inboxes implements Part {
  readonly stage: Stage
  readonly shelf: Shelf = { items: [], hasNews: false }
  readonly #inbox: Ref<InboxMessage>
  readonly #reads: Read[] = []
  readonly #delivered: number[] = []
  #items = 0

  constructor(stage: Stage) {
    this.stage = stage
    this.#inbox = stage.system.define<InboxMessage>({
      kind: 'inbox',
      mailboxMessagesMax: 1,
      onFailure: 'rebuild',
      idleMs: 300,
      create: (_id, context) => new Inbox(this, context),
    })('i')
  }

  /** Slow work that ends with the items of this moment. */
  startRead(): Deferred<readonly number[]> {
    const read = { items: [...this.shelf.items], done: new Deferred<readonly number[]>() }
    this.#reads.push(read)
    return read.done
  }

  onDelivered(items: readonly number[]): void {
    this.stage.note(`delivered ${items}`)
    this.#delivered.push(...items)
    this.shelf.items.splice(0, items.length)
  }

  actions(): Action[] {
    const settle = this.#reads.length === 0 ? [] : [() => this.#settle(), () => this.#settle()]
    return [() => this.#put(), ...settle]
  }

  settleAll(): void {
    while (this.#reads.length > 0) this.#settle()
  }

  isAtRest(): boolean {
    return this.#reads.length === 0
  }

  check(): void {
    const expected = Array.from({ length: this.#items }, (_, i) => i)
    if (expected.join() !== this.#delivered.join()) {
      this.stage.violate(`of ${this.#items} items ${this.#delivered} were delivered`)
    }
  }

  #put(): void {
    this.shelf.items.push(this.#items++)
    this.stage.note(`put, ${this.shelf.hasNews ? 'flag set already' : 'tell'}`)
    if (this.shelf.hasNews) return
    // A full mailbox has news in it already.
    this.shelf.hasNews = true
    this.#inbox.tell({ kind: 'news' })
  }

  #settle(): void {
    const read = this.#reads.shift()!
    const fails = !this.stage.areFaultsOver && this.stage.draw.chance(0.1)
    this.stage.note(fails ? 'read failed' : `read ${read.items}`)
    if (fails) read.done.reject(new Error('injected'))
    else read.done.resolve(read.items)
  }
}
