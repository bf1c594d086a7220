/** Commands on their way to rooms: each key is carried out once, whichever process asks, and rates are counted here alone. */

import t, { type Test } from 'tap'
import { CommandIntake } from '../../../src/api/calls/command-intake.ts'
import type { CallReply, CallRequest } from '../../../src/domain/calls/call-command.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { type Rates, USUAL_RATES } from '../../../src/domain/rates.ts'
import { SignalError } from '../../../src/errors.ts'
import { openWorld } from '../../support/application.ts'

const CALL = 7n as CallId
const DONE: CallReply = { kind: 'done' }
const REQUEST = { scope: 'startCall 1', key: 'k', hash: Buffer.alloc(32, 1) }

function commandOf(kind: 'start' | 'invite' | 'request-rejoin' | 'join', userId = 1n): CallRequest {
  const by = { userId: userId as UserId, deviceId: 2n as DeviceId }
  const calling = { by, calleeIds: [], encryptedAESKeys: {}, isVideo: false }
  if (kind === 'start') return { kind, callId: CALL, ...calling }
  return kind === 'invite' ? { kind, ...calling } : { kind, by }
}

function open(t: Test, rates: Partial<Rates> = {}) {
  const world = openWorld(t.testdir(), undefined, { rehearses: false, rates: { ...USUAL_RATES, ...rates } })
  t.teardown(() => world.database.close())
  const intake = new CommandIntake(world)
  const keep = (request: typeof REQUEST, text: string) =>
    world.database.change(change => world.idempotency.keep(change, request, text))
  return { intake, keep }
}

t.test('requests of one key are carried out one after the other, and none that has a kept reply', async t => {
  const { intake, keep } = open(t)
  let endFirst = () => {}
  const first = new Promise<CallReply>(resolve => {
    endFirst = () => resolve(DONE)
  })
  let carriedOut = 0
  const one = intake.take(CALL, commandOf('start'), REQUEST, () => {
    carriedOut += 1
    return first
  })
  const others = [1, 2].map(() =>
    intake.take(CALL, commandOf('start'), REQUEST, async () => {
      carriedOut += 1
      return DONE
    }),
  )
  const apart = { ...REQUEST, key: 'another' }
  t.same(await intake.take(CALL, commandOf('start'), apart, async () => DONE), DONE, 'it waits for nobody')
  t.equal(carriedOut, 1)
  await keep(REQUEST, '{"status":201}')
  endFirst()
  t.same(await one, DONE)
  t.same(await Promise.all(others), Array(2).fill({ kind: 'kept', text: '{"status":201}' }))
  t.equal(carriedOut, 1)
  const reused = intake.take(
    CALL,
    commandOf('start'),
    { ...REQUEST, hash: Buffer.alloc(32, 2) },
    async () => DONE,
  )
  await t.rejects(reused, { code: 'IDEMPOTENCY_KEY_REUSED' })
})

t.test('a request that failed is carried out when it comes again', async t => {
  const { intake } = open(t)
  const refusal = new SignalError('STORE_UNAVAILABLE', 'not now')
  const failing = intake.take(CALL, commandOf('start'), REQUEST, () => Promise.reject(refusal))
  const again = intake.take(CALL, commandOf('start'), REQUEST, async () => DONE)
  await t.rejects(failing, refusal)
  t.same(await again, DONE)
})

t.test(
  'starts and invitations count for their user, questions for a key for user and call; kept replies for nobody',
  async t => {
    const few = { count: 1, perMs: 60_000, burst: 2 }
    for (const [kind, name] of [
      ['start', 'call-start'],
      ['start', 'call-start-day'],
      ['invite', 'call-invite'],
      ['request-rejoin', 'request-rejoin'],
    ] as const) {
      const { intake, keep } = open(t, { [name]: few })
      const ask = (userId = 1n, callId = CALL) =>
        intake.take(callId, commandOf(kind, userId), undefined, async () => DONE)
      await ask()
      await keep(REQUEST, '{"status":204}')
      const kept = intake.take(CALL, commandOf(kind), REQUEST, async () => DONE)
      t.same(await kept, { kind: 'kept', text: '{"status":204}' })
      await ask()
      const scope = kind === 'request-rejoin' ? 'call' : 'user'
      await t.rejects(ask(), { code: 'RATE_LIMITED', members: { scope } }, name)
      t.same(await ask(2n), DONE)
      const other = ask(1n, 8n as CallId)
      if (kind === 'request-rejoin') t.same(await other, DONE)
      else await t.rejects(other, { code: 'RATE_LIMITED' })
      for (let at = 0; at < 5; at++)
        t.same(await intake.take(CALL, commandOf('join'), undefined, async () => DONE), DONE)
    }
  },
)
