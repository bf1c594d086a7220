/**
 * Refusals, and the end of a connection (STOMP 1.2, "ERROR"; contract 7.1).
 *
 * STOMP 1.2, "ERROR": the server closes the connection just after the frame. Choice: a SEND, SUBSCRIBE or COMMIT that
 * breaks no rule of the protocol is answered on the client's own errors, if it is subscribed to them, and the connection
 * goes on.
 */

import type { SignalError } from '../../src/errors.ts'
import { MessageTemplate } from '../../src/stomp/serializer.ts'
import type { Asked } from './headers.ts'
import { ConnectionRefusal, encodeError, refusalOf } from './refusal.ts'
import type { ConnectionState } from './state.ts'
import { ERRORS_TOPIC } from './subscription.ts'
import { leave } from './unsubscribe.ts'

/** Answers a refused frame in its turn: on the client's errors, or with an ERROR that ends the connection. */
export function refuse(connection: ConnectionState, asked: Asked, error: SignalError): void {
  const isForgiven = asked.command === 'SEND' || asked.command === 'SUBSCRIBE' || asked.command === 'COMMIT'
  const isFatal = !isForgiven || error instanceof ConnectionRefusal || !hasErrorSubscription(connection)
  if (isFatal) return endInOrder(connection, error, asked.receipt)
  connection.order.inOrder(() => tellProblem(connection, asked, error))
}

/** Reads nothing more, and ends the connection with an ERROR once all earlier work is done. */
export function endInOrder(
  connection: ConnectionState,
  error: SignalError,
  receipt: string | undefined,
): void {
  if (connection.stage === 'over') return
  connection.stage = 'ending'
  connection.order.inOrder(() => end(connection, error, receipt))
}

/** Ends the connection with an ERROR now. */
export function end(connection: ConnectionState, error: SignalError, receipt?: string): void {
  if (connection.stage === 'over') return
  const refusal = refusalOf(error, problemOf(connection, error).status)
  const problem = problemOf(connection, refusal)
  const frame = encodeError(refusal, problem, connection.peer.version, receipt)
  finish(connection, refusal.ending.closeCode, refusal.ending.reason, frame)
}

/** Ends the connection now, with a last frame or without. */
export function finish(
  connection: ConnectionState,
  closeCode: number,
  reason: string,
  lastFrame?: Uint8Array,
): void {
  connection.peer.end(closeCode, reason, lastFrame)
  letGo(connection, reason)
}

/** The socket is gone or going: topics and presence forget the connection. Does nothing the second time. */
export function letGo(connection: ConnectionState, reason: string): void {
  if (connection.stage === 'over') return
  connection.stage = 'over'
  connection.inbox?.mark()
  for (const subscription of connection.live) leave(connection, subscription)
  connection.live = []
  connection.inbox = undefined
  connection.transactions = undefined
  const { signedIn, deps, context } = connection
  if (signedIn !== undefined) {
    const connectionId = context.self.id
    deps.users(String(signedIn.userId)).tellControl({ kind: 'detached', connectionId })
  }
  deps.onEnded(reason)
}

function hasErrorSubscription({ live }: ConnectionState): boolean {
  return live.some(({ topic }) => topic === ERRORS_TOPIC)
}

function tellProblem(connection: ConnectionState, { destination, receipt }: Asked, error: SignalError): void {
  const { deps, context, live, peer } = connection
  const eventId = deps.newEventId()
  const sentAt = context.nowMs()
  const event = { v: 1, type: 'error', eventId, sentAt, destination, receiptId: receipt }
  const problem = problemOf(connection, error).body
  const body = Buffer.from(`${JSON.stringify(event).slice(0, -1)},"problem":${problem}}`)
  const headers = ['type', 'error', 'timestamp', String(sentAt), 'content-type', 'application/json']
  const template = new MessageTemplate(headers, body)
  for (const subscription of live) {
    if (subscription.topic !== ERRORS_TOPIC) continue
    subscription.noteGiven(eventId)
    peer.send(template.encode(subscription.named.head, eventId), template.isText)
  }
}

function problemOf(
  { deps, context, language }: ConnectionState,
  error: SignalError,
): { status: number; body: string } {
  return deps.problemOf(error, context.self.id, language)
}
