/**
 * Every conformance case that octets can tell, over real sockets against the built server: WebSocket in three
 * fragmentations, and TCP. One server for all of them. Each worker has a topic of its own, whose name is as long as
 * that in the cases, and beside each a witness must see only published messages.
 */

import t from 'tap'
import type { WireCase } from '../stomp/case.ts'
import { CASES } from '../stomp/cases.ts'
import { outcomeFaults } from '../stomp/outcome.ts'
import { type ClientFrame, sendFrame, subscribeFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { FRAGMENTATIONS, octetsOf } from '../support/notation.ts'
import type { Carrier, SocketClient } from '../support/socket-client.ts'
import { ackLine, beginCase, type CaseRunner } from '../support/wire-cases.ts'
import { type WireDevice, WireServer } from '../support/wire-server.ts'

const WIRE_CASES = CASES.filter(each => each.kind === 'wire')
const WORKERS = 16
/** Octets that complete a case's unfinished frame, to show that it had no effect before. */
const UNFINISHED: Readonly<Record<string, string>> = { 'A-10': 'later␀' }

interface Worker extends CaseRunner {
  /** Subscribed to the runner's topic, and to nothing else. */
  readonly witness: SocketClient
}

async function startWorkers(server: WireServer, carrier: Carrier, devices: readonly WireDevice[]) {
  const workers = Array.from({ length: WORKERS }, async (_, at): Promise<Worker> => {
    const witness = await server.connect(carrier, devices[WORKERS + at]!)
    const letter = String.fromCharCode(97 + at)
    await witness.subscribe(`/topic/dev.${letter}`)
    return { server, carrier, device: devices[at]!, letter, witness }
  })
  return Promise.all(workers)
}

async function faultsOf(
  worker: Worker,
  each: WireCase,
  fragment: (notation: string) => Buffer[],
): Promise<string[]> {
  const { peer, queue, messageIds, input } = await beginCase(worker, each)
  peer.writeAll(fragment(input))
  const endsIt = each.required.some(({ kind }) => kind === 'refused' || kind === 'closed')
  if (endsIt) await peer.closed()
  else await fence(worker, peer, each.id)
  const faults = each.redelivered === undefined ? ownFaults(worker, peer, each) : []
  if (each.redelivered !== undefined)
    faults.push(...(await redeliveryFaults(worker, peer, each, messageIds, queue)))
  if (!endsIt && each.redelivered === undefined) {
    const late = await peer.disconnect()
    if (late.length > 0) faults.push(`afterwards came ${late[0]?.octets}`)
  }
  const witnessed = await takeWitnessed(worker)
  return endsIt ? [...faults, ...witnessed.map(({ octets }) => `somebody else saw ${octets}`)] : faults
}

/** Resolves when all that was written has had its effects; what shows it is taken out of the frames again. */
async function fence({ letter }: Worker, peer: SocketClient, id: string): Promise<void> {
  const rest = UNFINISHED[id]
  if (rest !== undefined) {
    peer.write(octetsOf(rest))
    const frame = await peer.message()
    if (!frame.body.equals(octetsOf(`abc␀${rest}`).subarray(0, -1)))
      throw new Error(`a body of ${frame.body}`)
  }
  const topic = `/topic/dev.${letter}`
  peer.write(subscribeFrame(topic, 'fence') + sendFrame(topic, FENCE, 'receipt:fence\n'))
  await peer.frame(frame => isFence(frame) && headerOf(frame, 'subscription') === 'fence')
  for (const id of ['sub-fence', 'fence']) await peer.receipt(id)
  const others = peer.take().filter(frame => !isFence(frame))
  peer.frames.push(...others)
}

function isFence({ body }: ClientFrame): boolean {
  return body.toString('latin1') === FENCE
}

function ownFaults({ carrier, letter }: Worker, peer: SocketClient, { required }: WireCase): string[] {
  const end = !peer.isClosed ? 'open' : carrier === 'tcp' ? 'codeless' : peer.closeCode!
  const expected = required.map(outcome =>
    outcome.kind === 'message' && outcome.destination === '/topic/dev.t'
      ? { ...outcome, destination: `/topic/dev.${letter}` }
      : outcome,
  )
  const isTorn = carrier === 'tcp' && peer.closeCode === 1006
  return [...outcomeFaults(peer.take(), end, expected), ...(isTorn ? ['the connection broke'] : [])]
}

async function redeliveryFaults(
  { server, carrier, device }: Worker,
  peer: SocketClient,
  { session, redelivered = [] }: WireCase,
  messageIds: readonly string[],
  queue: string,
): Promise<string[]> {
  peer.destroy()
  const next = await server.connect(carrier, device, `1.${session[2]}`)
  const mode = /s1([ci])/.exec(session)?.[1] ?? ''
  await next.subscribe(queue, 's1', ackLine(mode))
  await next.send(queue, 'last')
  await next.frame(({ body }) => String(body) === 'last')
  const frames = next.take()
  next.destroy()
  const expected = redelivered.map(name => messageIds[Number(name.slice(1)) - 1])
  const actual = frames.map(frame => headerOf(frame, 'message-id'))
  const faults: string[] = []
  if (actual.join() !== expected.join()) faults.push(`came again: ${actual} instead of ${expected}`)
  if (frames.some(frame => headerOf(frame, 'redelivered') !== 'true'))
    faults.push('not marked as redelivered')
  return faults
}

/** The frames that the witness saw; none from a connection that was ended. */
async function takeWitnessed({ witness, letter }: Worker): Promise<ClientFrame[]> {
  await witness.send(`/topic/dev.${letter}`, WITNESS)
  await witness.frame(({ body }) => String(body) === WITNESS)
  return witness.take()
}

const FENCE = 'fence of the case'
const WITNESS = 'word of the witness'

t.test('the conformance cases over sockets', async t => {
  const server = await WireServer.open(t, { people: 2 * WORKERS })
  const devices = await server.devices(2 * WORKERS)
  const ways = [
    ...Object.entries(FRAGMENTATIONS).map(([name, fragment]) => ['websocket', name, fragment] as const),
    ['tcp', 'as written', FRAGMENTATIONS['as written']!] as const,
  ]
  for (const [carrier, name, fragment] of ways) {
    t.test(`hold over ${carrier}, ${name}`, async t => {
      const workers = await startWorkers(server, carrier, devices)
      const waiting = [...WIRE_CASES]
      const faults: string[] = []
      const work = async (worker: Worker) => {
        for (let each = waiting.shift(); each !== undefined; each = waiting.shift()) {
          const { id } = each
          const found = await faultsOf(worker, each, fragment).catch(error => [`${error}`])
          if (found.length > 0) faults.push(`${id}: ${found.join('; ')}`)
        }
        await worker.witness.disconnect()
      }
      await Promise.all(workers.map(work))
      t.same(faults, [])
      t.ok(WIRE_CASES.length > 130, 'the cases were there')
      t.same(server.faults(), [])
    })
  }
})
