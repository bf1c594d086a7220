/** The address that senders hold. It finds the live actor behind it anew whenever the one it knew has ended. */
import { SignalError } from '../errors.ts'
import type { Ref, Reply, TellResult } from './actor.ts'
import { PendingAsk } from './ask.ts'
import type { Cell } from './cell.ts'
import { messageKind } from './envelope.ts'
import type { Refusal } from './figures.ts'
import type { Internals } from './internals.ts'

export class ActorRef implements Ref<unknown> {
  readonly kind: string
  readonly id: string
  readonly #internals: Internals
  #cell: Cell | undefined = undefined

  constructor(internals: Internals, kind: string, id: string) {
    this.kind = kind
    this.id = id
    this.#internals = internals
  }

  tell(message: unknown): TellResult {
    const refusal = this.#offer(message)
    if (refusal === undefined) return 'accepted'
    this.#internals.deadLetters.add(refusal, this.kind, this.id, messageKind(message))
    return 'overloaded'
  }

  tellControl(message: unknown): void {
    const cell = this.#find('control')
    if (typeof cell !== 'string') cell.acceptControl(message)
    else this.#internals.deadLetters.add(cell, this.kind, this.id, messageKind(message))
  }

  tellOr(message: unknown, instead: unknown): void {
    if (this.tell(message) === 'overloaded') this.tellControl(instead)
  }

  ask<Answer>(make: (reply: Reply<Answer>) => unknown, deadlineMs: number): Promise<Answer> {
    const chain = this.#internals.refuseAskCycles ? this.#chain() : undefined
    return new Promise((resolve, reject) => {
      const ask = new PendingAsk<Answer>(this.#internals, this, resolve, reject)
      // Started first: should `make` throw, the ask still ends, at its deadline.
      ask.start(deadlineMs, chain)
      ask.content = make(ask)
      const refusal = this.#offer(ask)
      if (refusal === undefined) return
      this.#internals.deadLetters.add(refusal, this.kind, this.id, messageKind(ask))
      ask.discard(new SignalError(ASK_REFUSED[refusal], `ask of ${this.kind}/${this.id} refused: ${refusal}`))
    })
  }

  #offer(entry: unknown): Refusal | undefined {
    if (this.#internals.stopping && this.#internals.running === undefined) return 'stopped'
    const cell = this.#find('user')
    if (typeof cell === 'string') return cell
    return cell.accept(entry) ? undefined : 'overloaded'
  }

  #find(lane: 'user' | 'control'): Cell | Refusal {
    if (this.#cell !== undefined && !this.#cell.isGone) return this.#cell
    const cell = this.#internals.cellFor(this.kind, this.id, lane)
    this.#cell = typeof cell === 'string' ? undefined : cell
    return cell
  }

  #chain(): readonly string[] {
    const { askChain, running } = this.#internals
    const address = `${this.kind}/${this.id}`
    const before = askChain ?? (running === undefined ? [] : [`${running.kind.name}/${running.id}`])
    const chain = [...before, address]
    if (before.includes(address)) throw new SignalError('INTERNAL', `cycle of asks: ${chain.join(' -> ')}`)
    return chain
  }
}

const ASK_REFUSED = {
  'unknown-kind': 'INTERNAL',
  overloaded: 'OVERLOADED',
  'too-many-actors': 'OVERLOADED',
  stopped: 'STORE_UNAVAILABLE',
  'given-up': 'INTERNAL',
} as const
