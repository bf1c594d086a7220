/**
 * The address of an actor of another process. Messages to it keep their order; the other process counts lost ones.
 * Sending works also while this process's actors stop: they may still have changes to report.
 */
import { SignalError } from '../errors.ts'
import type { Ref, Reply, TellResult } from './actor.ts'
import { PendingAsk } from './ask.ts'
import { messageKind } from './envelope.ts'
import type { Internals } from './internals.ts'
import type { Port } from './port.ts'

export class RemoteRef implements Ref<unknown> {
  readonly kind: string
  readonly id: string
  readonly port: Port
  readonly #internals: Internals

  constructor(internals: Internals, port: Port, kind: string, id: string) {
    this.kind = kind
    this.id = id
    this.port = port
    this.#internals = internals
  }

  /** Whether its process is gone, and it with it. */
  get isLost(): boolean {
    return this.port.isClosed
  }

  /** Accepted means that it is on its way. */
  tell(message: unknown): TellResult {
    return this.#tell(message) ? 'accepted' : 'overloaded'
  }

  tellControl(message: unknown): void {
    if (!this.port.tellControl(this.kind, this.id, message)) this.#toDeadLetters(message)
  }

  tellOr(message: unknown, instead: unknown): void {
    if (!this.#tell(message, instead)) this.tellControl(instead)
  }

  ask<Answer>(make: (reply: Reply<Answer>) => unknown, deadlineMs: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const ask = new PendingAsk<Answer>(this.#internals, this, resolve, reject)
      ask.start(deadlineMs, undefined)
      ask.content = make(ask)
      if (this.port.ask(this.kind, this.id, ask as PendingAsk<never>, deadlineMs)) return
      this.#toDeadLetters(ask)
      ask.discard(
        // Clients read it.
        new SignalError('OVERLOADED', 'the process that answers this can not be reached now: ask again'),
      )
    })
  }

  #tell(message: unknown, instead?: unknown): boolean {
    if (this.port.tell(this.kind, this.id, message, instead)) return true
    this.#toDeadLetters(message)
    return false
  }

  #toDeadLetters(entry: unknown): void {
    this.#internals.deadLetters.add('unreachable', this.kind, this.id, messageKind(entry))
  }
}
