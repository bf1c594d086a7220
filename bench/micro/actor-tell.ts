/**
 * How many messages a second go from `tell` to handled, on the machine's own event loop: small messages, told in
 * bursts from outside, to one actor and spread over a thousand; held against a plain array that a microtask drains.
 */

import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import type { Benchmark, BenchmarkContext, Row } from '../support/benchmark.ts'
import { interleaved, medianOfMany } from '../support/rounds.ts'
import { mean } from '../support/statistics.ts'

const TELL: Row = {
  name: 'actor-tell',
  project: 'tell to handled',
  limit: 'a plain array drained in a microtask',
  unit: 'messages/s',
  goal: { of: 'project', is: 'at least', value: 2_000_000 },
  notShown:
    'Handlers that add a number cost nothing; real ones, and a process that has just started, cost more.',
}

interface Add {
  readonly kind: 'add'
  readonly amount: number
}

const MESSAGES = 1_000_000
const MESSAGES_SMOKE = 20_000
/** One burst fits every mailbox, even when one actor gets all of it. */
const BURST = 10_000

export const actorTell: Benchmark = { name: 'actor-tell', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, isSmoke } = context.scale
  const messages = isSmoke ? MESSAGES_SMOKE : MESSAGES
  const adders = new Adders()
  context.after(() => adders.end())
  const queue = new PlainQueue()
  for (const actors of [1, 1_000]) {
    const refs = Array.from({ length: actors }, (_, i) => adders.ref(`adder-${i}`))
    for (const round of context.rounds()) {
      const { limit, project } = await interleaved(
        round,
        turns,
        () => medianOfMany(() => messagesPerSecond(messages, () => queue.burst())),
        () => medianOfMany(() => messagesPerSecond(messages, () => adders.burst(refs))),
      )
      context.record(TELL, round, {
        limit: mean(limit),
        project: mean(project),
        parameters: { actors, messages },
      })
    }
  }
}

async function messagesPerSecond(messages: number, burst: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  for (let sent = 0; sent < messages; sent += BURST) await burst()
  return (messages / (performance.now() - startMs)) * 1000
}

class Adders {
  readonly #system: ActorSystem
  readonly ref: (id: string) => Ref<Add>
  #sum = 0
  #onAllHandled: () => void = () => {}

  constructor() {
    const fatal = (error: unknown) => {
      throw error
    }
    this.#system = new ActorSystem({ world: realWorld(), fatal })
    this.ref = this.#system.define<Add>({
      kind: 'adder',
      mailboxMessagesMax: BURST,
      onFailure: 'stop-process',
      create: () => ({ receive: message => this.#onAdd(message) }),
    })
  }

  burst(refs: readonly Ref<Add>[]): Promise<void> {
    const handled = new Promise<void>(resolve => {
      this.#onAllHandled = resolve
    })
    for (let i = 0; i < BURST; i++) {
      if (refs[i % refs.length]!.tell({ kind: 'add', amount: 1 }) !== 'accepted') throw new Error('refused')
    }
    return handled
  }

  async end(): Promise<void> {
    await this.#system.drainAndStop(1_000)
  }

  #onAdd({ amount }: Add): void {
    this.#sum += amount
    if (this.#sum % BURST === 0) this.#onAllHandled()
  }
}

class PlainQueue {
  #messages: Add[] = []
  #sum = 0

  burst(): Promise<void> {
    return new Promise(resolve => {
      queueMicrotask(() => {
        for (const { amount } of this.#messages) this.#sum += amount
        this.#messages = []
        resolve()
      })
      for (let i = 0; i < BURST; i++) this.#messages.push({ kind: 'add', amount: 1 })
    })
  }
}
