/** Two who call each other: when the second start is refused with the first call, ends it, or has nothing to do with it. */

import t from 'tap'
import type { Call } from '../../../src/domain/calls/call.ts'
import type { CallActor, CallDecision, CallFacts } from '../../../src/domain/calls/call-command.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import {
  CALL_ID,
  CallDriver,
  deviceOf,
  inWords,
  resultOf,
  type UntimedCommand,
} from '../../support/call-driver.ts'

/** Ann is the starter; Bob has called her. */
const [ANN, BOB, CAROL] = [1, 2, 3]
const OWN_ID = 78n as CallId

/** Bob's call to Ann and these others. */
function bobsCall(...others: number[]): CallDriver {
  const driver = new CallDriver()
  driver.start([ANN, ...others], BOB)
  return driver
}

interface Start {
  readonly callees?: readonly number[]
  readonly by?: CallActor
  readonly facts?: Partial<CallFacts>
  readonly command?: Partial<Extract<UntimedCommand, { kind: 'start' }>>
}

/** The outcome of Ann's start, so long after Bob's. */
function annsStart(
  calls: readonly Call[],
  afterMs = 1_000,
  { callees = [BOB], ...more }: Start = {},
): CallDecision {
  const driver = new CallDriver()
  driver.nowMs += afterMs
  const command = { ...driver.startCommand(callees, ANN), callId: OWN_ID, ...more.command }
  const facts = { ...driver.facts(callees, ANN), callsBetween: calls, ...more.facts }
  return driver.decide({ ...command, by: more.by ?? command.by }, facts)
}

t.test('a start to one who is calling is refused with that call alone', async t => {
  const decision = annsStart([bobsCall().call])
  t.match(decision, { kind: 'refused', code: 'CALL_CROSSED', awaits: CALL_ID })
  t.same(decision.kind === 'refused' && decision.members, { callId: String(CALL_ID) })
})

t.test('an acknowledged ring, and a device that was not invited, make no difference', async t => {
  const bobs = bobsCall()
  bobs.run({ kind: 'ringing', by: deviceOf(ANN) })
  t.equal(resultOf(annsStart([bobs.call])), 'CALL_CROSSED')
  t.equal(resultOf(annsStart([bobs.call], 1_000, { by: deviceOf(ANN, 2) })), 'CALL_CROSSED')
})

t.test('the caller is there with a socket, or for ten seconds after a request', async t => {
  const bobs = bobsCall()
  t.equal(resultOf(annsStart([bobs.call], 10_000)), 'CALL_CROSSED')
  t.equal(resultOf(annsStart([bobs.call], 10_001)), 'record')
  bobs.nowMs += 9_000
  bobs.run({ kind: 'device-seen', by: deviceOf(BOB) })
  t.equal(resultOf(annsStart([bobs.call], 19_000)), 'CALL_CROSSED')
  t.equal(resultOf(annsStart([bobs.call], 19_001)), 'record')
  bobs.run({ kind: 'device-online', by: deviceOf(BOB) })
  t.equal(resultOf(annsStart([bobs.call], 64_999)), 'CALL_CROSSED')
})

t.test('the call of a caller who is gone ends in the change that starts the other', async t => {
  const bobs = bobsCall()
  const decision = annsStart([bobs.call], 10_001)
  if (decision.kind === 'refused') throw new Error(decision.code)
  t.match(decision.call, { callId: OWN_ID, status: 'ringing', version: 1 })
  const { call, effects } = decision.ended!
  t.match(call, { callId: CALL_ID, status: 'cancelled', endReason: 'caller_lost', version: 2 })
  t.same(inWords(effects), [
    '101 call_cancelled instead, missed',
    '201 call_ended',
    'topic cancelled',
    'history 2 cancelled',
    'history 1 missed',
  ])
})

t.test('no other call is merged, and none is ended', async t => {
  const bobs = bobsCall()
  const group = bobsCall(CAROL)
  const answered = bobsCall()
  answered.join(ANN)
  const rungAgain = bobsCall()
  rungAgain.join(ANN)
  rungAgain.run({ kind: 'leave', by: deviceOf(ANN) })
  rungAgain.invite([ANN], deviceOf(BOB))
  const declined = bobsCall(CAROL)
  declined.run({ kind: 'decline', by: deviceOf(ANN) })
  const over = bobsCall()
  over.run({ kind: 'end', by: deviceOf(BOB) })
  const withheld = new CallDriver()
  const facts = withheld.facts([ANN], BOB)
  const callees = facts.callees.map(callee => ({ ...callee, isWithheld: true }))
  withheld.run(withheld.startCommand([ANN], BOB), { ...facts, callees })
  const carols = new CallDriver()
  carols.start([ANN], CAROL)
  for (const afterMs of [1_000, 20_000]) {
    const cases: Record<string, CallDecision> = {
      'a group': annsStart([group.call], afterMs),
      'two callees': annsStart([bobs.call], afterMs, { callees: [BOB, CAROL] }),
      'an answered one': annsStart([answered.call], afterMs),
      'an answered one that rings again': annsStart([rungAgain.call], afterMs),
      'a declined one': annsStart([declined.call], afterMs),
      'one that is over': annsStart([over.call], afterMs),
      'a withheld one': annsStart([withheld.call], afterMs),
      "somebody else's": annsStart([carols.call], afterMs),
    }
    for (const [name, decision] of Object.entries(cases)) {
      t.equal(resultOf(decision), 'record', `${name} after ${afterMs} ms`)
      t.equal(
        decision.kind === 'accepted' && decision.ended,
        undefined,
        `${name} after ${afterMs} ms: ends nothing`,
      )
    }
  }
  bobs.run({ kind: 'device-online', by: deviceOf(BOB) })
  t.equal(
    resultOf(annsStart([bobs.call], 65_000)),
    'record',
    'one whose ring is over, however late its timer is',
  )
})

t.test(
  'who may not be called and who is in a call hear that first; keys and rooms are looked at after',
  async t => {
    const calls = [bobsCall().call]
    const resultWith = (more: Start) => resultOf(annsStart(calls, 1_000, more))
    t.equal(resultWith({ facts: { callees: [] } }), 'CALLEE_NOT_CONTACT')
    t.equal(resultWith({ facts: { otherCallId: 5n as CallId } }), 'ALREADY_IN_CALL')
    t.equal(resultWith({ command: { calleeIds: [1n as UserId] } }), 'VALIDATION_FAILED')
    t.equal(resultWith({ command: { encryptedAESKeys: {} } }), 'CALL_CROSSED')
    t.equal(resultWith({ command: { encryptedAESKeys: { nobody: '' } } }), 'CALL_CROSSED')
    t.equal(resultWith({ command: { roomId: 7 }, facts: { isRoomInUse: true } }), 'CALL_CROSSED')
    const refused = annsStart(calls, 10_001, { command: { encryptedAESKeys: {} } })
    t.equal(resultOf(refused), 'DEVICE_LIST_MISMATCH', 'a start that is refused ends nothing')
  },
)

t.test('a start that is repeated is answered as before, whatever calls have come since', async t => {
  const driver = new CallDriver()
  driver.start([BOB], ANN)
  const facts = { ...driver.facts([BOB], ANN), callsBetween: [bobsCall().call] }
  const again = driver.run(driver.startCommand([BOB], ANN), facts)
  t.same([again.reply.kind, again.effects, again.ended], ['record', [], undefined])
})
