/** Invariants of a seeded run: whenever no work is under way, and at the end. */

import { type Call, isJoined, isPending, isTwoPerson, participantOf } from '../../src/domain/calls/call.ts'
import { ringEndsAtMs } from '../../src/domain/calls/call-deadline.ts'
import { TICK_MS } from '../../src/runtime/timers.ts'
import type { Ledger, RunNote } from './call-run-ledger.ts'
import type { Link } from './call-run-link.ts'
import type { RunPhone } from './call-run-phone.ts'
import type { RunPerson } from './call-run-requests.ts'
import type { RunServer } from './call-run-server.ts'
import type { MemoryStore } from './memory-store.ts'

export interface RunAtRest {
  readonly server: RunServer
  readonly ledger: Ledger
  readonly people: readonly RunPerson[]
  readonly phones: readonly RunPhone[]
  readonly links: readonly Link[]
  readonly database: MemoryStore<RunNote>
}

/** A starting server must find exactly the durable state. */
export function faultsAtStart({ server, ledger }: RunAtRest): string[] {
  const found = new Map(server.stores.roomCalls.live().map(call => [call.callId, call]))
  const live = ledger.live()
  const isSame = found.size === live.length && live.every(call => isSameCall(call, found.get(call.callId)))
  return isSame ? [] : [`it starts with ${[...found.keys()]} of ${live.map(({ callId }) => callId)}`]
}

/** Call when no work is under way and a tick has passed since. */
export function faultsAtRest(run: RunAtRest): string[] {
  return [
    ...faultsOfRinging(run),
    ...faultsOfCrossing(run),
    ...faultsOfIndex(run),
    ...faultsOfConnections(run),
    ...run.phones.flatMap(phone => faultsOfPhone(run, phone)),
    ...faultsOfFigures(run),
  ]
}

/** A ring ends in its time, and every wait for a time has a timer. */
function faultsOfRinging({ server, ledger }: RunAtRest): string[] {
  const nowMs = server.world.nowMs()
  const faults: string[] = []
  for (const { callId, participants } of ledger.live()) {
    if (!server.watch.armed.has(callId)) faults.push(`call ${callId} has no timer`)
    const late = participants.filter(one => isPending(one) && ringEndsAtMs(one) + LATE_MS_MAX < nowMs)
    for (const one of late)
      faults.push(`${one.userId} is rung for ${nowMs - one.invitedAtMs} ms by ${callId}`)
  }
  return faults
}

/** Of two people who call each other alone at most one call lives. */
function faultsOfCrossing({ ledger }: RunAtRest): string[] {
  const ringing = ledger.live().filter(call => call.status === 'ringing' && isTwoPerson(call))
  const pairs = ringing.map(({ participants }) => participants.map(({ userId }) => userId).sort())
  const names = pairs.map(String)
  return names
    .filter((name, at) => names.indexOf(name) !== at)
    .map(name => `${name} ring each other in two calls`)
}

/** The index says of the live calls what the store has. */
function faultsOfIndex({ server, ledger, people }: RunAtRest): string[] {
  const { index: callIndex } = server.rooms
  const live = ledger.live()
  const faults = live.filter(call => callIndex.callInRoom(call.roomId) !== call.callId)
  if (faults.length > 0 || callIndex.size !== live.length) {
    return [`the index has ${callIndex.size} of ${live.length} calls, and ${faults.length} rooms are wrong`]
  }
  return people.flatMap(({ userId, phones }) =>
    phones.flatMap(({ actor, name }) => {
      const inside = live.filter(call => {
        const participant = participantOf(call, userId)
        return participant && isJoined(participant) && participant.attendance?.deviceId === actor.deviceId
      })
      const found = callIndex.callsWith(userId, actor.deviceId)
      const isSame = found.length === inside.length && inside.every(({ callId }) => found.includes(callId))
      return isSame ? [] : [`the index has ${name} in ${found.length} of ${inside.length} calls`]
    }),
  )
}

/** Only connected devices count as connected, and calls know them. */
function faultsOfConnections({ server, links, people, phones, ledger }: RunAtRest): string[] {
  const { connections } = server
  const open = new Set(links.filter(link => !link.isClosed).map(({ id }) => id))
  const attached = people.flatMap(({ userId }) => connections.of(userId))
  const gone = attached.filter(({ ref }) => !open.has(ref.id))
  const removed = phones.filter(
    ({ ledger, actor }) => ledger.isErased && connections.isConnected(actor.userId, actor.deviceId),
  )
  // A room that is built anew, after a failure or a restart, finds out for itself, and decides nothing by it.
  const told = server.hasFailed ? [] : ledger.live().filter(({ callId }) => !server.resumed.has(callId))
  const absent = told.flatMap(({ participants }) =>
    participants
      .filter(isJoined)
      .filter(
        ({ userId, attendance }) =>
          connections.isConnected(userId, attendance!.deviceId) && !attendance!.isOnline,
      ),
  )
  const erased = new Set(phones.filter(({ ledger }) => ledger.isErased).map(({ actor }) => actor.deviceId))
  const ghosts = told.flatMap(({ participants }) =>
    participants.filter(one => isJoined(one) && erased.has(one.attendance!.deviceId)),
  )
  return [
    ...ghosts.map(({ userId }) => `${userId} is in a call on a device that is removed`),
    ...absent.map(({ userId }) => `${userId} is connected, and absent from the call`),
    ...gone.map(({ ref }) => `the connection ${ref.id} is over and counts as live`),
    ...removed.map(({ name }) => `${name} is removed and connected`),
  ]
}

function faultsOfPhone({ server, ledger }: RunAtRest, phone: RunPhone): string[] {
  const nowMs = server.world.nowMs()
  const { line, name, actor, ledger: device } = phone
  const { database, inbox } = server.stores
  const head = database.view(view => inbox.head(view, actor.userId, actor.deviceId))
  const waiting = device.waiting(nowMs)
  const faults: string[] = []
  if (head.count < waiting.length) faults.push(`the inbox of ${name} has ${head.count} of ${waiting.length}`)
  if (line === undefined) return faults
  const missing = line.missing(nowMs)
  if (missing.length > 0) faults.push(`${name} is not sent ${missing.map(({ offset }) => offset)}`)
  const { missedCalls } = database.view(view => server.stores.badgeOf(view, actor.userId))
  if (line.isReading && line.missedCalls !== missedCalls) {
    faults.push(`the badge of ${name} is ${line.missedCalls}, not ${missedCalls}`)
  }
  for (const callId of phone.rings.keys()) {
    if (phone.mayMissSomething || !line.isUpToDate || !phone.isRinging(callId, nowMs)) continue
    const participant = participantOf(ledger.calls.get(callId)!.call, actor.userId)
    if (participant === undefined || !isPending(participant)) {
      faults.push(`${name} rings for ${callId}, and ${participant?.userId} is ${participant?.state}`)
    }
  }
  return faults
}

/** No work is left, no message was thrown away, no mailbox was ever long, and no actor lives without a reason. */
function faultsOfFigures({ server, links, people }: RunAtRest): string[] {
  const { deadLetters, kinds, commitsUnderWay, runQueueLength, outcomesUnderWay } = server.system.figures()
  const livesMax = { 'stomp-connection': links.length, presence: people.length }
  const many = Object.entries(livesMax).filter(([kind, max]) => kinds[kind]!.live > max)
  const thrownAway = UNEXPECTED.filter(reason => deadLetters[reason] > 0)
  const long = Object.entries(kinds).filter(([, { mailboxDepthMax }]) => mailboxDepthMax > MAILBOX_MAX)
  const underWay = commitsUnderWay + runQueueLength + outcomesUnderWay
  return [
    ...thrownAway.map(reason => `messages were thrown away: ${reason}`),
    ...many.map(([kind, max]) => `there are ${kinds[kind]!.live} actors of kind ${kind}, not ${max}`),
    ...long.map(([kind]) => `a ${kind} had more than ${MAILBOX_MAX} messages`),
    ...(underWay > 0 ? [`${underWay} commits, turns and outcomes are under way`] : []),
  ]
}

/** Call when every phone has read and acknowledged everything and is gone. */
export function faultsAtEnd(run: RunAtRest): string[] {
  const { server, ledger, phones, database } = run
  const { timersArmed, liveActors, asksOpen, kinds } = server.system.figures()
  const nowMs = server.world.nowMs()
  const countOf = ({ userId, deviceId }: RunPhone['actor']) =>
    database.view(view => server.stores.inbox.head(view, userId, deviceId)).count
  const counts = {
    timersArmed,
    liveActors,
    asksOpen,
    ...Object.fromEntries(Object.entries(kinds).map(([kind, { live }]) => [`${kind}s`, live])),
    connections: server.connections.count,
    indexed: server.rooms.index.size,
    calls: database.size('calls'),
    messages: phones.filter(({ ledger }) => ledger.waiting(nowMs).length > 0).length,
    inboxes: phones.filter(({ actor }) => countOf(actor) > 0).length,
    ringing: phones.filter(({ rings }) => [...rings.values()].some(({ untilMs }) => nowMs < untilMs)).length,
  }
  const left = Object.entries(counts).filter(([, count]) => count > 0)
  return [
    ...thrownBy(() => database.view(view => server.stores.inbox.assertConsistent(view))),
    ...left.map(([what, count]) => `at the end there are ${count} ${what}`),
    ...[...ledger.calls.values()].flatMap(call => faultsOfEnd(run, call, nowMs)),
  ]
}

/** Everybody remembers the call, and those who were in it alike. */
function faultsOfEnd({ server }: RunAtRest, ledger: LedgerCall, nowMs: number): string[] {
  const { call } = ledger
  const faults = thrownBy(() => ledger.checkEnd())
  for (const participant of call.participants) {
    const { database, history } = server.stores
    const rows = database.view(view => history.list(view, participant.userId, { limit: 50 }, nowMs))
    const own = rows.filter(({ callId }) => callId === call.callId)
    const expected = expectedStatus(call, participant)
    const isSame = own.length === 1 && own[0]!.status === expected && own[0]!.createdAtMs === call.createdAtMs
    if (!isSame) faults.push(`${participant.userId} has ${own.map(({ status }) => status)}, not ${expected}`)
  }
  return faults
}

function thrownBy(check: () => void): string[] {
  try {
    check()
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

function isSameCall(one: Call, other: Call | undefined): boolean {
  const textOf = ({ status, hostUserId, keyEpoch, participants }: Call) =>
    `${status} ${hostUserId} ${keyEpoch} ${participants.map(({ state }) => state)}`
  return other !== undefined && textOf(one) === textOf(other)
}

type LedgerCall = Ledger['calls'] extends ReadonlyMap<unknown, infer Value> ? Value : never
type Participant = LedgerCall['call']['participants'][number]

function expectedStatus({ status }: LedgerCall['call'], { state, joinedAtMs }: Participant): string {
  if (joinedAtMs !== undefined) return state === 'removed' ? 'ended' : status
  return state === 'declined' ? 'declined' : 'missed'
}

/** A tick, what a turn takes, and the pause after a write that failed. */
const LATE_MS_MAX = 4 * TICK_MS
const MAILBOX_MAX = 64
const UNEXPECTED = ['unknown-kind', 'absent', 'overloaded', 'too-many-actors', 'given-up', 'poison'] as const
