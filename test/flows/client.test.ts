/** The client module against running servers: the documented example, a log that grows, and logs that cheat. */

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { LogClient, MemoryStore } from '../../src/client/client.ts'
import {
  type LiveLog,
  type RegisteredKey,
  registerKey,
  registerUsers,
  startLog,
} from '../support/live-log.ts'
import { PACKAGE } from '../support/package-name.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const PUBLIC_KEYS = ['vkey', 'vrfPublicKey'] as const

function clientOf(log: LiveLog, store = new MemoryStore()): LogClient {
  const [vkey, vrfPublicKey] = PUBLIC_KEYS.map(name => log[name]) as [string, string]
  return new LogClient({ url: log.http, vkey, vrfPublicKey, store })
}

/** A log of `keys` entries that is stopped, in a folder to copy. */
async function stoppedLog(t: Test, keys: number): Promise<{ folder: string; registered: RegisteredKey[] }> {
  const folder = join(t.testdir(), 'log')
  const log = await startLog(t, folder)
  const registered = await registerUsers(log.client, 1, keys)
  await log.end()
  return { folder, registered }
}

function copyOf(folder: string, name: string): string {
  const copy = join(folder, '..', name)
  cpSync(folder, copy, { recursive: true })
  return copy
}

t.test('the example of the documentation works as pasted', async t => {
  const [, example] = /^```js\n([\s\S]+?)^```$/m.exec(
    readFileSync(join(PROJECT_ROOT, 'docs/check/client.md'), 'utf8'),
  )!
  const folder = t.testdir({ node_modules: {}, data: { try: {} } })
  const log = await startLog(t, join(folder, 'data/dev'))
  mkdirSync(join(folder, 'node_modules', dirname(PACKAGE)))
  symlinkSync(PROJECT_ROOT, join(folder, 'node_modules', PACKAGE))
  writeFileSync(join(folder, 'example.mjs'), example!)
  writeFileSync(join(folder, 'data/try/meta.json'), await (await fetch(`${log.http}/app/api/meta`)).text())
  const register = [startedProgram('scripts/register'), '--user', '1', '--device', '1', '--address', log.grpc]
  const { stdout: device } = await runProgram(process.execPath, register)
  writeFileSync(join(folder, 'data/try/device.json'), device)

  const runExample = () => runProgram('/usr/bin/env', ['-C', folder, process.execPath, 'example.mjs'])
  t.match(await runExample(), {
    code: 0,
    stdout: `the key is ${JSON.parse(device).publicKey}\nonly my own key is logged in my name\n`,
    stderr: '',
  })
  await runProgram(process.execPath, register)
  t.match(await runExample(), { code: 0, stdout: /kind: 'alert',\n +foreign: \[/ })
})

t.test('a log that grows is followed over each growth, and every key verifies', async t => {
  const log = await startLog(t, t.testdir())
  const store = new MemoryStore()
  const app = clientOf(log, store)
  const wrong: unknown[] = []
  const registered: RegisteredKey[] = []
  for (const wave of [1, 2, 60, 194, 4]) {
    registered.push(...(await registerUsers(log.client, registered.length, wave)))
    const outcomes = await app.lookUpAll(registered.slice(-wave))
    wrong.push(...outcomes.filter(({ kind }) => kind !== 'verified'))
    t.equal(store.get(log.origin)?.treeSize, registered.length)
  }
  t.same(wrong, [])
  const { publicKey, ...device } = registered[5]!
  t.match(await app.checkOwnKeys({ ...device, publicKeys: [publicKey] }), { kind: 'clean' })
})

t.test('a second key under a hash: contacts are given it, its owner is warned', async t => {
  const log = await startLog(t, t.testdir())
  const own = await registerKey(log.client, 1n, 1n)
  await registerUsers(log.client, 2, 10)
  const foreign = await registerKey(log.client, 1n, 1n)
  const { userId, deviceId, vrfHash, publicKey } = own
  const device = { userId, deviceId, vrfHash }
  t.match(await clientOf(log).lookUp(device), { kind: 'verified', publicKey: foreign.publicKey })
  t.match(await clientOf(log).lookUp({ ...device, publicKey }), { kind: 'refused', check: 'publicKey' })
  t.match(await clientOf(log).checkOwnKeys({ ...device, publicKeys: [publicKey] }), {
    kind: 'alert',
    foreign: [{ index: 11, publicKey: foreign.publicKey }],
    missing: [],
  })
})

t.test('a key that was never logged is missing, and an unused hash is unanswered', async t => {
  const log = await startLog(t, t.testdir())
  const own = await registerKey(log.client, 1n, 1n)
  const device = { userId: 1n, deviceId: 2n, vrfHash: Buffer.alloc(64).toString('base64') }
  t.match(await clientOf(log).lookUp(device), {
    kind: 'unanswered',
    status: 404,
    code: 'UNKNOWN_PUBLIC_KEY_HASH',
  })
  const report = await clientOf(log).checkOwnKeys({ ...device, publicKeys: [own.publicKey] })
  t.match(report, { kind: 'alert', missing: [own.publicKey] })
})

t.test('two servers that went on from one log show a split view to a client that compares', async t => {
  const { folder, registered } = await stoppedLog(t, 280)
  const [left, right] = [
    await startLog(t, copyOf(folder, 'left')),
    await startLog(t, copyOf(folder, 'right')),
  ]
  await registerKey(left.client, 1000n, 1n)
  await registerKey(right.client, 1000n, 1n)
  const device = registered[5]!
  const [mine, theirs] = [clientOf(left), clientOf(right)]
  t.match(await mine.lookUp(device), { kind: 'verified' })
  t.match(await theirs.lookUp(device), { kind: 'verified' })
  const notes = [(await mine.highestCheckpoint())!.note, (await theirs.highestCheckpoint())!.note]
  t.match(await mine.compareWith(notes[1]!), { kind: 'refused', check: 'fork', evidence: notes })

  const store = new MemoryStore()
  await clientOf(left, store).refreshCheckpoint()
  t.match(await clientOf(right, store).lookUp(device), { kind: 'refused', check: 'fork', evidence: notes })
  await registerKey(right.client, 1001n, 1n)
  t.match(await clientOf(right, store).lookUp(device), { kind: 'refused', check: 'consistency' })
  t.equal(store.get(left.origin)?.note, notes[0])
})

t.test(
  'a server that came back with an older copy is not believed, and refused once it has grown',
  async t => {
    const { folder, registered } = await stoppedLog(t, 20)
    const older = copyOf(folder, 'older')
    const grown = await startLog(t, folder)
    await registerUsers(grown.client, 100, 5)
    const store = new MemoryStore()
    t.match(await clientOf(grown, store).refreshCheckpoint(), {
      kind: 'verified',
      checkpoint: { treeSize: 25 },
    })
    await grown.end()
    const restored = await startLog(t, older)
    const lookUp = () => clientOf(restored, store).lookUp(registered[3]!)
    t.match(await lookUp(), { kind: 'unanswered', check: 'tiles' })
    await registerUsers(restored.client, 200, 6)
    t.match(await lookUp(), { kind: 'refused', check: 'consistency' })
  },
)
