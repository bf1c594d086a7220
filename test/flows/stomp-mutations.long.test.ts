/**
 * Every conformance case with one octet flipped, left out or doubled, at random, over TCP: the server refuses, closes
 * or answers something valid, always soon, and no other client notices. `CALLSIGN_STOMP_MUTATIONS` says how many.
 */

import t from 'tap'
import type { WireCase } from '../stomp/case.ts'
import { CASES } from '../stomp/cases.ts'
import { errorFaults } from '../stomp/outcome.ts'
import { sendFrame, subscribeFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { octetsOf } from '../support/notation.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import type { SocketClient } from '../support/socket-client.ts'
import { beginCase, type CaseRunner } from '../support/wire-cases.ts'
import { Innocent, WireServer } from '../support/wire-server.ts'

const RUNNERS = 12
const MUTATIONS = Number(process.env.CALLSIGN_STOMP_MUTATIONS ?? 600)
/** The long ones are about lengths, which one octet does not change. */
const CASE_CHARS_MAX = 8_000

const WIRE_CASES = CASES.filter(
  (each): each is WireCase => each.kind === 'wire' && octetsOf(each.input).length < CASE_CHARS_MAX,
)

interface Mutation {
  readonly each: WireCase
  readonly how: 'flipped' | 'left out' | 'doubled'
  /** Where, and which bit, as parts of 1. */
  readonly place: number
  readonly bit: number
}

function* mutations(seed: number): Generator<Mutation> {
  const random = randomFrom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  for (let count = 0; count < MUTATIONS; count++) {
    const how = pick(['flipped', 'left out', 'doubled'] as const)
    yield { each: pick(WIRE_CASES), how, place: random(), bit: Math.floor(random() * 8) }
  }
}

function mutated(octets: Buffer, { how, place, bit }: Mutation): Buffer {
  const at = Math.floor(place * octets.length)
  const [before, rest] = [octets.subarray(0, at), octets.subarray(at)]
  switch (how) {
    case 'flipped':
      return Buffer.concat([before, Buffer.of(rest[0]! ^ (1 << bit)), rest.subarray(1)])
    case 'left out':
      return Buffer.concat([before, rest.subarray(1)])
    case 'doubled':
      return Buffer.concat([before, rest.subarray(0, 1), rest])
  }
}

/** NULs that end whatever frame these octets leave unfinished; between frames they mean nothing. */
function endOfFrame(octets: Buffer): Buffer {
  const lengths = [...octets.toString('latin1').matchAll(/content-length:(\d{1,6})/g)].map(([, n]) =>
    Number(n),
  )
  return Buffer.alloc(2 + Math.max(0, ...lengths))
}

async function faultsOf(runner: CaseRunner, mutation: Mutation): Promise<string[]> {
  const { peer, input } = await beginCase(runner, mutation.each)
  const octets = mutated(octetsOf(input.replaceAll('‖', '')), mutation)
  const topic = `/topic/dev.${runner.letter}`
  const fence = subscribeFrame(topic, 'fence') + sendFrame(topic, 'fence')
  peer.write(Buffer.concat([octets, endOfFrame(octets), Buffer.from(fence)]))
  const isFence = (frame: { readonly body: Buffer }) => String(frame.body) === 'fence'
  await peer.until(() => peer.isClosed || peer.frames.some(isFence))
  const faults = frameFaults(peer)
  peer.destroy()
  return faults.map(fault => `${fault}, after ${JSON.stringify(octets.toString('latin1'))}`)
}

function frameFaults({ frames, isClosed }: SocketClient): string[] {
  const faults: string[] = []
  for (const [at, frame] of frames.entries()) {
    if (frame.command !== 'ERROR') continue
    faults.push(...errorFaults(frame))
    if (at < frames.length - 1) faults.push('something comes after an ERROR')
    if (headerOf(frame, 'code') === '500') faults.push('a fault of ours')
    if (!isClosed) faults.push('open after an ERROR')
  }
  return faults
}

t.test(`${MUTATIONS} cases with one octet changed`, async t => {
  const server = await WireServer.start(t, { people: RUNNERS + 2 })
  const innocents = [await Innocent.join(server, 'websocket'), await Innocent.join(server, 'tcp')]
  const devices = await server.devices(RUNNERS)
  const seed = seedOf()
  const waiting = mutations(seed)
  const faults: string[] = []
  const work = async (device: (typeof devices)[number], at: number) => {
    const runner = { server, carrier: 'tcp', device, letter: String.fromCharCode(97 + at) } as const
    for (const mutation of waiting) {
      const { each, how, place } = mutation
      const found = await faultsOf(runner, mutation).catch(error => [`${error}`])
      if (found.length > 0) faults.push(`${each.id}, ${how} at ${place}: ${found.join('; ')}`)
      if (place < 0.01) for (const innocent of innocents) await innocent.round()
    }
  }
  await Promise.all(devices.map(work))
  t.same(faults, [], `seed ${seed}`)
  for (const innocent of innocents) await innocent.leave(t)
  t.same(server.faults(), [], `seed ${seed}`)
  t.equal(await server.figure('callsign_actor_restarts_total{kind="stomp-connection"}'), 0)
})
