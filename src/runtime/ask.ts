/**
 * One question and the way back to who asked it. An ask ends exactly once: by the actor's answer or refusal, by its
 * deadline, or by the runtime when the actor that held it is dropped.
 */
import { SignalError } from '../errors.ts'
import type { Reply } from './actor.ts'
import type { Cell } from './cell.ts'
import { Envelope, messageKind } from './envelope.ts'
import type { DeadLetterReason } from './figures.ts'
import type { Internals } from './internals.ts'
import { Pending } from './pending.ts'
import { WheelTimer } from './timers.ts'

/** Is told when an ask that it holds has ended. */
export interface AskHolder {
  forgetAsk(ask: PendingAsk<never>): unknown
}

/** An ask in a mailbox or, once opened, held by the actor that is to answer it. */
export class PendingAsk<Answer> extends Envelope implements Reply<Answer> {
  /** Built around this reply, so it is known only after the reply. */
  content: unknown = undefined
  readonly kind: string
  readonly id: string
  readonly #internals: Internals
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: SignalError) => void
  readonly #deadline = new AskDeadline(this)
  #chain: readonly string[] | undefined
  #holder: AskHolder | undefined = undefined
  #state = OPEN

  constructor(
    internals: Internals,
    address: { readonly kind: string; readonly id: string },
    resolve: (answer: Answer) => void,
    reject: (error: SignalError) => void,
  ) {
    super()
    this.#internals = internals
    this.kind = address.kind
    this.id = address.id
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Sets the clock running. `chain` has the addresses of the asks that led to this one, its own last. */
  start(deadlineMs: number, chain: readonly string[] | undefined): void {
    this.#chain = chain
    this.#internals.underWay.asks += 1
    this.#internals.wheel.arm(this.#deadline, deadlineMs)
  }

  hasMessageFor(): boolean {
    return this.#state === OPEN
  }

  open(cell: Cell): unknown {
    if (this.#state !== OPEN) return this.#toDeadLetters('expired-ask')
    cell.pending ??= new Pending()
    cell.pending.addAsk(this)
    this.#holder = cell.pending
    this.#internals.askChain = this.#chain
    return this.content
  }

  /** An actor of another process is to answer it, by way of `holder`. */
  heldBy(holder: AskHolder): void {
    this.#holder = holder
  }

  answer(answer: Answer): void {
    if (this.#end(ANSWERED)) this.#resolve(answer)
  }

  refuse(error: SignalError): void {
    if (this.#end(ANSWERED)) this.#reject(error)
  }

  /** Refuses in the runtime's name: an answer that still comes is late, not a second one. */
  override discard(error: SignalError): void {
    if (this.#state === OPEN && this.#end(ENDED)) this.#reject(error)
  }

  #end(state: number): boolean {
    if (this.#state !== OPEN) {
      this.#toDeadLetters(this.#state === ANSWERED ? 'duplicate-reply' : 'late-reply')
      return false
    }
    this.#state = state
    this.#internals.wheel.cancel(this.#deadline)
    this.#holder?.forgetAsk(this)
    this.#internals.underWay.asks -= 1
    this.#internals.onEnded()
    return true
  }

  #toDeadLetters(reason: DeadLetterReason): undefined {
    this.#internals.deadLetters.add(reason, this.kind, this.id, messageKind(this))
  }
}

class AskDeadline extends WheelTimer {
  readonly #ask: { discard(error: SignalError): void }

  constructor(ask: { discard(error: SignalError): void }) {
    super()
    this.#ask = ask
  }

  fire(): void {
    this.#ask.discard(new SignalError('DEADLINE_EXCEEDED', 'no answer before the deadline of the ask'))
  }
}

const OPEN = 0
const ANSWERED = 1
const ENDED = 2
