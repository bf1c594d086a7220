/** Live calls by participant, and taken rooms. */

import t from 'tap'
import type { Call, CallStatus, Participant, ParticipantState } from '../../../src/domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { CallIndex } from '../../../src/store/calls/call-index.ts'
import { CallDriver } from '../../support/call-driver.ts'

const [ANN, BOB, EVE] = [1n, 2n, 3n] as [UserId, UserId, UserId]
const [ONE, TWO] = [1001n, 1002n] as [CallId, CallId]
const PHONE = 101n as DeviceId

/** A call of Ann's with Bob in this state. */
function callOf(callId: CallId, roomId: number, bob: ParticipantState, status: CallStatus = 'active'): Call {
  const driver = new CallDriver()
  driver.start([2])
  const participants: Participant[] = driver.call.participants.map(participant =>
    participant.userId === BOB ? { ...participant, state: bob } : participant,
  )
  return { ...driver.call, callId, roomId, status, participants }
}

t.test('a call is found by its people, its devices and its room until it ends', async t => {
  const index = new CallIndex()
  index.put(callOf(ONE, 9, 'invited'))
  t.same([...index.callsOf(ANN), ...index.callsOf(BOB), ...index.callsOf(EVE)], [ONE, ONE])
  t.same(index.callsWith(ANN, PHONE), [ONE])
  t.same(index.callsWith(ANN, 7n as DeviceId), [])
  t.same(index.callsWith(EVE, PHONE), [])
  t.equal(index.callInRoom(9), ONE)
  t.equal(index.otherCallWith(ANN, PHONE, TWO), ONE)
  t.equal(index.otherCallWith(ANN, PHONE, ONE), undefined)
  t.equal(index.otherCallWith(ANN, 7n as DeviceId, TWO), undefined, 'on another device')
  t.equal(index.otherCallOf(ANN, TWO), ONE)
  t.equal(index.otherCallOf(ANN, ONE), undefined)
  t.equal(index.otherCallOf(BOB, TWO), undefined, 'an invitation is no call one is in')
  index.put(callOf(ONE, 9, 'left', 'ended'))
  t.same([...index.callsOf(ANN), ...index.callsOf(BOB)], [])
  t.equal(index.callInRoom(9), undefined)
  t.equal(index.size, 0)
})

t.test('who is removed has no part any more, who has left has', async t => {
  const index = new CallIndex()
  index.put(callOf(ONE, 9, 'left'))
  t.same(index.callsOf(BOB), [ONE])
  index.put(callOf(ONE, 9, 'removed'))
  t.same(index.callsOf(BOB), [])
  t.same(index.callsOf(ANN), [ONE])
})

t.test('calls are counted by their media gateway', async t => {
  const index = new CallIndex()
  const at = (callId: CallId, gateway: string | undefined) => ({
    ...callOf(callId, Number(callId), 'invited'),
    gateway,
  })
  index.put(at(ONE, undefined))
  index.put(at(TWO, 'b'))
  t.same([...index.gateways()], [['b', 1]])
  t.same([index.gatewayOf(ONE), index.gatewayOf(TWO), index.isLive(ONE)], [undefined, 'b', true])
  index.put(at(ONE, 'b'))
  t.same([...index.gateways()], [['b', 2]])
  index.put(at(ONE, 'a'))
  t.same(
    new Map(index.gateways()),
    new Map([
      ['a', 1],
      ['b', 1],
    ]),
  )
  t.same(
    index.rooms().map(({ callId, gateway }) => [callId, gateway]),
    [
      [TWO, 'b'],
      [ONE, 'a'],
    ],
  )
  index.put({ ...at(ONE, 'a'), status: 'ended' })
  index.forget(TWO)
  t.same([...index.gateways()], [])
  t.same([index.isLive(ONE), index.gatewayOf(TWO)], [false, undefined])
})

t.test('calls do not get in each other’s way', async t => {
  const index = new CallIndex()
  index.put(callOf(ONE, 9, 'invited'))
  index.put(callOf(TWO, 10, 'invited'))
  t.same(index.callsOf(BOB), [ONE, TWO])
  index.put(callOf(ONE, 9, 'ringing'))
  t.same(index.callsOf(BOB), [TWO, ONE], 'the latest change is last')
  index.forget(TWO)
  index.forget(TWO)
  t.same(index.callsOf(BOB), [ONE])
  t.equal(index.callInRoom(9), ONE)
  t.equal(index.callInRoom(10), undefined)
})
