/** One call of `callsign/app`, with a server and devices that say what a test has them say. */

import t, { type Test } from 'tap'
import { makeCallKey } from '../../src/app/call-key.ts'
import { Calls, type CallsDeps } from '../../src/app/calls.ts'
import { type CallDeps, LiveCall } from '../../src/app/live-call.ts'
import { memoryStorage } from '../../src/app/storage.ts'
import type {
  CallRecord,
  ParticipantAcceptRejoinEvent,
  ParticipantRequestRejoinEvent,
  ParticipantState,
} from '../../src/app/wire.ts'

const [ME, BOB, CAT] = ['1', '2', '3'] as const
const FACTS = { callId: '7', isVideo: false, isOnGoing: false }

function participant(userId: string, state: ParticipantState = 'joined') {
  const names = { displayName: '', mediaName: userId, invitedBy: BOB, invitedAt: new Date(0).toISOString() }
  return { userId, deviceId: `${userId}1`, state, isHost: userId === BOB, ...names }
}

/** Bob is its host. */
function recordOf(changes: Partial<CallRecord> = {}): CallRecord {
  return {
    ...FACTS,
    roomId: 1,
    status: 'active',
    initiatorId: BOB,
    hostUserId: BOB,
    createdAt: new Date(0).toISOString(),
    ringTimeoutIn: 30,
    keyEpoch: 1,
    keyRotationIn: 3_600,
    maxParticipants: 8,
    participants: [participant(ME), participant(BOB), participant(CAT)],
    media: { kind: 'client' },
    ...changes,
  }
}

/** What the app asks, and a server whose call is `record`. Keys are sealed as the octet that they consist of. */
function open(t: Test) {
  const asked: string[] = []
  const server = { record: recordOf(), onJoin: async () => {} }
  const request = async (operation: string) => {
    asked.push(operation.replace('call/{callId}/', ''))
    if (operation.endsWith('/join')) await server.onJoin()
    return operation.endsWith('/request-rejoin') ? { expiresIn: 30 } : server.record
  }
  const keyOf = (sealed: string) => new Uint8Array(32).fill(Number(sealed))
  const stands = {
    session: { request },
    exchange: {
      open: async (sealed: string) => keyOf(sealed),
      openFromAny: async (_: unknown, sealed: string) => ({
        key: keyOf(sealed),
        userId: BOB,
        deviceId: '21',
      }),
      sealForDevice: async () => 'sealed',
    },
    connection: { send: async () => {}, watch: async () => () => {}, connectedAtMs: 1 },
    server: { nowMs: () => 1_000, isTimeKnown: true },
    userId: ME,
    deviceId: '11',
    storage: memoryStorage(),
    keepPresent: async () => {},
    leaveOther: async () => {},
    onEnded: () => {},
    onRinging: () => {},
    onResumed: () => {},
    onChanged: () => {},
  }
  const call = new LiveCall(stands as unknown as CallDeps, FACTS, { userId: BOB, displayName: 'Bob' })
  t.teardown(() => call.close('left'))
  const countOf = (operation: string) => asked.filter(each => each === operation).length
  return { call, server, countOf, calls: new Calls(stands as unknown as CallsDeps) }
}

const event = { v: 1, eventId: 'e', sentAt: 0, callId: '7' } as const

function asks(userId: string, deviceId: string): ParticipantRequestRejoinEvent {
  const names = { displayName: '', publicKeyHash: 'hash', expiresAt: new Date(0).toISOString() }
  return { ...event, type: 'participant_request_rejoin', userId, deviceId, ...names }
}

function grants(fromUserId: string, keyEpoch: number, encryptedAESKey: string): ParticipantAcceptRejoinEvent {
  const from = { fromUserId, fromDeviceId: `${fromUserId}1` }
  return { ...event, type: 'participant_accept_rejoin', ...from, keyEpoch, encryptedAESKey }
}

t.test('a call that ends here while the server lets this device in is left', async t => {
  const { call, server, countOf } = open(t)
  call.ring('5', 1, 60_000)
  server.onJoin = async () => call.close('left')
  await t.rejects(call.answer(), { code: 'CALL_NOT_ACTIVE' })
  t.same([countOf('POST join'), countOf('POST leave')], [1, 1])
})

t.test('the key is given to a device that is in the call, and to nobody who was removed', async t => {
  const { call, server, countOf } = open(t)
  await call.enter(server.record, call.own(makeCallKey()))
  const asked: string[] = []
  call.on('key-asked', ({ deviceId }) => asked.push(deviceId))
  server.record = recordOf({ participants: [participant(ME), participant(BOB), participant(CAT, 'removed')] })
  await call.onMessage(asks(CAT, '31'))
  await call.onMessage(asks(CAT, '32'))
  await call.onMessage(asks('4', '41'))
  t.same([countOf('POST accept-rejoin'), asked], [0, []])
  await call.onMessage(asks(BOB, '22'))
  t.same([countOf('POST accept-rejoin'), asked], [0, ['22']], 'another device of theirs: the person is asked')
  await call.onMessage(asks(BOB, '21'))
  t.equal(countOf('POST accept-rejoin'), 1)
})

t.test('a device that has a key takes the host’s in place of it, and nobody else’s', async t => {
  const { call, server } = open(t)
  const own = makeCallKey()
  await call.enter(server.record, call.own(own))
  const keys = () => call.keys.map(({ epoch, key }) => [epoch, key[0]])
  await call.onMessage(grants(BOB, 1, '5'))
  t.same(keys(), [[1, own[0]]], 'it has not asked')
  await call.askForKey()
  await call.onMessage(grants(CAT, 1, '6'))
  t.same(keys(), [[1, own[0]]])
  await call.onMessage(grants(BOB, 1, '5'))
  t.same(keys(), [[1, 5]])
})

t.test('a key that has been renewed meanwhile does not bring a device back: it asks again', async t => {
  const { call, server, countOf } = open(t)
  await call.resume(server.record)
  server.record = recordOf({ keyEpoch: 2 })
  await call.onMessage(grants(BOB, 1, '5'))
  t.match(call, { state: 'rejoining', keys: [] })
  t.equal(countOf('POST request-rejoin'), 2)
  await call.onMessage(grants(BOB, 2, '6'))
  t.match(call, { state: 'active', keys: [{ epoch: 2 }] })
})

t.test('an invitation that was declined does not ring again, though this clock is behind', async t => {
  const { calls } = open(t)
  const names = { callerId: BOB, callerName: 'Bob', encryptedAESKey: '5', keyEpoch: 1 }
  const times = { sentAt: 5_000, expiresAt: new Date(35_000).toISOString() }
  const invitation = { ...FACTS, ...names, ...times }
  await calls.onInvitation(invitation)!.decline()
  t.equal(calls.onInvitation(invitation), undefined)
  const later = calls.onInvitation({ ...invitation, sentAt: 5_001 })
  t.equal(later?.state, 'ringing', 'asked anew')
  await later?.decline()
})
