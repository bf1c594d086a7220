/**
 * The index against what is recorded of it outside the store: an older copy of the data directory, a restore, a key that is new or
 * was there before. It is held, and the server goes on.
 */

import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { backUp, restore } from '../../src/check/backup.ts'
import { INDEX_TABLES } from '../../src/keyserver/index/index-tables.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { RawTables } from '../support/damage.ts'
import { freshPublicKey, type RunningServer, startServer } from '../support/server.ts'

interface Place {
  readonly folder: string
  readonly dataFolder: string
  readonly environment: Readonly<Record<string, string>>
}

const ORIGIN = 'log.example/records'

function placeOf(t: Test, { hasHeadFile = true } = {}): Place {
  const folder = t.testdir({ head: {} })
  const keys = generateKeys(ORIGIN, length => randomBytes(length))
  return {
    folder,
    dataFolder: join(folder, 'data'),
    environment: {
      CALLSIGN_ORIGIN: ORIGIN,
      KT_PRIVATE_KEY: keys.ktPrivateKey,
      VRF_PRIVATE_KEY: keys.vrfPrivateKey,
      CALLSIGN_SECRET: keys.secret,
      KT_INDEX_PRIVATE_KEY: keys.ktIndexPrivateKey,
      CALLSIGN_INDEX_SECONDS: '1',
      ...(hasHeadFile && { CALLSIGN_LOG_HEAD_FILE: join(folder, 'head', 'checkpoint') }),
    },
  }
}

async function metricsOf({ admin }: RunningServer): Promise<Map<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const lines = text.split('\n').filter(line => line.startsWith('callsign_index_'))
  return new Map(
    lines.map(line => line.split(' ') as [string, string]).map(([name, value]) => [name, Number(value)]),
  )
}

/** Resolves when a figure of the index is so. */
async function until(server: RunningServer, isSo: (figures: Map<string, number>) => boolean): Promise<void> {
  while (!isSo(await metricsOf(server))) await setTimeout(50)
}

/** A server that registers a few keys, and ends when its index has them. */
async function run({ dataFolder, environment }: Place, firstUser: number, args: readonly string[] = []) {
  const server = await startServer({ dataFolder, environment, args })
  const client = new RegisterClient(server.grpc)
  for (let user = firstUser; user < firstUser + 3; user++)
    await client.register(BigInt(user), 1n, freshPublicKey())
  client.close()
  await until(
    server,
    figures =>
      figures.get('callsign_index_held') === 1 ||
      (figures.get('callsign_index_lag_entries') === 0 && figures.get('callsign_index_leaves')! > 0),
  )
  const isHeld = (await metricsOf(server)).get('callsign_index_held') === 1
  const shown = await fetch(`${server.http}/index/checkpoint`)
  const body = await shown.text()
  await server.end()
  const held = server
    .stderr()
    .split('\n')
    .find(line => line.includes('index-held'))
  return {
    isHeld,
    status: shown.status,
    body,
    reason: held === undefined ? '' : (JSON.parse(held).reason as string),
  }
}

t.test('an older index beside the newest log is held, and the log goes on', async t => {
  const place = placeOf(t)
  const recorded = join(place.folder, 'head', 'checkpoint.index')
  t.match(await run(place, 1), { isHeld: false, status: 200 })
  const older = join(place.folder, 'older')
  cpSync(place.dataFolder, older, { recursive: true })
  cpSync(join(place.folder, 'head', 'checkpoint'), join(place.folder, 'older-head'))
  await run(place, 11)
  const newest = readFileSync(recorded, 'utf8')
  rmSync(place.dataFolder, { recursive: true })
  cpSync(older, place.dataFolder, { recursive: true })
  // As if only the log's own record had gone.
  cpSync(join(place.folder, 'older-head'), join(place.folder, 'head', 'checkpoint'))
  const held = await run(place, 21)
  t.match(held, {
    isHeld: true,
    status: 503,
    body: /no index of the log, or it is being built or held/,
    reason: /output log of the index in .* leaves, but CALLSIGN_LOG_HEAD_FILE/,
  })
  t.equal(readFileSync(recorded, 'utf8'), newest, 'nothing was signed')
})

t.test('after a restore the index asks for its newest checkpoint', async t => {
  const place = placeOf(t, { hasHeadFile: false })
  await run(place, 1)
  const backup = join(place.folder, 'backup')
  await backUp(place.dataFolder, backup)
  const restored = { ...place, dataFolder: join(place.folder, 'restored') }
  mkdirSync(restored.dataFolder)
  await restore(backup, restored.dataFolder)
  const server = await startServer({ ...place })
  const [log, index] = ['/checkpoint', '/index/checkpoint'].map(path => fetch(`${server.http}${path}`))
  const known = join(place.folder, 'known')
  const knownIndex = join(place.folder, 'known-index')
  writeFileSync(known, await (await log!).text())
  writeFileSync(knownIndex, await (await index!).text())
  await server.end()
  const asked = await run(restored, 11, ['--known-checkpoint', known])
  t.match(asked, { isHeld: true, status: 503, reason: /--known-index-checkpoint FILE/ })
  t.match(await run(restored, 21), { isHeld: true }, 'the question stays')
  t.match(await run(restored, 31, ['--known-index-checkpoint', knownIndex]), { isHeld: false, status: 200 })
  t.match(await run(restored, 41), { isHeld: false, status: 200 })
})

t.test('with a new key the index begins anew, and with an earlier one never', async t => {
  const place = placeOf(t)
  await run(place, 1)
  const { ktIndexPrivateKey } = generateKeys(ORIGIN, length => randomBytes(length))
  const renewed = { ...place, environment: { ...place.environment, KT_INDEX_PRIVATE_KEY: ktIndexPrivateKey } }
  const anew = await run(renewed, 11)
  t.match(anew, { isHeld: false, status: 200 }, anew.reason)
  t.match(await run(place, 21), { isHeld: true, reason: /key of an earlier index/ })
  t.match(await run(renewed, 31), { isHeld: false })
})

t.test('without its key an index is missed aloud, and begins anew only with another', async t => {
  const place = placeOf(t)
  await run(place, 1)
  const { KT_INDEX_PRIVATE_KEY: _, ...environment } = place.environment
  const server = await startServer({ dataFolder: place.dataFolder, environment })
  await server.end()
  const missing = server
    .stderr()
    .split('\n')
    .filter(line => line.includes('index-key-missing'))
  t.match(
    missing.map(line => JSON.parse(line).advice),
    [/an index, of the key log.example\/records\/index\+.*: put that key back/],
  )
  t.match(await run(place, 11), { isHeld: false, status: 200 }, 'nothing was lost')
})

t.test('a damaged leaf holds the index, and the reason names the log', async t => {
  const place = placeOf(t)
  await run(place, 1)
  const tables = RawTables.open(place.dataFolder)
  await tables.change(INDEX_TABLES.bundles, tables.keys(INDEX_TABLES.bundles)[0]!, 100, 1)
  await tables.close()
  t.match(await run(place, 11), {
    isHeld: true,
    reason: /^the output log of the index: the log does not hold what its checkpoint covers: entry 0 /,
  })
})
