/** Every conformance case that octets can tell, in three fragmentations, against the session with all but the sockets. */

import t from 'tap'
import type { WireCase } from '../stomp/case.ts'
import { CASES } from '../stomp/cases.ts'
import { outcomeFaults } from '../stomp/outcome.ts'
import type { MemoryClient } from '../support/memory-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { FRAGMENTATIONS } from '../support/notation.ts'
import { newPerson, openTestActors, type Person, type TestActors } from '../support/test-actors.ts'

const WIRE_CASES = CASES.filter(each => each.kind === 'wire')

for (const [name, fragment] of Object.entries(FRAGMENTATIONS)) {
  t.test(`every case of octets holds, ${name}`, async t => {
    const actors = openTestActors(t)
    const faults: string[] = []
    for (const each of WIRE_CASES) {
      const found = await faultsOf(actors, each, fragment)
      if (found.length > 0) faults.push(`${each.id}: ${found.join('; ')}`)
    }
    t.same(faults, [])
    t.ok(WIRE_CASES.length > 130, 'the cases were there')
    t.same(actors.failures, [], 'no session failed')
  })
}

async function faultsOf(
  actors: TestActors,
  each: WireCase,
  fragment: (notation: string) => Buffer[],
): Promise<string[]> {
  const person = newPerson()
  const witness = await actors.connect(newPerson())
  const { peer, messageIds } = await begin(actors, person, each.session)
  for (const chunk of fragment(filledIn(each.input, person, messageIds))) {
    peer.write(chunk)
    actors.world.run()
  }
  await actors.settle()
  const frames = peer.take()
  const faults =
    each.redelivered === undefined ? outcomeFaults(frames, peer.closeCode ?? 'open', each.required) : []
  if (each.redelivered !== undefined) {
    faults.push(...(await redeliveryFaults(actors, person, peer, each, messageIds)))
  }
  if (witness.isClosed || witness.take().length > 0) faults.push('somebody else noticed')
  for (const one of [peer, witness]) one.drop()
  await actors.settle()
  actors.peers.length = 0
  return faults
}

/** A client in the state that the case begins with, and the message-ids of m1, m2, ... */
async function begin(
  actors: TestActors,
  person: Person,
  session: string,
): Promise<{ peer: MemoryClient; messageIds: string[] }> {
  const [, minor] = /^C1([012])/.exec(session) ?? []
  if (minor === undefined) return { peer: actors.open(), messageIds: [] }
  const peer = await actors.connect(person, `1.${minor}`)
  const [, mode, count] = /\+s1([ci]?)(?:\+(\d)u)?/.exec(session) ?? []
  if (mode === undefined) return { peer, messageIds: [] }
  const destination = count === undefined ? '/topic/dev.t' : '/user/queue/dev.t'
  if (count !== undefined)
    await actors.keep(person, 'dev.t', ...Array.from({ length: Number(count) }, () => 'm'))
  peer.write(subscribeFrame(destination, mode))
  await actors.settle()
  const given = peer.take()
  if (given.length !== Number(count ?? 0)) throw new Error(`begins with ${given.length} messages`)
  return { peer, messageIds: given.map(frame => headerOf(frame, 'message-id')!) }
}

function subscribeFrame(destination: string, mode: string): string {
  const ack = { '': 'auto', c: 'client', i: 'client-individual' }[mode]
  return `SUBSCRIBE\nid:s1\ndestination:${destination}\nack:${ack}\n\n\0`
}

function filledIn(input: string, { token, userId }: Person, messageIds: readonly string[]): string {
  return input
    .replaceAll('<creds>', `Authorization:Bearer ${token}`)
    .replaceAll('<tok>', token)
    .replaceAll('<user>', String(userId))
    .replaceAll(/<m(\d)(?: ack)?>/g, (_, number: string) => messageIds[Number(number) - 1]!)
}

async function redeliveryFaults(
  actors: TestActors,
  person: Person,
  peer: MemoryClient,
  { session, redelivered = [] }: WireCase,
  messageIds: readonly string[],
): Promise<string[]> {
  if (peer.isClosed) return [`closed with ${peer.closeCode}`]
  peer.drop()
  await actors.settle()
  const next = await actors.connect(person, `1.${session[2]}`)
  next.write(subscribeFrame('/user/queue/dev.t', /s1([ci])/.exec(session)?.[1] ?? ''))
  await actors.settle()
  const frames = next.take()
  next.drop()
  const faults: string[] = []
  const expected = redelivered.map(name => messageIds[Number(name.slice(1)) - 1])
  const actual = frames.map(frame => headerOf(frame, 'message-id'))
  if (actual.join() !== expected.join()) faults.push(`came again: ${actual} instead of ${expected}`)
  if (frames.some(frame => headerOf(frame, 'redelivered') !== 'true'))
    faults.push('not marked as redelivered')
  return faults
}
