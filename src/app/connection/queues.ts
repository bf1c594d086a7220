/** Queues of the device: the app handles one message of each at a time, each event once, and it is acknowledged then. */

import type { Failure } from '../callsign-error.ts'
import type { QueueEvent } from '../wire.ts'
import { giveUp } from './attempts.ts'
import type { Delivered } from './input.ts'
import {
  connectedIn,
  type DeviceConnection,
  type Message,
  type Purpose,
  type Queue,
  socketIn,
} from './phase.ts'
import type { Step } from './step.ts'

type Acknowledging = Extract<Purpose, { for: 'ack' }>

export function newQueues(): Pick<DeviceConnection, 'queues' | 'seen' | 'acksUntilMs'> {
  const queueOf = (name: string) => ({ name, waiting: [], since: undefined })
  const acksUntilMs = -ACKS_AT_ONCE * ACK_EVERY_MS
  return { queues: ['account', 'contacts', 'calls'].map(queueOf), seen: [], acksUntilMs }
}

export function onMessage(step: Step, { socket, subscription, ack, event }: Delivered): void {
  if (connectedIn(step.phase)?.socket !== socket) return
  const { watches, queues } = step.connection
  if (watches.some(({ id }) => id === subscription))
    return step.act({ do: 'topic', watch: subscription, event })
  if (!isEvent(event)) return giveUp(step, socket, NONSENSE)
  const queue = queues.find(({ name }) => name === subscription)
  // A watch that has ended.
  if (queue === undefined) return
  if (ack === undefined || queue.waiting.length >= WAITING_MAX) return giveUp(step, socket, NONSENSE)
  changeQueue(step, queue.name, { waiting: [...queue.waiting, { event, messageId: ack, socket }] })
  handleWaiting(step, queue.name)
}

/** An event counts as handled when that failed, too. */
export function onHandled(step: Step, name: string, message: Message, failure?: Failure): void {
  if (failure !== undefined) step.act({ do: 'trouble', failure })
  acknowledge(step, name, message)
  handleWaiting(step, name)
}

/** `since` is of the present connection, or of the last one where there is none. */
export function onAcknowledged(step: Step, { queue, messageId, socket }: Acknowledging): void {
  const present = connectedIn(step.phase)?.socket ?? socket
  if (present === socket) changeQueue(step, queue, { since: messageId })
}

export function onTime(step: Step): void {
  for (const { name } of step.connection.queues) handleWaiting(step, name)
}

/** When the next message may be begun with; undefined where none waits for the time. */
export function nextMessageMs(connection: DeviceConnection): number | undefined {
  const waits = connection.queues.some(({ name, waiting }) => waiting.length > 0 && !isBusy(connection, name))
  return waits ? connection.acksUntilMs : undefined
}

function handleWaiting(step: Step, name: string): void {
  for (;;) {
    const [message, ...waiting] = step.connection.queues.find(each => each.name === name)!.waiting
    if (message === undefined || isBusy(step.connection, name)) return
    // A long backlog would have more acknowledgements sent than the server takes in so short a time.
    if (step.connection.acksUntilMs > step.nowMs) return
    changeQueue(step, name, { waiting })
    if (isNew(step, message.event)) {
      const act = step.wait({ for: 'handle', queue: name, message })
      step.act({ do: 'handle', act, event: message.event })
    } else acknowledge(step, name, message)
  }
}

/** One of a connection that has broken comes again. */
function acknowledge(step: Step, queue: string, { messageId, socket }: Message): void {
  if (socketIn(step.phase) !== socket) return
  const purpose = { for: 'ack', queue, messageId, socket } as const
  step.request({ socket, command: 'ACK', headers: { id: messageId } }, purpose)
  const sinceMs = Math.max(step.connection.acksUntilMs, step.nowMs - ACKS_AT_ONCE * ACK_EVERY_MS)
  step.change({ acksUntilMs: sinceMs + ACK_EVERY_MS })
}

function isNew(step: Step, { eventId }: QueueEvent): boolean {
  const { seen } = step.connection
  if (seen.includes(eventId)) return false
  step.change({ seen: [...seen, eventId].slice(-SEEN_MAX) })
  return true
}

function isBusy({ waiting }: DeviceConnection, name: string): boolean {
  return waiting.some(each => each.for === 'handle' && each.queue === name)
}

function isEvent(event: unknown): event is QueueEvent {
  const { type, eventId } = (event ?? {}) as { readonly type?: unknown; readonly eventId?: unknown }
  return typeof type === 'string' && typeof eventId === 'string'
}

function changeQueue(step: Step, name: string, change: Partial<Queue>): void {
  const { queues } = step.connection
  step.change({ queues: queues.map(queue => (queue.name === name ? { ...queue, ...change } : queue)) })
}

const NONSENSE: Failure = {
  code: 'ANSWER_INVALID',
  message: 'The server sent a frame that makes no sense here.',
}
/** As many as an inbox holds: repeated messages come from there. */
const SEEN_MAX = 500
/** The server sends at most 32 without an acknowledgement, and badges. */
const WAITING_MAX = 500
/** The server takes 50 frames in a second, and 200 at once. */
const [ACK_EVERY_MS, ACKS_AT_ONCE] = [25, 100]
