/**
 * The effects of SEND, ACK and NACK, at once or at the COMMIT of their transaction: first the commands of calls, which
 * may be refused, in order up to one that is; then everything that touches the inbox, in one change of the store; then
 * publications. So a refused COMMIT has settled nothing: the messages that it acknowledges come again on the next
 * connection.
 */

import type { CallId } from '../../src/domain/ids.ts'
import { SignalError } from '../../src/errors.ts'
import type { InboxChange } from '../../src/store/messages/device-inbox.ts'
import type { DevelopmentItem } from '../../src/store/messages/inbox-writes.ts'
import { holderBefore } from './badge.ts'
import { refuse } from './ending.ts'
import type { Asked } from './headers.ts'
import type { ConnectionState } from './state.ts'
import type { Acknowledgement, Action } from './transactions.ts'

/**
 * Performs a frame's action, or puts it off when `transaction` is given. Then the RECEIPT says that the transaction has
 * the frame; that of the COMMIT says that it is done.
 */
export function carryOut(
  connection: ConnectionState,
  asked: Asked,
  action: Action,
  transaction: string | undefined,
): void {
  if (transaction === undefined) return perform(connection, [action], asked)
  connection.transactions!.add(transaction, action)
  connection.order.receipt(asked.receipt)
}

/** Performs actions, and answers the frame that triggered them. */
export function perform(connection: ConnectionState, actions: readonly Action[], asked: Asked): void {
  const { order } = connection
  const settled: number[] = []
  const sent: DevelopmentItem[] = []
  const commands: Command[] = []
  const published: Publication[] = []
  for (const action of actions) {
    if (action.kind === 'acknowledge')
      for (const offset of settledBy(connection, action)) settled.push(offset)
    else if (action.kind === 'keep') sent.push(action.item)
    else if (action.kind === 'command') commands.push(action)
    else published.push(action)
  }
  order.settleBefore(asked.receipt)
  const isOnlySettling = sent.length + commands.length + published.length === 0 && asked.receipt === undefined
  if (isOnlySettling) order.settleSoon(connection.device, settled)
  else {
    const work = workOf(connection, commands, { settled, sent })
    if (work === undefined) publish(connection, published, asked)
    else {
      order.after(work, failure =>
        failure === undefined ? publish(connection, published, asked) : refuse(connection, asked, failure),
      )
    }
  }
  // An acknowledgement makes room, whether it settled anything or not.
  if (actions.some(({ kind }) => kind === 'acknowledge')) connection.inbox?.pumpIfRoom()
}

type Command = Extract<Action, { kind: 'command' }>
type Publication = Extract<Action, { kind: 'publish' }>

/** Undefined when there is nothing to wait for. */
function workOf(
  connection: ConnectionState,
  commands: readonly Command[],
  change: InboxChange,
): PromiseLike<unknown> | undefined {
  return commands.length === 0
    ? changeInbox(connection, change)
    : commandsThenInbox(connection, commands, change)
}

/** Rejects at the first command that is refused, before the inbox changes. */
async function commandsThenInbox(
  connection: ConnectionState,
  commands: readonly Command[],
  change: InboxChange,
): Promise<void> {
  const { deps, device } = connection
  for (const { callId, said } of commands)
    await deps.calls.command(BigInt(callId) as CallId, { ...said, by: device })
  await changeInbox(connection, change)
}

function changeInbox(
  { deps, device }: ConnectionState,
  change: InboxChange,
): PromiseLike<unknown> | undefined {
  if (change.settled.length + change.sent.length === 0) return undefined
  return deps.inbox.change(device.userId, device.deviceId, change)
}

function publish(connection: ConnectionState, published: readonly Publication[], asked: Asked): void {
  const { deps, order } = connection
  for (const { topic, headers, body } of published) {
    const told = deps.topics(topic).tell({ kind: 'publish', headers, body })
    if (told === 'overloaded') {
      return refuse(connection, asked, new SignalError('OVERLOADED', 'the topic is full'))
    }
  }
  order.receipt(asked.receipt)
}

/** Returns offsets that are thereby settled. Messages settled before, or on another subscription, are skipped. */
function settledBy(
  { inbox }: ConnectionState,
  { position, isLive, subscriptionId, outcome }: Acknowledgement,
): readonly number[] {
  if (inbox === undefined || position === undefined) return NONE
  const holder = isLive ? holderBefore(inbox, position, subscriptionId) : inbox.find(position, subscriptionId)
  if (holder === undefined || holder === 'passed') return NONE
  if (outcome === 'settle') return inbox.acknowledge(holder, position.offset)
  inbox.keep(holder, position.offset)
  return NONE
}

const NONE: readonly number[] = []
