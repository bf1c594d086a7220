/** Every conformance case that octets can tell, in three fragmentations, against the session with all but the sockets. */

import t from 'tap'
import type { MessageOutcome, Outcome, WireCase } from '../stomp/case.ts'
import { CASES } from '../stomp/cases.ts'
import { messagesOf, octetsOf } from '../support/notation.ts'
import { type House, makeHouse, newPerson, type Person } from '../support/session-house.ts'
import { headerIn, type PeerFrame, type StompPeer } from '../support/stomp-peer.ts'

const FRAGMENTATIONS: Record<string, (notation: string) => Buffer[]> = {
  'as written': messagesOf,
  'an octet at a time': notation =>
    Array.from(octetsOf(notation.replaceAll('‖', '')), octet => Buffer.of(octet)),
  'all at once': notation => [octetsOf(notation.replaceAll('‖', ''))],
}

const WIRE_CASES = CASES.filter(each => each.kind === 'wire')

for (const [name, fragment] of Object.entries(FRAGMENTATIONS)) {
  t.test(`every case of octets holds, ${name}`, async t => {
    const house = makeHouse(t)
    const faults: string[] = []
    for (const each of WIRE_CASES) {
      const found = await faultsOf(house, each, fragment)
      if (found.length > 0) faults.push(`${each.id}: ${found.join('; ')}`)
    }
    t.same(faults, [])
    t.ok(WIRE_CASES.length > 130, 'the cases were there')
    t.same(house.failures, [], 'no session failed')
  })
}

async function faultsOf(
  house: House,
  each: WireCase,
  fragment: (notation: string) => Buffer[],
): Promise<string[]> {
  const person = newPerson()
  const witness = await house.connect(newPerson())
  const { peer, messageIds } = await begin(house, person, each.session)
  for (const chunk of fragment(filledIn(each.input, person, messageIds))) {
    peer.write(chunk)
    house.world.run()
  }
  await house.settle()
  const frames = peer.take()
  const faults = each.redelivered === undefined ? outcomeFaults(peer, frames, each.required) : []
  if (each.redelivered !== undefined) {
    faults.push(...(await redeliveryFaults(house, person, peer, each, messageIds)))
  }
  if (witness.isClosed || witness.take().length > 0) faults.push('somebody else noticed')
  for (const one of [peer, witness]) one.drop()
  await house.settle()
  house.peers.length = 0
  return faults
}

/** A client in the state that the case begins with, and the message-ids of m1, m2, ... */
async function begin(
  house: House,
  person: Person,
  session: string,
): Promise<{ peer: StompPeer; messageIds: string[] }> {
  const [, minor] = /^C1([012])/.exec(session) ?? []
  if (minor === undefined) return { peer: house.open(), messageIds: [] }
  const peer = await house.connect(person, `1.${minor}`)
  const [, mode, count] = /\+s1([ci]?)(?:\+(\d)u)?/.exec(session) ?? []
  if (mode === undefined) return { peer, messageIds: [] }
  const destination = count === undefined ? '/topic/dev.t' : '/user/queue/dev.t'
  if (count !== undefined)
    await house.keep(person, 'dev.t', ...Array.from({ length: Number(count) }, () => 'm'))
  peer.write(subscribeFrame(destination, mode))
  await house.settle()
  const given = peer.take()
  if (given.length !== Number(count ?? 0)) throw new Error(`begins with ${given.length} messages`)
  return { peer, messageIds: given.map(frame => headerIn(frame, 'message-id')!) }
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
  house: House,
  person: Person,
  peer: StompPeer,
  { session, redelivered = [] }: WireCase,
  messageIds: readonly string[],
): Promise<string[]> {
  if (peer.isClosed) return [`closed with ${peer.closeCode}`]
  peer.drop()
  await house.settle()
  const next = await house.connect(person, `1.${session[2]}`)
  next.write(subscribeFrame('/user/queue/dev.t', /s1([ci])/.exec(session)?.[1] ?? ''))
  await house.settle()
  const frames = next.take()
  next.drop()
  const faults: string[] = []
  const expected = redelivered.map(name => messageIds[Number(name.slice(1)) - 1])
  const actual = frames.map(frame => headerIn(frame, 'message-id'))
  if (actual.join() !== expected.join()) faults.push(`came again: ${actual} instead of ${expected}`)
  if (frames.some(frame => headerIn(frame, 'redelivered') !== 'true'))
    faults.push('not marked as redelivered')
  return faults
}

function outcomeFaults(peer: StompPeer, frames: PeerFrame[], required: readonly Outcome[]): string[] {
  const faults: string[] = []
  const rest = [...frames]
  for (const outcome of required) {
    switch (outcome.kind) {
      case 'silence':
        break
      case 'closed':
        if (peer.closeCode !== outcome.code) faults.push(`closed with ${peer.closeCode}`)
        break
      default: {
        // The RECEIPT of a SEND and the MESSAGEs it causes come in either order.
        const at = rest.findIndex(({ command }) => command === COMMAND[outcome.kind])
        const [frame] = at < 0 ? [] : rest.splice(at, 1)
        if (frame === undefined) faults.push(`no ${outcome.kind}`)
        else faults.push(...frameFaults(frame, outcome))
        if (outcome.kind === 'refused' && !outcome.close.includes(peer.closeCode ?? 0)) {
          faults.push(`closed with ${peer.closeCode} instead of ${outcome.close}`)
        }
      }
    }
  }
  if (rest.length > 0) faults.push(`${rest.length} frames more: ${rest[0]?.octets}`)
  const endsIt = required.some(({ kind }) => kind === 'refused' || kind === 'closed')
  if (peer.isClosed !== endsIt) faults.push(endsIt ? 'still open' : `closed with ${peer.closeCode}`)
  return faults
}

function frameFaults(frame: PeerFrame, outcome: Exclude<Outcome, { kind: 'closed' | 'silence' }>): string[] {
  const faults: string[] = []
  const expect = (what: string, actual: unknown, expected: unknown) => {
    if (actual !== expected) faults.push(`${what} is ${actual} instead of ${expected}`)
  }
  if (outcome.kind === 'receipt') {
    expect('receipt-id', headerIn(frame, 'receipt-id'), outcome.id)
    return faults
  }
  for (const [name, value] of Object.entries(outcome.headers ?? {}))
    expect(name, headerIn(frame, name), value)
  if (outcome.kind === 'message') return [...faults, ...messageFaults(frame, outcome)]
  for (const name of outcome.has ?? []) expect(`has ${name}`, headerIn(frame, name) !== undefined, true)
  if (outcome.kind === 'connected') expect('version', headerIn(frame, 'version'), outcome.version)
  else faults.push(...errorFaults(frame))
  return faults
}

/** What every ERROR has (contract 7.1). */
function errorFaults(frame: PeerFrame): string[] {
  const faults = ['message', 'code', 'reason', 'retry', 'content-type']
    .filter(name => headerIn(frame, name) === undefined)
    .map(name => `no ${name}`)
  if (headerIn(frame, 'content-length') !== String(frame.body.length)) faults.push('content-length')
  const problem = JSON.parse(frame.body.toString())
  if (String(problem.status) !== headerIn(frame, 'code')) faults.push('the problem has another status')
  if (
    /[\\]/.test(
      frame.octets
        .subarray(0, -frame.body.length - 1)
        .toString()
        .replace(/receipt-id.*/, ''),
    )
  ) {
    faults.push('an escape in a header of ours')
  }
  if (/\.[jt]s:\d|Bearer/.test(frame.octets.toString())) faults.push('says too much')
  return faults
}

function messageFaults(frame: PeerFrame, outcome: MessageOutcome): string[] {
  const { subscription, destination, body, lines = [], without = [], isBinary } = outcome
  const faults: string[] = []
  const wire = frame.octets.toString('latin1').split('\n')
  if (subscription !== undefined && headerIn(frame, 'subscription') !== subscription)
    faults.push('subscription')
  if (destination !== undefined && headerIn(frame, 'destination') !== destination) faults.push('destination')
  if (body !== undefined && !frame.body.equals(octetsOf(body))) faults.push(`body ${frame.body}`)
  if (isBinary !== undefined && frame.isText === isBinary) faults.push(`travels as text: ${frame.isText}`)
  for (const line of lines) {
    if (!wire.includes(octetsOf(line).toString('latin1'))) faults.push(`no line ${line}`)
  }
  for (const name of without) if (headerIn(frame, name) !== undefined) faults.push(`has ${name}`)
  if (!/^[\w-]+$/.test(headerIn(frame, 'message-id') ?? '')) faults.push('message-id')
  return faults
}

const COMMAND = { message: 'MESSAGE', receipt: 'RECEIPT', connected: 'CONNECTED', refused: 'ERROR' } as const
