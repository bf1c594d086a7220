/**
 * The head file as an operator meets it: written before anyone sees a checkpoint, through a full disk, and the data
 * directories it keeps from signing on. How it outlives kills is in `kill.test.ts`.
 */

import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import grpc from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseVerifierKey, type VerifierKey } from '../../src/log/note.ts'
import { lookUp, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { openRefused, openServer } from '../support/open-server.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { freshPublicKey, type RunningServer, startRefused, startServer } from '../support/server.ts'

interface Folders {
  readonly dataFolder: string
  readonly headFile: string
  readonly environment: Readonly<Record<string, string>>
}

function foldersOf(t: Test): Folders {
  const folder = t.testdir({ head: {} })
  const headFile = join(folder, 'head', 'checkpoint')
  return {
    dataFolder: join(folder, 'data'),
    headFile,
    environment: { CALLSIGN_LOG_HEAD_FILE: headFile, CALLSIGN_LOG_LEVEL: 'error' },
  }
}

function sizeOfNote(note: string, verifier: VerifierKey): number {
  return openCheckpoint(note, verifier).treeSize
}

async function servedSize(server: Pick<RunningServer, 'http' | 'vkey'>): Promise<number> {
  const answer = await fetch(`${server.http}/checkpoint`)
  return sizeOfNote(await answer.text(), parseVerifierKey(server.vkey))
}

t.test('a head file without room refuses registrations aloud, shows nothing new, and passes', async t => {
  const { dataFolder, headFile, environment } = foldersOf(t)
  const log = await startLog(t, dataFolder, environment)
  const before = await registerUsers(log.client, 0, 20)
  const shown = await servedSize(log)
  symlinkSync('/dev/full', `${headFile}.draft`)

  const publicKey = freshPublicKey()
  for (let attempt = 0; attempt < 3; attempt++) {
    await t.rejects(log.client.register(900n, 1n, publicKey), { code: grpc.status.UNAVAILABLE })
    await t.rejects(log.client.register(BigInt(901 + attempt), 1n, freshPublicKey()), {
      code: grpc.status.UNAVAILABLE,
    })
  }
  t.equal(await servedSize(log), shown)
  t.equal((await fetch(`${log.admin}/readyz`)).status, 503)
  const found = await lookUp(log.http, [before[3]!.vrfHash])
  t.equal(found[0]?.publicKey, before[3]!.publicKey, 'what was logged is served')

  rmSync(`${headFile}.draft`)
  const first = await registerKey(log.client, 900n, 1n, publicKey)
  t.equal(first.index, shown, 'the key that was refused has the index it was given')
  const after = await registerUsers(log.client, 1_000, 20)
  t.equal(await servedSize(log), shown + 1 + after.length, 'the others were never appended')
  t.equal(readFileSync(headFile, 'utf8'), await (await fetch(`${log.http}/checkpoint`)).text())
})

t.test(
  'a server that ends while its head file is full says so until there is room, then shows all',
  async t => {
    const { dataFolder, headFile, environment } = foldersOf(t)
    const first = await startServer({ dataFolder, environment })
    const client = new RegisterClient(first.grpc)
    await registerUsers(client, 0, 5)
    symlinkSync('/dev/full', `${headFile}.draft`)
    const publicKey = freshPublicKey()
    await t.rejects(client.register(50n, 1n, publicKey), { code: grpc.status.UNAVAILABLE })
    client.close()
    t.equal(await first.end(), 0, 'it stops cleanly')

    const refused = await startRefused({ dataFolder, environment })
    t.equal(refused.code, 1)
    t.match(refused.stderr, /^callsign: CALLSIGN_LOG_HEAD_FILE .* can't be written \(ENOSPC\)$/m)
    t.notMatch(refused.stderr, /\n {4}at /)

    rmSync(`${headFile}.draft`)
    const log = await startLog(t, dataFolder, environment)
    t.equal(await servedSize(log), 6, 'the batch that nobody was told of is shown now')
    t.equal((await registerKey(log.client, 50n, 1n, publicKey)).index, 5)
  },
)

t.test('an older copy, another log and a broken head file refuse to start and say what to do', async t => {
  const { dataFolder, headFile, environment } = foldersOf(t)
  const first = await openServer({ dataFolder, environment })
  const client = new RegisterClient(first.grpc)
  await registerUsers(client, 0, 10)
  client.close()
  await first.end()
  const olderCopy = `${dataFolder}-older`
  cpSync(dataFolder, olderCopy, { recursive: true })

  const second = await openServer({ dataFolder, environment })
  const again = new RegisterClient(second.grpc)
  await registerUsers(again, 100, 10)
  again.close()
  await second.end()
  const note = readFileSync(headFile, 'utf8')

  const refusal = async (folder: string) => {
    const { code, stderr } = await openRefused({ dataFolder: folder, environment })
    t.equal(code, 1)
    t.notMatch(stderr, /\n {4}at /)
    return stderr
  }
  t.match(await refusal(olderCopy), /has 10 entries, but .* of 20: put a newer copy of the data directory/)
  t.match(await refusal(`${dataFolder}-new`), /is not a checkpoint of localhost\/callsign-dev/, 'another key')

  const empty = `${dataFolder}-empty`
  mkdirSync(empty)
  cpSync(join(dataFolder, 'development-keys.env'), join(empty, 'development-keys.env'))
  t.match(await refusal(empty), /has 0 entries, but .* of 20: put a newer copy/)
  t.notOk(existsSync(join(empty, 'store')), 'no empty log is begun under the same key')

  writeFileSync(headFile, note.slice(0, 60))
  t.match(
    await refusal(dataFolder),
    /is not a checkpoint of localhost\/callsign-dev \(.*put this log's own file/,
  )
  writeFileSync(headFile, note)
  const last = await openServer({ dataFolder, environment })
  t.teardown(() => last.end())
  t.equal(await servedSize(last), 20)
})

t.test('a second server that signs on from a copy is noticed and the process stops', async t => {
  const { dataFolder, headFile, environment } = foldersOf(t)
  const original = await startServer({ dataFolder, environment })
  const client = new RegisterClient(original.grpc)
  t.teardown(() => client.close())
  await registerUsers(client, 0, 3)
  const copy = `${dataFolder}-copy`
  cpSync(dataFolder, copy, { recursive: true })
  const twin = await startLog(t, copy, environment)
  await registerUsers(twin.client, 100, 1)
  const exit = once(original.process, 'close')
  await t.rejects(client.register(200n, 1n, freshPublicKey()))
  t.same(await exit, [1, null])
  t.match(original.stderr(), /CALLSIGN_LOG_HEAD_FILE .* was changed by someone else/)
  t.equal(sizeOfNote(readFileSync(headFile, 'utf8'), parseVerifierKey(twin.vkey)), 4, 'the twin’s is kept')
})

t.test('production without a head file says so in one line, and with one is quiet', async t => {
  const { dataFolder, headFile } = foldersOf(t)
  const production = productionEnvironment()
  const warningsOf = async (environment: Record<string, string>) => {
    const server = await startServer({
      dataFolder,
      dev: false,
      environment: { ...production, ...environment },
    })
    await server.end()
    const lines = server.stderr().split('\n')
    return lines.filter(line => line.includes('"log-head-file-unset"') && line.includes('"level":"warn"'))
      .length
  }
  t.equal(await warningsOf({}), 1)
  t.equal(await warningsOf({ CALLSIGN_LOG_HEAD_FILE: headFile }), 0)
})

t.test('a head file inside the data directory is refused by name, also behind a link', async t => {
  const dataFolder = join(t.testdir(), 'data')
  mkdirSync(dataFolder)
  const link = `${dataFolder}-link`
  symlinkSync(dataFolder, link)
  for (const headFile of [join(dataFolder, 'head'), join(dataFolder, 'a', 'b', 'head'), join(link, 'head')]) {
    const { code, stderr } = await openRefused({
      dataFolder,
      environment: { CALLSIGN_LOG_HEAD_FILE: headFile },
    })
    t.equal(code, 1)
    t.match(stderr, /CALLSIGN_LOG_HEAD_FILE .*head is inside the data directory/)
  }
  const environment = { CALLSIGN_LOG_HEAD_FILE: `${dataFolder}-head` }
  const beside = await openServer({ dataFolder, environment })
  await t.resolves(beside.end(), 'a name that only begins alike is fine')
})
