/** Conformance cases on sockets: a client in the state that a case begins with, and the case's octets made for it. */

import type { WireCase } from '../stomp/case.ts'
import { headerOf } from './naive-stomp.ts'
import type { Carrier, SocketClient } from './socket-client.ts'
import type { WireDevice, WireServer } from './wire-server.ts'

/** A client that runs cases one after the other. */
export interface CaseRunner {
  readonly server: WireServer
  readonly carrier: Carrier
  readonly device: WireDevice
  /** Stands for the t of `/topic/dev.t`, so that runners do not hear one another and frames keep their lengths. */
  readonly letter: string
}

export interface BegunCase {
  readonly peer: SocketClient
  /** Stands for `/user/queue/dev.t`; of this run alone. */
  readonly queue: string
  /** The ids of m1, m2, ... */
  readonly messageIds: readonly string[]
  /** In the notation of cases. */
  readonly input: string
}

let runCount = 0

export async function beginCase(runner: CaseRunner, { session, input }: WireCase): Promise<BegunCase> {
  const queue = `/user/queue/dev.${runner.letter}-${++runCount}`
  const { peer, messageIds } = await begin(runner, session, queue)
  return { peer, queue, messageIds, input: filledIn(runner, input, queue, messageIds) }
}

export function ackLine(mode: string): string {
  return `ack:${{ '': 'auto', c: 'client', i: 'client-individual' }[mode]}\n`
}

async function begin(
  { server, carrier, device, letter }: CaseRunner,
  session: string,
  queue: string,
): Promise<{ peer: SocketClient; messageIds: string[] }> {
  const [, minor] = /^C1([012])/.exec(session) ?? []
  if (minor === undefined) return { peer: await server.open(carrier), messageIds: [] }
  const peer = await server.connect(carrier, device, `1.${minor}`)
  const [, mode, count] = /\+s1([ci]?)(?:\+(\d)u)?/.exec(session) ?? []
  if (mode === undefined) return { peer, messageIds: [] }
  for (let kept = 0; kept < Number(count ?? 0); kept++) await peer.send(queue, 'm')
  await peer.subscribe(count === undefined ? `/topic/dev.${letter}` : queue, 's1', ackLine(mode))
  const messageIds: string[] = []
  while (messageIds.length < Number(count ?? 0))
    messageIds.push(headerOf(await peer.message(), 'message-id')!)
  return { peer, messageIds }
}

function filledIn(
  { device, letter }: CaseRunner,
  input: string,
  queue: string,
  messageIds: readonly string[],
): string {
  return input
    .replaceAll('/topic/dev.t', `/topic/dev.${letter}`)
    .replaceAll('/user/queue/dev.t', queue)
    .replaceAll('<creds>', `Authorization:Bearer ${device.token}`)
    .replaceAll('<tok>', device.token)
    .replaceAll('<user>', device.userId)
    .replaceAll(/<m(\d)(?: ack)?>/g, (_, number: string) => messageIds[Number(number) - 1]!)
}
