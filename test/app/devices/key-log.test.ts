/** The key log as the SDK remembers it: damaged values, and ends of the app between two writes. */

import t, { type Test } from 'tap'
import { KeyLog } from '../../../src/app/devices/key-log.ts'
import type { AppStorage } from '../../../src/app/storage/storage.ts'
import { registrationOf } from '../../support/app-connections.ts'
import { type AppPerson, becomeContacts, startPerson } from '../../support/app-people.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { startLog } from '../../support/live-log.ts'
import { long } from '../../support/size.ts'

const MIRROR = 'https://mirror.example'

interface KeptStorage extends AppStorage {
  readonly values: Map<string, string>
  /** The app ends at the write after so many. */
  writesLeft: number
}

/** JSON in memory. */
function keptStorage(values = new Map<string, string>()): KeptStorage {
  return {
    values,
    writesLeft: Number.POSITIVE_INFINITY,
    get: async key => JSON.parse(values.get(key) ?? 'null'),
    async put(key, value) {
      if (this.writesLeft-- === 0) throw new Error('the app ends')
      values.set(key, JSON.stringify(value))
    },
  }
}

async function openHouse(t: Test) {
  const server = await startLog(t, t.testdir(), settingsFor(2))
  const storage = keptStorage()
  const ann = await startPerson(server, 0, storage)
  const bob = await startPerson(server, 1)
  await becomeContacts(ann, bob)
  return { server, ann, bob, storage }
}

/** As an app does at its start and before a call. */
async function useKeys({ keyLog }: AppPerson, contact: AppPerson): Promise<void> {
  await keyLog.checkOwn()
  await keyLog.ownUser()
  const link = await keyLog.openShared(await contact.keyLog.shareFragment())
  await keyLog.expect(link!)
  await keyLog.devicesOf([contact.userId])
}

t.test('a damaged value is reported, and stays as it is', async t => {
  const { server, ann, bob, storage } = await openHouse(t)
  await useKeys(ann, bob)
  const expected = [...storage.values].filter(([key]) => key.startsWith('expected.'))
  t.match(expected, [[String, 'null']], 'a person of a link is verified once')
  await ann.keyLog.expect((await ann.keyLog.openShared(await bob.keyLog.shareFragment()))!)
  const keys = [...storage.values.keys()].filter(key => /^(checkpoint|known|expected)\./.test(key))
  t.equal(keys.length, 4, 'checkpoint, two known users, one expected')
  const restart = (storage: AppStorage) => startPerson(server, 0, storage)
  for (const key of keys) {
    const value = storage.values.get(key)!
    const damaged = [
      '7',
      '{}',
      value.replaceAll(/"[A-Za-z0-9+/]{20,}={0,2}"/g, '"?"'),
      value.replace(/\\n— .*/, '"}'),
    ]
    for (const each of damaged) {
      if (each === value) continue
      const again = keptStorage(new Map(storage.values).set(key, each))
      const person = await restart(again)
      const own = key.endsWith(`.${ann.userId}`)
      const used = own ? person.keyLog.ownUser() : person.keyLog.devicesOf([bob.userId])
      t.equal(await rejectionOf(used), 'STORAGE_CORRUPT', `${key.split('.')[0]}: ${each.slice(0, 80)}`)
      t.equal(again.values.get(key), each)
      t.same(person.events, [], 'it is not said of the server')
    }
  }
})

t.test('an app that ends between two writes goes on, and has forgotten nothing', long(), async t => {
  const { server, ann, bob, storage } = await openHouse(t)
  const before = new Map(storage.values)
  await useKeys(ann, bob)
  const known = (values: Map<string, string>) =>
    [...values].filter(([key]) => /^(known|checkpoint)/.test(key)).sort()
  const whole = known(storage.values)
  let ends = 0
  for (let writes = 0; ; writes++) {
    const ending = keptStorage(new Map(before))
    const person = await startPerson(server, 0, ending)
    ending.writesLeft = writes
    const code = await rejectionOf(useKeys(person, bob))
    if (code === 'none') break
    ends++
    t.equal(code, 'STORAGE_FAILED')
    const restarted = await startPerson(server, 0, keptStorage(ending.values))
    await useKeys(restarted, bob)
    t.same(known(ending.values), whole)
    t.same(restarted.events, [])
  }
  t.ok(ends > 3, `${ends} writes`)
})

t.test('lookups have the access token, files of the log and other servers do not', async t => {
  const server = await startLog(t, t.testdir(), { ...settingsFor(2), CALLSIGN_KT_REQUIRE_AUTH: '1' })
  const { http, vkey, vrfPublicKey } = server
  const ann = await startPerson(server, 0)
  const bob = await startPerson(server, 1)
  await becomeContacts(ann, bob)
  const device = await registrationOf(ann).register()
  const sent: { readonly url: string; readonly authorization: string | undefined }[] = []
  const fetchThere: typeof fetch = (asked, init) => {
    const url = String(asked)
    const headers = init?.headers as Record<string, string>
    sent.push({ url, authorization: headers.authorization })
    // The log's own tiles are missing, and the mirror has them.
    if (url.startsWith(`${http}/tile/`)) return fetch(`${http}/none`)
    return fetch(url.replace(MIRROR, http), init)
  }
  // An app in JavaScript may name a mirror beside the keys.
  const log = { vkey, vrfPublicKey, mirror: MIRROR, fetch: fetchThere }
  const keyLog = new KeyLog({ ...ann, device, log, onEvent: () => {}, onReset: 'ask' })
  await keyLog.checkOwn()
  await startPerson(server, 1)
  await keyLog.devicesOf([bob.userId])
  const token = `Bearer ${await ann.session.accessToken()}`
  const lookups = sent.filter(({ url }) => url.startsWith(`${http}/api/`))
  t.ok(lookups.length >= 3)
  t.ok(lookups.every(({ authorization }) => authorization === token))
  const others = sent.filter(each => !lookups.includes(each))
  t.ok(others.some(({ url }) => url.startsWith(`${http}/tile/`)))
  t.ok(others.some(({ url }) => url.startsWith(`${MIRROR}/tile/`)))
  t.ok(others.every(({ authorization }) => authorization === undefined))

  sent.length = 0
  await ann.session.logout()
  t.equal(await rejectionOf(keyLog.checkOwn()), 'LOG_UNANSWERED', 'a token is needed here')
  t.match(sent, [{ authorization: undefined }], 'asked all the same')
})
