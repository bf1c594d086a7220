/** How a push is shown, by the vectors that the Kotlin package is tested by too. */

import t from 'tap'
import { isOfOtherDevice, judgePush, type PushMembers, pushMembers } from '../../../src/app/calls/push.ts'
import { readVectors } from '../../support/vectors.ts'

interface Vectors {
  readonly device_id: string
  readonly cases: readonly {
    readonly name: string
    readonly server_now_ms?: number
    readonly is_seen?: boolean
    readonly members: PushMembers
    readonly action: { readonly show: string }
  }[]
}

const { device_id, cases } = readVectors<Vectors>('push')

t.test('each push is shown as the vectors say', async t => {
  for (const { name, server_now_ms, is_seen = false, members, action } of cases) {
    const server = { nowMs: () => server_now_ms ?? 0, isTimeKnown: server_now_ms !== undefined }
    const judged = isOfOtherDevice(members, device_id)
      ? { show: 'nothing' }
      : judgePush(members, is_seen, server)
    t.same(judged, action.show === 'notice' ? { ...action, members } : action, name)
  }
})

t.test('members of APNs become texts, and members beside them are left out', async t => {
  const payload = { aps: { alert: 'x' }, isVideo: true, sentAt: 1_000, callId: '7', none: undefined }
  t.same(pushMembers(payload), { isVideo: 'true', sentAt: '1000', callId: '7' })
})
