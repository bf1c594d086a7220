/** People's acts on their phones in a seeded run: mostly sensible ones, now and then any. */

import {
  type Call,
  type CallDeviceRef,
  isJoined,
  isOver,
  isPending,
  joinedDevices,
  joinedOn,
  participantOf,
} from '../../src/domain/calls/call.ts'
import type { CallRequest } from '../../src/domain/calls/call-command.ts'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import { keyFor, type Ledger, nameOf } from './call-run-ledger.ts'
import type { RunPhone } from './call-run-phone.ts'
import { membersOf } from './key-members.ts'
import type { SeededRandom } from './world.ts'

export interface RunPerson {
  readonly userId: UserId
  readonly phones: readonly RunPhone[]
}

/** The source of drawn requests. */
export interface RequestRun {
  readonly draw: SeededRandom
  readonly ledger: Ledger
  readonly people: readonly RunPerson[]
  readonly serial: () => number
}

export interface DrawnRequest {
  readonly callId: CallId
  readonly request: CallRequest
  /** Its `Idempotency-Key`. */
  readonly key: string | undefined
}

export function drawRequest(run: RequestRun, phone: RunPhone): DrawnRequest | undefined {
  const { draw, ledger } = run
  const calls = [...ledger.calls.values()].map(({ call }) => call)
  const mayStart = calls.length < CALLS_MAX && (calls.every(isOver) || draw.chance(0.1))
  if (mayStart) return drawStart(run, phone)
  const known = calls.filter(
    call => draw.chance(0.05) || participantOf(call, phone.actor.userId) !== undefined,
  )
  if (known.length === 0) return undefined
  // The latest one most of the time.
  const call = draw.chance(0.8) ? known.at(-1)! : pick(draw, known)
  const kind = pick(draw, draw.chance(0.08) ? ANYTHING : sensibleIn(call, phone))
  const request = makeRequest(run, phone, call, kind)
  const key = kind === 'invite' && draw.chance(0.5) ? `key-${run.serial()}` : undefined
  return request && { callId: call.callId, request, key }
}

function drawStart(
  run: RequestRun,
  phone: RunPhone,
  callees: readonly RunPerson[] = drawCallees(run, phone),
): DrawnRequest {
  const { draw, serial } = run
  const encryptedAESKeys = keysForPeople(run, callees, phone)
  const request: CallRequest = {
    kind: 'start',
    by: phone.actor,
    callId: NO_CALL,
    isVideo: draw.chance(0.5),
    calleeIds: callees.map(({ userId }) => userId),
    ...(draw.chance(0.5) ? { roomId: 1 + draw.below(2) } : {}),
    encryptedAESKeys,
    ...(draw.chance(0.5) ? { keyMembers: membersFor(phone, encryptedAESKeys) } : {}),
  }
  const key = draw.chance(0.6) ? `key-${serial()}` : undefined
  return { callId: drawId(run), request, key }
}

/** The id that a client chose: random, or one that a call has or had. */
function drawId({ draw, ledger, serial }: RequestRun): CallId {
  if (draw.chance(0.4)) return NO_CALL
  const taken = [...ledger.calls.keys()]
  return taken.length > 0 && draw.chance(0.1)
    ? pick(draw, taken)
    : (BigInt(FIRST_CHOSEN_ID + serial()) as CallId)
}

export interface Crossing {
  readonly phone: RunPhone
  readonly drawn: DrawnRequest
}

/** Two people who call each other alone. */
export function drawCrossing(run: RequestRun): Crossing[] {
  const { draw, ledger, people } = run
  if (ledger.calls.size >= CALLS_MAX || ledger.live().length > 1) return []
  const one = pick(draw, people)
  const other = pick(
    draw,
    people.filter(person => person !== one),
  )
  return [
    [one, other],
    [other, one],
  ].flatMap(([caller, callee]) => {
    const inUse = caller!.phones.filter(phone => !phone.ledger.isErased)
    if (inUse.length === 0) return []
    const phone = pick(draw, inUse)
    return { phone, drawn: drawStart(run, phone, [callee!]) }
  })
}

type Kind = Exclude<CallRequest['kind'], 'start' | `device-${string}`>

function sensibleIn(call: Call, phone: RunPhone): readonly Kind[] {
  const participant = participantOf(call, phone.actor.userId)
  if (participant === undefined || isOver(call)) return ANYTHING
  if (isPending(participant)) return WHEN_RUNG
  if (joinedOn(call, phone.actor) !== undefined) return phone.asks.length > 0 ? WHEN_ASKED : WHEN_IN
  return isJoined(participant) ? WHEN_IN_ELSEWHERE : WHEN_OUT
}

function makeRequest(run: RequestRun, phone: RunPhone, call: Call, kind: Kind): CallRequest | undefined {
  const { draw } = run
  const by = phone.actor
  switch (kind) {
    case 'request-rejoin':
      return { kind, by, nonce: pick(draw, [undefined, 'one', 'two']) }
    case 'join':
    case 'rejoin':
    case 'ringing':
    case 'leave':
    case 'end':
      return { kind, by }
    case 'decline':
      return { kind, by, reason: pick(draw, ['declined', 'busy', 'timeout'] as const) }
    case 'remove':
      return { kind, by, userId: pick(draw, run.people).userId }
    case 'invite': {
      const callees = drawCallees(run, phone)
      const encryptedAESKeys = keysForPeople(run, callees, phone)
      const calleeIds = callees.map(({ userId }) => userId)
      if (draw.chance(0.6)) return { kind, by, calleeIds, encryptedAESKeys, ...saidEpoch(run, call) }
      const joined = joinedDevices(call).filter(device => nameOf(device) !== phone.name)
      const all = { ...keysFor(run, joined), ...encryptedAESKeys }
      delete all[phone.name]
      const keyMembers = membersFor(phone, all)
      return { kind, by, calleeIds, encryptedAESKeys: all, epoch: call.keyEpoch + 1, keyMembers }
    }
    case 'accept-rejoin':
      return acceptRejoin(run, phone, call)
    case 'keys':
      return newKeys(run, phone, call)
  }
}

/** As newer clients say it, now and then wrongly. */
function saidEpoch({ draw }: RequestRun, { keyEpoch }: Call): { readonly epoch?: number } {
  return draw.chance(0.5) ? { epoch: draw.chance(0.9) ? keyEpoch : keyEpoch + 1 } : {}
}

function acceptRejoin(run: RequestRun, phone: RunPhone, call: Call): CallRequest | undefined {
  const ask = phone.asks.at(-1)
  if (ask === undefined) return undefined
  const { userId, deviceId } = ask[1]
  return {
    kind: 'accept-rejoin',
    by: phone.actor,
    requesterUserId: userId,
    requesterDeviceId: deviceId,
    encryptedAESKey: keyFor(ask[1], run.serial()),
    ...saidEpoch(run, call),
  }
}

function newKeys(run: RequestRun, phone: RunPhone, call: Call): CallRequest {
  const { draw } = run
  const isNext = draw.chance(0.7)
  const joined = joinedDevices(call).filter(device => nameOf(device) !== phone.name)
  const ringing = call.participants
    .filter(isPending)
    .flatMap(({ userId, devices }) =>
      devices.filter(() => draw.chance(0.5)).map(({ deviceId }) => ({ userId, deviceId })),
    )
  const without = draw.chance(0.2) ? joined.slice(0, 1).map(nameOf) : []
  const given = [...joined, ...ringing].filter(device => !without.includes(nameOf(device)))
  const encryptedAESKeys = keysFor(run, given)
  return {
    kind: 'keys',
    by: phone.actor,
    epoch: call.keyEpoch + (isNext ? 1 : 0),
    reason: isNext ? pick(draw, ['rotation', 'leave'] as const) : 'emergency',
    encryptedAESKeys,
    ...(without.length > 0 ? { without } : {}),
    ...(isNext && draw.chance(0.5) ? { keyMembers: membersFor(phone, encryptedAESKeys) } : {}),
  }
}

function drawCallees({ draw, people }: RequestRun, phone: RunPhone): RunPerson[] {
  const others = people.filter(({ userId }) => userId !== phone.actor.userId)
  const callees = others.filter(() => draw.chance(0.6))
  return callees.length > 0 ? callees : [pick(draw, others)]
}

/** Keys for all their devices and, now and then, the caller's other ones; rarely one is left out. */
function keysForPeople(
  run: RequestRun,
  callees: readonly RunPerson[],
  phone: RunPhone,
): Record<string, string> {
  const { draw, people } = run
  const own = people.filter(({ userId }) => userId === phone.actor.userId && draw.chance(0.3))
  const phones = [...callees, ...own].flatMap(person => person.phones).filter(each => !each.ledger.isErased)
  const isShort = draw.chance(0.03)
  return keysFor(
    run,
    phones.slice(isShort ? 1 : 0).map(({ actor }) => actor),
  )
}

function keysFor({ serial }: RequestRun, devices: readonly CallDeviceRef[]): Record<string, string> {
  return Object.fromEntries(devices.map(device => [nameOf(device), keyFor(device, serial())]))
}

/** The set of a map's devices and its sender. */
function membersFor({ name }: RunPhone, map: Readonly<Record<string, string>>): string {
  const devices = [...new Set([name, ...Object.keys(map)])].map(each => {
    const [userId, deviceId] = each.split('_')
    return { userId: userId!, deviceId: deviceId! }
  })
  return membersOf(devices)
}

export function pick<Item>(draw: SeededRandom, items: readonly Item[]): Item {
  return items[draw.below(items.length)]!
}

const ANYTHING: readonly Kind[] = [
  ...(['join', 'request-rejoin', 'rejoin', 'ringing', 'leave', 'end', 'decline'] as const),
  ...(['remove', 'invite', 'accept-rejoin', 'keys'] as const),
]
const WHEN_RUNG: readonly Kind[] = ['join', 'join', 'join', 'join', 'ringing', 'ringing', 'decline', 'end']
const WHEN_IN: readonly Kind[] = ['invite', 'invite', 'keys', 'keys', 'leave', 'leave', 'remove', 'end']
const WHEN_ASKED: readonly Kind[] = ['accept-rejoin', 'accept-rejoin', ...WHEN_IN]
const WHEN_IN_ELSEWHERE: readonly Kind[] = ['join', 'join', 'leave', 'rejoin', 'decline']
const WHEN_OUT: readonly Kind[] = ['request-rejoin', 'request-rejoin', 'rejoin', 'rejoin', 'join', 'leave']
const CALLS_MAX = 4
const FIRST_CHOSEN_ID = 8_000_000_000
/** The executing server assigns one. */
export const NO_CALL = 0n as CallId
