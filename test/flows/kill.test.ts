/**
 * kill -9 at any moment under load: every answered registration is at its index afterwards, every checkpoint ever
 * served is a prefix of the tree, and the head file is whole and never behind a checkpoint shown or answered.
 * `CALLSIGN_KILLS` sets the number of kills (3), `CALLSIGN_SEED` replays their moments.
 */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseEntry } from '../../src/log/entry.ts'
import { equalHashes, hashLeaf } from '../../src/log/hash.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { formatTilePath, parseBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { freshPublicKey, type RunningServer, startServer } from '../support/server.ts'
import { countOf, sized } from '../support/size.ts'

interface Answered {
  readonly index: number
  readonly vrfHash: string
  readonly publicKey: string
}

const KILLS = countOf('CALLSIGN_KILLS', { short: 1, long: 3 })
const IN_FLIGHT = 24

/** Registers until the server dies; keeps the answers. */
async function registerUntilKilled(
  server: RunningServer,
  firstUser: number,
  answered: Answered[],
  killAfter: number,
) {
  const client = new RegisterClient(server.grpc)
  const answeredBefore = answered.length
  let nextUser = firstUser
  let isDead = false
  const worker = async () => {
    while (!isDead) {
      const publicKey = freshPublicKey()
      try {
        const { index, vrfHash } = await client.register(BigInt(nextUser++), 1n, publicKey)
        answered.push({ index: Number(index), vrfHash, publicKey })
        if (answered.length - answeredBefore >= killAfter && !isDead) {
          isDead = true
          server.process.kill('SIGKILL')
        }
      } catch {
        isDead = true
      }
    }
  }
  const workers = Array.from({ length: IN_FLIGHT }, worker)
  const exit = once(server.process, 'close')
  await Promise.all([...workers, exit])
  client.close()
}

async function fetchCheckpoint(server: RunningServer) {
  const answer = await fetch(`${server.http}/checkpoint`)
  return openCheckpoint(await answer.text(), parseVerifierKey(server.vkey))
}

/** The tree size of the head file, which must be whole at any moment. */
function recordedSize(headFile: string, { vkey }: RunningServer): number {
  return openCheckpoint(readFileSync(headFile, 'utf8'), parseVerifierKey(vkey)).treeSize
}

/** Collects checkpoints until the server dies; gives what the head file was behind of. */
async function watchCheckpoints(server: RunningServer, headFile: string, seen: Map<number, Uint8Array>) {
  const behind: string[] = []
  for (;;) {
    const shown = await fetchCheckpoint(server).catch(() => undefined)
    if (shown === undefined) return behind
    seen.set(shown.treeSize, shown.rootHash)
    const recorded = recordedSize(headFile, server)
    if (recorded < shown.treeSize) behind.push(`${shown.treeSize} was shown, ${recorded} recorded`)
  }
}

async function fetchEntries(server: RunningServer, treeSize: number): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = []
  for (let index = 0; index * TILE_WIDTH < treeSize; index++) {
    const path = formatTilePath({ level: 'entries', index, width: tileWidth('entries', index, treeSize) })
    const answer = await fetch(`${server.http}/${path}`)
    entries.push(...parseBundle(new Uint8Array(await answer.arrayBuffer())))
  }
  return entries
}

t.test(
  `nothing answered is lost by ${KILLS} kills, and no served checkpoint is taken back`,
  sized(),
  async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const folder = t.testdir({ head: {} })
    const dataFolder = join(folder, 'data')
    const headFile = join(folder, 'head', 'checkpoint')
    const environment = { CALLSIGN_LOG_HEAD_FILE: headFile, CALLSIGN_LOG_LEVEL: 'error' }
    const answered: Answered[] = []
    const checkpoints = new Map<number, Uint8Array>()
    const behind: string[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      const server = await startServer({ dataFolder, environment })
      const { treeSize } = await fetchCheckpoint(server)
      const largestSeen = Math.max(0, ...checkpoints.keys())
      if (treeSize < largestSeen)
        t.fail(`seed ${seed}: kill ${kill}: size ${treeSize} after ${largestSeen} was served`)
      const watching = watchCheckpoints(server, headFile, checkpoints)
      await registerUntilKilled(server, kill * 100_000, answered, 1 + Math.floor(random() * 150))
      behind.push(...(await watching).map(what => `kill ${kill}: ${what}`))
      const recorded = recordedSize(headFile, server)
      const expected = Math.max(0, ...checkpoints.keys(), ...answered.map(({ index }) => index + 1))
      if (recorded < expected)
        behind.push(`kill ${kill}: ${recorded} recorded, ${expected} shown or answered`)
    }
    t.same(behind, [], `seed ${seed}: the head file is never behind`)

    const server = await startServer({ dataFolder, environment })
    t.teardown(() => server.end())
    t.equal(readFileSync(headFile, 'utf8'), await (await fetch(`${server.http}/checkpoint`)).text())
    const last = await fetchCheckpoint(server)
    const entries = await fetchEntries(server, last.treeSize)
    t.equal(entries.length, last.treeSize, 'every entry is served')

    const lost = answered.filter(({ index, vrfHash, publicKey }) => {
      const entry = entries[index] === undefined ? undefined : parseEntry(entries[index])
      return entry?.publicKey !== publicKey || Buffer.from(entry.vrfHash).toString('base64') !== vrfHash
    })
    t.same(lost, [], `seed ${seed}: every answered registration is at its index`)

    const edge = new RightEdge(0, [])
    const broken: number[] = []
    for (let size = 0; size <= entries.length; size++) {
      const seen = checkpoints.get(size)
      if (seen !== undefined && !equalHashes(seen, edge.rootHash())) broken.push(size)
      if (size < entries.length) edge.append(hashLeaf(entries[size]!))
    }
    t.same(broken, [], `seed ${seed}: every served checkpoint is a prefix of the tree`)
    t.ok(equalHashes(edge.rootHash(), last.rootHash), 'the entries have the signed root')
    t.ok(
      checkpoints.size > KILLS,
      `${checkpoints.size} checkpoints, ${answered.length} registrations were looked at`,
    )
  },
)
