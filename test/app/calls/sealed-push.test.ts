/** Sealed pushes, by the vectors that the server and the Kotlin package are tested by too. */

import t from 'tap'
import { Pushes } from '../../../src/app/calls/push.ts'
import { makePushKey, openPush, pushKeyOf } from '../../../src/app/calls/sealed-push.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { readVectors } from '../../support/vectors.ts'

interface Sealed {
  readonly name: string
  readonly pushKey: string
  readonly deviceId: string
  readonly sealed: string
}

interface Vectors {
  readonly opens: readonly (Sealed & { readonly members: Readonly<Record<string, unknown>> })[]
  readonly refused: readonly Sealed[]
}

const { opens, refused } = readVectors<Vectors>('sealed-push')
const USER = '7'
const SERVER = { nowMs: () => 0, isTimeKnown: false }

t.test('a push opens with the key and the id of its device', async t => {
  for (const { name, pushKey, deviceId, sealed, members } of opens) {
    t.same(await openPush(pushKey, deviceId, sealed), members, name)
  }
})

t.test('nothing else opens', async t => {
  for (const { name, pushKey, deviceId, sealed } of refused) {
    t.equal(await openPush(pushKey, deviceId, sealed), undefined, name)
  }
})

t.test('the key is made once, and kept for its user', async t => {
  const storage = memoryStorage()
  t.equal(await pushKeyOf(storage, USER), undefined)
  const pushKey = await makePushKey(storage, USER)
  t.match(pushKey, /^[A-Za-z0-9+/]{43}=$/)
  t.equal(await makePushKey(storage, USER), pushKey)
  t.equal(await pushKeyOf(storage, USER), pushKey)
  t.not(await makePushKey(storage, '8'), pushKey)
  await storage.put(`push-key.${USER}`, { pushKey: pushKey.slice(4) })
  await t.rejects(makePushKey(storage, USER), { code: 'STORAGE_CORRUPT' })
})

t.test('the server gets the key with the tokens, or that there is none any more', async t => {
  const storage = memoryStorage()
  const device = { deviceInfo: { platform: 'android' }, push: { fcmToken: 'f' } }
  const sealed = await new Pushes({ storage, device, sealedPushes: true }).detailsFor(USER)
  t.same(sealed, { ...device, push: { fcmToken: 'f', pushKey: await pushKeyOf(storage, USER) } })
  t.same(await new Pushes({ storage, sealedPushes: false }).detailsFor(USER), { push: { pushKey: '' } })
  t.equal(await new Pushes({ storage, device }).detailsFor(USER), device)
})

t.test('a sealed push is shown as an open one', async t => {
  const storage = memoryStorage()
  const [{ pushKey, deviceId, sealed, members } = opens[0]!] = opens
  const device = { userId: USER, deviceId }
  const judge = (payload: object) =>
    new Pushes({ storage }).judge(payload as Record<string, unknown>, device, SERVER)
  t.equal(await judge({ sealed }), undefined, 'without a key')
  await storage.put(`push-key.${USER}`, { pushKey })
  const open = await judge(members)
  t.match(open, { action: { show: 'ringing', callerName: 'Mum' }, members: { type: 'call_invitation' } })
  t.same(await judge({ aps: {}, sealed }), open)
  for (const other of refused) {
    if (other.pushKey === pushKey && other.deviceId === deviceId)
      t.equal(await judge(other), undefined, other.name)
  }
})
