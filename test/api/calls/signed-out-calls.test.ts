/** A user's calls when their sessions end, in the whole application. */

import t, { type Test } from 'tap'
import type { CallId } from '../../../src/domain/ids.ts'
import { befriend, callTo, newPhone, type Phone } from '../../support/call-provocations.ts'
import { openTestApi } from '../../support/test-api.ts'

/** Ann calls Bob and Cid. */
async function ringing(t: Test) {
  const whole = await openTestApi(t)
  const { world, send } = whole
  const [ann, bob, cid] = [await newPhone(whole), await newPhone(whole), await newPhone(whole)]
  for (const other of [bob, cid]) await befriend(whole, ann, other)
  const post = (phone: Phone, path: string, body: object = {}) =>
    send(`POST /app/api/call/${path}`, { token: phone.token, body })
  const { callId } = (await post(ann, 'start', { ...callTo([bob, cid]), isVideo: false })).body
  return {
    whole,
    ann,
    bob,
    cid,
    join: (phone: Phone) => post(phone, `${callId}/join`),
    /** The call, and Ann, Bob and Cid in it. */
    async states(): Promise<string[]> {
      const id = BigInt(callId) as CallId
      // Answered when what the room was told before is durable.
      await whole.rooms.ask(id, { kind: 'device-seen', by: ann })
      const { status, participants } = whole.stores.calls.open(id)!
      return [status, ...participants.map(({ state }) => state)]
    },
    deleteAccount: ({ token }: Phone) => send('DELETE /app/api/user', { token, body: { confirm: true } }),
    /** A token that was replaced is used again. */
    async stealFrom({ userId, deviceId }: Phone): Promise<void> {
      const isOwn = (id: Uint8Array) =>
        world.database.view(view => world.sessions.read(view, id))?.deviceId === deviceId
      const sessionId = world.database.view(view => world.sessions.idsOf(view, userId)).find(isOwn)!
      const tokens = () =>
        world.authentication.tokensOf(
          sessionId,
          world.database.view(view => world.sessions.read(view, sessionId))!,
        )
      const { refreshToken } = tokens()
      const refresh = (token: string) =>
        send('POST /app/api/refresh-token', { body: { refreshToken: token } })
      for (let times = 0; times < 2; times++) await refresh(tokens().refreshToken)
      t.match((await refresh(refreshToken)).body, { code: 'REFRESH_TOKEN_REUSED' })
    },
  }
}

t.test('who has the account deleted while they are rung has declined', async t => {
  const { bob, cid, states, deleteAccount } = await ringing(t)
  await deleteAccount(bob)
  t.same(await states(), ['ringing', 'joined', 'declined', 'invited'])
  await deleteAccount(cid)
  t.same(await states(), ['declined', 'left', 'declined', 'declined'])
})

t.test('who has the account deleted leaves the call they are in', async t => {
  const { bob, join, states, deleteAccount } = await ringing(t)
  await join(bob)
  await deleteAccount(bob)
  t.same(await states(), ['active', 'joined', 'left', 'invited'])
})

t.test('a device that the list names no more leaves its call', async t => {
  const { whole, bob, join, states } = await ringing(t)
  await join(bob)
  const { userId, deviceId } = bob
  const change = (isRestricted: boolean) =>
    whole.world.database.change(change =>
      change.happened({ kind: 'restriction-changed', userId, deviceId, isRestricted }),
    )
  await change(false)
  t.same(await states(), ['active', 'joined', 'joined', 'invited'])
  await change(true)
  t.same(await states(), ['active', 'joined', 'left', 'invited'])
})

t.test('who has the account deleted while they call takes the call back', async t => {
  const { ann, states, deleteAccount } = await ringing(t)
  await deleteAccount(ann)
  t.same(await states(), ['cancelled', 'left', 'missed', 'missed'])
})

t.test('a device whose session ended by a token that was used again leaves its call', async t => {
  const { bob, join, states, stealFrom } = await ringing(t)
  await join(bob)
  await stealFrom(bob)
  t.same(await states(), ['active', 'joined', 'left', 'invited'])
})
