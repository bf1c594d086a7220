/**
 * A call's number of messages in inboxes, each a row to seal, to commit and to settle: counted in the whole
 * application, with a device for each callee.
 */

import t, { type Test } from 'tap'
import type { CallId } from '../../../src/domain/ids.ts'
import { befriend, callTo, newPhone, type Phone } from '../../support/call-provocations.ts'
import { historyEffect } from '../../support/history-effect.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const CALLEES = 10

interface Town extends TestApi {
  readonly ann: Phone
  readonly callees: readonly Phone[]
  readonly post: (phone: Phone, path: string, body?: object) => Promise<string>
  /** Counts, by kind, messages put into the callees' inboxes since the last call of this. */
  readonly kept: () => Record<string, number>
}

async function openTown(t: Test): Promise<Town> {
  const whole = await openTestApi(t, { rehearses: false })
  const ann = await newPhone(whole)
  const callees: Phone[] = []
  for (let at = 0; at < CALLEES; at++) {
    const callee = await newPhone(whole)
    await befriend(whole, ann, callee)
    callees.push(callee)
  }
  const { inbox } = whole.stores
  const kinds: string[] = []
  const append = inbox.append.bind(inbox)
  inbox.append = (change, userId, deviceId, entry) => {
    const { item } = entry
    if (userId !== ann.userId) kinds.push(item.kind === 'notice' ? item.body.kind : item.kind)
    return append(change, userId, deviceId, entry)
  }
  return {
    ...whole,
    ann,
    callees,
    async post({ token }, path, body = {}) {
      const answer = await whole.send(`POST /app/api/call/${path}`, { token, body })
      return answer.body?.callId
    },
    kept() {
      const counts: Record<string, number> = {}
      for (const kind of kinds.splice(0)) counts[kind] = (counts[kind] ?? 0) + 1
      return counts
    },
  }
}

function start({ ann, callees, post }: Town): Promise<string> {
  return post(ann, 'start', { ...callTo(callees), isVideo: false })
}

/** Fills the callees' call histories; each one's oldest call is a missed one. */
async function fillHistories({ stores, world, callees }: Town): Promise<void> {
  const { history } = stores
  const nowMs = world.nowMs()
  const row = (at: number) =>
    ({
      callId: BigInt(at + 1) as CallId,
      createdAtMs: nowMs - 10_000 + at,
      status: at === 0 ? 'missed' : 'ended',
      endedAtMs: nowMs,
    }) as const
  await world.database.change(change => {
    for (const { userId } of callees) {
      for (let at = 0; at < 1_000; at++) history.put(change, historyEffect(userId, row(at)))
    }
  })
}

t.test('a call to ten that its caller gives up leaves them two messages each', async t => {
  const town = await openTown(t)
  town.kept()
  const callId = await start(town)
  await town.post(town.ann, `${callId}/end`)
  t.same(town.kept(), { call_invitation: CALLEES, call_cancelled: CALLEES })
})

t.test('a call to ten people with full histories leaves them two messages each', async t => {
  const town = await openTown(t)
  await fillHistories(town)
  town.kept()
  const callId = await start(town)
  await town.post(town.ann, `${callId}/end`)
  t.same(town.kept(), { call_invitation: CALLEES, call_cancelled: CALLEES })
})
