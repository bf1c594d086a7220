/** The key log of an app that knows the index of its log, whose operator lies. */

import t from 'tap'
import { memoryStorage } from '../../../src/app/app.ts'
import { type KeyEvent, KeyLog, type KeyLogDeps } from '../../../src/app/devices/key-log.ts'
import { shareFragment } from '../../../src/client/client.ts'
import { newPublicKey } from '../../support/app.ts'
import { toBase64 } from '../../support/bytes.ts'
import { LyingLog } from '../../support/lying-log.ts'

const ANN = 7n
const DEVICE = 2n ** 32n + 1n
const publicKey = newPublicKey('P-256 X9.63')

/** Ann’s app. Her device is leaf 3 of 10, and the index covers all ten. */
function annsApp(request: (operation: string) => unknown = () => undefined) {
  const log = new LyingLog()
  log.grow(3)
  const { vrfHash } = log.register(ANN, DEVICE, publicKey)
  log.grow(10)
  log.index.append(log)
  const events: KeyEvent[] = []
  const deps = {
    session: { request, accessToken: () => Promise.reject(new Error('signed out')) },
    storage: memoryStorage(),
    device: { userId: `${ANN}`, deviceId: `${DEVICE}`, publicKeyHash: vrfHash, keys: { publicKey } },
    server: { url: 'https://log.example' },
    log: {
      policy: `log ${log.published.vkey}\nlog ${log.index.vkey}\nquorum none\n`,
      vrfPublicKey: log.published.vrfPublicKey,
      fetch: log.fetch(),
    },
    onEvent: (event: KeyEvent) => void events.push(event),
    onReset: 'ask',
  } as unknown as KeyLogDeps
  const start = () => new KeyLog(deps)
  return { log, events, start, keyLog: start() }
}

t.test('the own key twice under its hash is refused, since other apps refuse it', async t => {
  const { log, events, keyLog } = annsApp()
  t.match(await keyLog.checkOwn(), { kind: 'clean', complete: true, isProved: false })
  log.register(ANN, DEVICE, publicKey)
  await t.rejects(keyLog.checkOwn(), { code: 'KEYS_REFUSED', members: { check: 'otherKey' } })
  t.match(events, [{ kind: 'refused', check: 'otherKey', userId: `${ANN}` }])
})

t.test('another key in its name is an alert, as without an index', async t => {
  const { log, events, keyLog } = annsApp()
  log.register(ANN, DEVICE)
  t.match(await keyLog.checkOwn(), { kind: 'alert', foreign: [{ index: 10 }], complete: true })
  t.match(events, [{ kind: 'own-key-alert' }])
})

t.test(
  'a list that was logged since the answer says that there is none has the server asked again',
  async t => {
    const BOB = 8n
    let asked = 0
    let isLate = false
    const { log, events, keyLog } = annsApp(operation => {
      t.equal(operation, 'GET user/publicKeys')
      asked++
      const absent = log.absent(BOB)
      // Bob's app makes its list while the answer is on its way.
      if (isLate && asked === 1) log.register(BOB, 0n)
      const { vrfHash: publicKeyHash, publicKey } = bobs
      const device = { deviceId: `${DEVICE}`, keyAlgorithm: 'P-256 X9.63', publicKey, publicKeyHash }
      return Promise.resolve({ users: [{ userId: `${BOB}`, devices: [device], absent }] })
    })
    const bobs = log.register(BOB, DEVICE, newPublicKey('P-256 X9.63'))
    t.match(await keyLog.devicesOf([`${BOB}`]), [{ isListed: false }])
    t.equal(asked, 1)
    ;[asked, isLate] = [0, true]
    // This server says so again: it is refused once, and with nothing that accuses the log.
    await t.rejects(keyLog.devicesOf([`${BOB}`]), {
      code: 'KEYS_REFUSED',
      members: { check: 'completeness' },
    })
    t.equal(asked, 3)
    t.match(events, [{ kind: 'refused', check: 'completeness', userId: `${BOB}` }])
    t.same(await keyLog.evidence(), [])
  },
)

t.test('a link that shows another index is evidence, also after the app has started again', async t => {
  const { log, events, keyLog, start } = annsApp()
  await keyLog.checkOwn()
  const other = log.index.fork(0).append(log, { treeSize: 5 })
  const checkpointOf = ({ note, origin }: { note: string; origin: string }) => {
    const [, treeSize, rootHash] = note.split('\n') as [string, string, string]
    return { origin, treeSize: Number(treeSize), rootHash, note }
  }
  const person = { userId: 8n, listHash: toBase64(new Uint8Array(32)) }
  const origin = log.index.signer.name
  const shared = checkpointOf({ note: log.note(), origin: log.signer.name })
  const honest = shareFragment(person, shared, checkpointOf({ note: log.index.note(), origin }))
  t.match(await keyLog.openShared(honest), person)
  t.same([events, await keyLog.evidence()], [[], []])
  const again = start()
  const forked = shareFragment(person, shared, checkpointOf({ note: other.note(), origin }))
  t.match(await again.openShared(forked), person)
  t.match(events, [{ kind: 'refused', check: 'fork', userId: '8' }])
  t.match(await again.evidence(), [[log.index.note(), other.note()]])
  const stranger = new LyingLog({ number: 2 })
  const foreign = checkpointOf({ note: stranger.index.append(stranger).note(), origin })
  await t.rejects(again.openShared(shareFragment(person, shared, foreign)), { code: 'MALFORMED' })
})
