/** The device's keys and their registration with the real server: restarts, lost answers, two devices, damaged storage. */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'

import { CallsignError } from '../../../src/app/callsign-error.ts'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import type { DeviceDetails } from '../../../src/app/devices/device-registration.ts'
import { fileStorage } from '../../../src/app/storage/file-storage.ts'
import { type AppStorage, memoryStorage } from '../../../src/app/storage/storage.ts'
import { judgeDeviceList, parseDeviceList } from '../../../src/log/device-list.ts'
import { registrationOf } from '../../support/app-connections.ts'
import { type AppSession, platformOf, rejectionOf, signIn, startApp } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { CuttingProxy } from '../../support/cutting-proxy.ts'
import { openServer } from '../../support/open-server.ts'
import { long } from '../../support/size.ts'

async function open(t: Test) {
  const server = await openServer({ dataFolder: t.testdir({}), environment: settingsFor(2) })
  t.teardown(() => server.end())
  return server
}

function register(app: AppSession, details?: DeviceDetails) {
  return registrationOf(app).register(details)
}

async function ownKeys({ session }: AppSession) {
  const { users } = await session.request('GET user/publicKeys', undefined)
  return users[0]!
}

t.test('the first device comes with a list, and is the same after a restart and another sign-in', async t => {
  const { http } = await open(t)
  const app = await startApp(http)
  t.equal(await rejectionOf(register(app)), 'SIGNED_OUT')
  const { user } = await signIn(app)
  const device = await register(app, { deviceInfo: { platform: 'node', name: 'Desk' } })
  const { devices, deviceList } = await ownKeys(app)
  t.match(devices, [{ deviceId: device.deviceId, publicKeyHash: device.publicKeyHash }])
  const bytes = Buffer.from(deviceList!, 'base64')
  t.match(judgeDeviceList(BigInt(user.userId), undefined, bytes), { kind: 'first', list: { seq: 0 } })

  const restarted = await startApp(http, { storage: app.storage })
  t.equal((await register(restarted)).deviceId, device.deviceId)
  await restarted.session.logout()
  await signIn(restarted)
  t.equal((await register(restarted)).deviceId, device.deviceId)
  const after = await ownKeys(restarted)
  t.equal(after.devices.length, 1)
  t.equal(after.deviceList, deviceList)
})

t.test('a device that was registered without a list gets one', async t => {
  const { http } = await open(t)
  const app = await startApp(http)
  const { user } = await signIn(app)
  const { publicKey } = await webCryptoKeys(app.storage)(user.userId)
  const { deviceId } = await app.session.request('POST register_device', { publicKey })
  t.equal((await ownKeys(app)).deviceList, undefined)
  t.equal((await register(app)).deviceId, deviceId)
  const { deviceList } = await ownKeys(app)
  t.equal(`${parseDeviceList(Buffer.from(deviceList!, 'base64')).signerDeviceId}`, deviceId)
})

t.test('a registration is repeated after a lost answer, also after the app has ended', long(), async t => {
  const server = await open(t)
  const proxy = await CuttingProxy.open(t, Number(new URL(server.http).port))
  const url = `http://127.0.0.1:${proxy.port}`
  for (const [at, cut] of (['answered', 'before'] as const).entries()) {
    const keys: (string | null)[] = []
    const watched: typeof fetch = (input, init) => {
      if (String(input).endsWith('register_device'))
        keys.push(new Headers(init?.headers).get('idempotency-key'))
      return fetch(input, init)
    }
    const app = await startApp(url, { platform: platformOf(), fetch: watched })
    await signIn(app, at)
    proxy.arm('register_device', cut)
    const { deviceId } = await register(app)
    t.equal(keys.length, 2)
    t.ok(keys[0])
    t.equal(keys[1], keys[0])
    t.equal(proxy.cuts, 2 * at + 1)
    t.same(
      (await ownKeys(app)).devices.map(each => each.deviceId),
      [deviceId],
    )

    const end = () => Promise.reject(new Error('the app ends'))
    const ending = await startApp(url, { storage: app.storage, platform: platformOf({ wait: end }) })
    proxy.arm('register_device', cut)
    t.match(await rejectionOf(register(ending)), /the app ends/)
    const restarted = await startApp(url, { storage: app.storage })
    t.equal((await register(restarted)).deviceId, deviceId)
    t.equal((await ownKeys(restarted)).devices.length, 1)
  }
})

t.test(
  'an app that ends while its first device is registered goes on with the same list',
  long(),
  async t => {
    const server = await open(t)
    const proxy = await CuttingProxy.open(t, Number(new URL(server.http).port))
    const end = () => Promise.reject(new Error('the app ends'))
    const ending = await startApp(`http://127.0.0.1:${proxy.port}`, { platform: platformOf({ wait: end }) })
    const { user } = await signIn(ending)
    proxy.arm('register_device', 'before')
    t.match(await rejectionOf(register(ending)), /the app ends/)
    const first = await ending.storage.get(`first-list.${user.userId}`)
    const restarted = await startApp(server.http, { storage: ending.storage })
    await register(restarted)
    const { devices, deviceList } = await ownKeys(restarted)
    t.equal(devices.length, 1)
    t.match(first, { list: deviceList })
    t.equal(await ending.storage.get(`first-list.${user.userId}`), null)
  },
)

t.test('two devices of one user: the second one waits for the list of the first', async t => {
  const { http } = await open(t)
  const [one, other] = [await startApp(http), await startApp(http)]
  await signIn(one)
  await signIn(other)
  const first = await register(one)
  const second = await register(other)
  t.not(first.deviceId, second.deviceId)
  const { devices, deviceList } = await ownKeys(other)
  t.same(new Set(devices.map(each => each.deviceId)), new Set([first.deviceId, second.deviceId]))
  t.ok(devices.every(each => each.signingKey !== undefined))
  const list = parseDeviceList(Buffer.from(deviceList!, 'base64'))
  t.same(
    list.devices.map(each => `${each.deviceId}`),
    [first.deviceId],
  )
})

t.test('the first list is the same one until there is an answer', async t => {
  const storage = memoryStorage()
  const lists: unknown[] = []
  const request = async (operation: string, body: { readonly deviceList?: string }) => {
    if (operation === 'GET user/publicKeys') return { users: [{ userId: '1', devices: [] }] }
    lists.push(body.deviceList)
    if (lists.length === 1) throw new CallsignError('NO_ANSWER', '')
    return { deviceId: '5', publicKeyHash: 'hash' }
  }
  const session = { userId: '1', challenge: Buffer.alloc(32).toString('base64'), request }
  const app = { session, storage, server: { nowMs: Date.now } } as unknown as AppSession
  t.equal(await rejectionOf(register(app)), 'NO_ANSWER')
  t.match(await register(app), { deviceId: '5' })
  t.type(lists[0], 'string')
  t.equal(lists[1], lists[0])
})

t.test('two first devices at once: one of them makes the list', long(), async t => {
  const { http } = await open(t)
  const apps = await Promise.all([startApp(http), startApp(http)])
  for (const app of apps) await signIn(app)
  const [one, other] = await Promise.all(apps.map(app => register(app)))
  const { devices, deviceList } = await ownKeys(apps[0]!)
  t.equal(devices.length, 2)
  const list = parseDeviceList(Buffer.from(deviceList!, 'base64'))
  t.equal(list.devices.length, 1)
  t.ok([one?.deviceId, other?.deviceId].includes(`${list.signerDeviceId}`))
})

t.test('keys in files: the same device after a restart, and never a silent change of device', async t => {
  const { http } = await open(t)
  const folder = join(t.testdir({}), 'state')
  const app = await startApp(http, { storage: fileStorage(folder) })
  const { user } = await signIn(app)
  const { deviceId } = await register(app)
  const restart = async () => register(await startApp(http, { storage: fileStorage(folder) }))
  t.equal((await restart()).deviceId, deviceId)

  const file = join(folder, `keys.${user.userId}.json`)
  const text = readFileSync(file, 'utf8')
  const kept = JSON.parse(text)
  const damaged = [
    '',
    text.slice(0, 100),
    '[]',
    JSON.stringify({ ...kept, privateKey: kept.privateKey.replace(/....$/, '') }),
    JSON.stringify({ ...kept, privateKey: kept.signingPrivateKey }),
    JSON.stringify({ ...kept, signingPrivateKey: kept.privateKey }),
    JSON.stringify({ ...kept, signingKey: kept.publicKey }),
  ]
  for (const each of damaged) {
    writeFileSync(file, each)
    t.equal(await rejectionOf(restart()), 'STORAGE_CORRUPT', each.slice(0, 20))
    t.equal(readFileSync(file, 'utf8'), each)
  }
  rmSync(file)
  t.equal(await rejectionOf(restart()), 'DEVICE_KEYS_LOST')
  t.equal(await rejectionOf(restart()), 'DEVICE_KEYS_LOST')
  writeFileSync(file, text)
  t.equal((await restart()).deviceId, deviceId)
  t.equal((await ownKeys(app)).devices.length, 1)
  t.same(readdirSync(folder).sort(), [
    `device.${user.userId}.json`,
    `first-list.${user.userId}.json`,
    `keys.${user.userId}.json`,
    'session.json',
  ])
})

t.test('private keys can’t be exported where the storage keeps CryptoKeys', async t => {
  const values = new Map<string, unknown>()
  const storage: AppStorage = {
    keepsCryptoKeys: true,
    get: async key => values.get(key),
    put: async (key, value) => void values.set(key, structuredClone(value)),
  }
  const keysOf = webCryptoKeys(storage)
  t.equal(await keysOf('1'), await keysOf('1'))
  t.match(values.get('keys.1'), {
    privateKey: { extractable: false },
    signingPrivateKey: { extractable: false },
  })
})
