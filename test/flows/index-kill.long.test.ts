/**
 * kill -9 of the server, and of the process that grows the map of its index, at any moment under registrations. Each durable state
 * between two processes has the map of its last shown leaf, no two output checkpoints contradict, and the map equals one
 * that is made anew from the entries. `CALLSIGN_INDEX_KILLS` sets the number of kills, `CALLSIGN_SEED` replays their moments.
 */

import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { parseSignerKey } from '../../src/log/note.ts'
import { DEVELOPMENT_KEYS_FILE } from '../../src/server/development/development-keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { faultsOfIndex, RebuiltMap, SeenCheckpoints } from '../support/index-faults.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { freshPublicKey, type RunningServer, startServer } from '../support/server.ts'
import { countOf } from '../support/size.ts'

const KILLS = countOf('CALLSIGN_INDEX_KILLS', { short: 2, long: 4 })
const IN_FLIGHT = 16

/**
 * Registers until the server dies, which is killed behind so many answers, or while it records a leaf. Kills its indexer now and
 * then.
 */
async function registerUntilKilled(
  server: RunningServer,
  headFolder: string,
  firstUser: number,
  killAfter: number,
  random: () => number,
): Promise<{ readonly indexersKilled: number }> {
  const client = new RegisterClient(server.grpc)
  const exit = once(server.process, 'close')
  let [answers, nextUser, indexersKilled] = [0, firstUser, 0]
  const watcher = watch(headFolder, (_, name) => {
    if (name?.includes('.index') && random() < 0.2) server.process.kill('SIGKILL')
  })
  const register = async () => {
    while (server.process.exitCode === null && server.process.signalCode === null) {
      // Some have a key already.
      const userId = BigInt(random() < 0.2 ? firstUser : nextUser++)
      await client.register(userId, 1n, freshPublicKey()).catch(() => undefined)
      answers++
      if (answers === killAfter) server.process.kill('SIGKILL')
      else if (random() < 0.002) indexersKilled += killIndexers(server.process.pid!)
    }
  }
  await Promise.all([exit, ...Array.from({ length: IN_FLIGHT }, register)])
  watcher.close()
  client.close()
  return { indexersKilled }
}

function killIndexers(serverPid: number): number {
  const pids = indexersOf(serverPid)
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  return pids.length
}

/** The processes below the server that grow the map. */
function indexersOf(serverPid: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0)
    .filter(pid => {
      try {
        const isChild = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]
        return (
          isChild === `${serverPid}` && /index-program/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
        )
      } catch {
        return false
      }
    })
}

t.test(`${KILLS} kills leave an index that goes on`, async t => {
  const seed = seedOf()
  t.comment(`CALLSIGN_SEED=${seed}`)
  const random = randomFrom(seed)
  const folder = t.testdir({ head: {} })
  const dataFolder = join(folder, 'data')
  const headFile = join(folder, 'head', 'checkpoint')
  const environment = {
    CALLSIGN_LOG_HEAD_FILE: headFile,
    CALLSIGN_LOG_LEVEL: 'warn',
    CALLSIGN_INDEX_SECONDS: '1',
  }
  const start = () => startServer({ dataFolder, environment })
  await (await start()).end()
  const keys = parseEnv(readFileSync(join(dataFolder, DEVELOPMENT_KEYS_FILE), 'utf8'))
  const verifier = parseSignerKey(keys.KT_INDEX_PRIVATE_KEY!)
  const seen = new SeenCheckpoints(verifier)
  const rebuilt = new RebuiltMap()

  /** Looks at what a killed server has left. */
  const look = async (): Promise<readonly string[]> => {
    const store = LmdbStore.openReadOnly(dataFolder)
    try {
      if (existsSync(`${headFile}.index`)) seen.see(readFileSync(`${headFile}.index`, 'utf8'))
      return faultsOfIndex(store, { verifier, seen, rebuilt })
    } finally {
      await store.close()
    }
  }

  let indexersKilled = 0
  const wrong: string[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const server = await start()
    const killed = await registerUntilKilled(
      server,
      join(folder, 'head'),
      1 + kill * 100_000,
      1 + Math.floor(random() * 1_500),
      random,
    )
    indexersKilled += killed.indexersKilled
    wrong.push(...(await look()).map(fault => `kill ${kill}: ${fault}`))
    if (/index-held|fault/.test(server.stderr())) wrong.push(`kill ${kill}: ${server.stderr()}`)
  }
  t.same(wrong, [], `seed ${seed}`)
  t.comment(`${seen.count} output checkpoints were seen, ${indexersKilled} indexers killed`)

  const last = await start()
  t.teardown(() => last.end())
  await caughtUp(last)
  t.same(await look(), [], 'the map equals one that is made anew')
})

/** Resolves when the map has every entry of the log. */
async function caughtUp(server: RunningServer): Promise<void> {
  for (;;) {
    const text = await (await fetch(`${server.admin}/metrics`)).text()
    if (/^callsign_index_lag_entries 0$/m.test(text)) return
    await setTimeout(50)
  }
}
