/**
 * How many messages a second go from `tell` to handled, on the machine's own event loop: one million small messages,
 * told in bursts from outside, to one actor and spread over a thousand. Prints one JSON line per case.
 * It does not show what real handlers cost, nor what a cold process does.
 */
import { cpus } from 'node:os'
import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'

interface Add {
  readonly kind: 'add'
  readonly amount: number
}

const MESSAGES = 1_000_000
const ROUNDS = 5
/** One burst fits every mailbox, even when one actor gets all of it. */
const BURST = 10_000

let sum = 0
let onAllHandled: () => void = () => {}

const system = new ActorSystem({
  world: realWorld(),
  fatal: error => {
    throw error
  },
})
const adder = system.define<Add>({
  kind: 'adder',
  mailboxMessagesMax: BURST,
  onFailure: 'stop-process',
  create: () => ({
    receive(message) {
      sum += message.amount
      if (sum % BURST === 0) onAllHandled()
    },
  }),
})

for (const actors of [1, 1_000]) {
  const refs = Array.from({ length: actors }, (_, i) => adder(`adder-${i}`))
  const perSecond: number[] = []
  for (let round = 0; round < ROUNDS; round++) perSecond.push(await measureRound(refs))
  perSecond.sort((a, b) => a - b)
  const best = perSecond.at(-1)!
  const median = perSecond[Math.floor(ROUNDS / 2)]!
  console.log(
    JSON.stringify({
      bench: 'actor-tell',
      actors,
      messages: MESSAGES,
      rounds: ROUNDS,
      messagesPerSecond: median,
      messagesPerSecondBest: best,
      node: process.version,
      cpu: cpus()[0]?.model,
    }),
  )
}
await system.drainAndStop(1_000)

async function measureRound(refs: readonly Ref<Add>[]): Promise<number> {
  const startMs = performance.now()
  for (let sent = 0; sent < MESSAGES; sent += BURST) {
    const handled = new Promise<void>(resolve => {
      onAllHandled = resolve
    })
    for (let i = 0; i < BURST; i++) {
      if (refs[i % refs.length]!.tell({ kind: 'add', amount: 1 }) !== 'accepted') throw new Error('refused')
    }
    await handled
  }
  return Math.round((MESSAGES / (performance.now() - startMs)) * 1_000)
}
