/**
 * A server with an index that a rebuilding witness cosigns: lookups are proved by it, an auditor finds the same, and a
 * wrong root in the store is neither cosigned nor passed over.
 */

import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { explain } from '../../scripts/audit/explain.ts'
import { LogClient, MemoryStore } from '../../src/client/client.ts'
import { parseLogKeys } from '../../src/client/log-keys.ts'
import { IndexStore, type MapOfLeaf } from '../../src/keyserver/index/index-store.ts'
import { formatAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { openCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { proveConsistency } from '../../src/log/consistency.ts'
import { formatIndexLeaf, parseIndexLeaf } from '../../src/log/index-leaf.ts'
import { TreeTail } from '../../src/log/integrate.ts'
import { parseSignerKey, readNote } from '../../src/log/note.ts'
import { entryInBundle, formatTilePath, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { freePort } from '../support/free-port.ts'
import { type LiveLog, registerUsers, startLog } from '../support/live-log.ts'
import { startServer } from '../support/server.ts'
import { bySize, long } from '../support/size.ts'
import { startWitness } from '../support/witness-process.ts'
import { witnessedLog } from '../support/witnessed-log.ts'

t.test('rebuilt and cosigned, audited, and caught where it is wrong', long(), async t => {
  const log = witnessedLog(t, 'quorum none\n', { hasIndex: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const witnessOf = async (name: string, isRebuilding: boolean) => {
    const folder = join(log.dataFolder, '..', name)
    mkdirSync(folder, { recursive: true })
    const list = `log ${log.vkey} ${url}\nlog ${log.indexVkey}\nquorum none\n`
    return startWitness(t, { folder, name, logs: [], list, isRebuilding, port: await freePort() })
  }
  const [plain, rebuilding] = [await witnessOf('one.example', false), await witnessOf('two.example', true)]
  const policy = log.setPolicy(
    `${plain.policyLine}${rebuilding.policyLine}group rebuilders 1 two.example\nquorum one.example\n`,
  )
  const environment = { ...log.environment, CALLSIGN_HTTP_PORT: `${port}` }
  const start = (more: Readonly<Record<string, string>> = {}) =>
    startLog(t, log.dataFolder, { ...environment, ...more }, startServer)
  const { vrfPublicKey } = log
  const keys = parseLogKeys({ policy, vrfPublicKey })
  const [stateFile, later] = [newStateFile(t), newStateFile(t)]
  const auditOf = (file: string) => audit({ ...keys, url, stateFile: file, maxAgeMs: 3_600_000 })

  const server = await start()
  for (let round = 0; round < bySize({ short: 2, long: 4 }); round++) {
    const registered = await registerUsers(server.client, 100 * round, 70)
    const note = await untilIndexed(server, 70 * (round + 1))
    t.ok(readNote(note).signatures.some(({ name }) => name === 'two.example'))
    const client = new LogClient({ policy, vrfPublicKey, url, store: new MemoryStore() })
    const { userId, deviceId, vrfHash, publicKey, index } = registered[7]!
    t.match(await client.lookUp({ userId, deviceId, vrfHash, publicKey }), {
      kind: 'verified',
      complete: true,
      indexes: [index],
      isProved: true,
    })
    const { verdict, failures } = await auditOf(stateFile)
    t.same([verdict, failures], [0, []])
  }
  await server.end()

  // Another root in a leaf that waits to be shown.
  const lie = await inStore(async index => {
    const { treeSize } = index.head()!
    const { inputCheckpoint, root } = index.leaf(treeSize - 1)
    const wrong = root.slice()
    wrong[0]! ^= 1
    const integration = new TreeTail(index.openTail(treeSize)).integrate([
      formatIndexLeaf({ inputCheckpoint, root: wrong }),
    ])
    const checkpoint = signCheckpoint(integration, parseSignerKey(log.environment.KT_INDEX_PRIVATE_KEY!))
    await index.append({ leaf: treeSize, integration, checkpoint })
    return { treeSize: treeSize + 1, checkpoint }
  })
  const refused = await start()
  await untilMetric(refused, /^callsign_index_held(?:\{.*\})? 1$/m)
  while ((await fetch(`${url}/index/checkpoint`)).status !== 503);
  t.match(await (await fetch(`${url}/checkpoint`)).text(), /\u2014 one\.example /, 'the log goes on')
  await refused.end()

  // A server that shows it.
  const proof = await inStore(async index => {
    await index.hold(false)
    const map: MapOfLeaf = { rows: [], entries: index.state!.entries }
    await index.show(lie, map)
    return proveConsistency(lie.treeSize - 1, lie.treeSize, index.readHashes)
  })
  const frozen = await start({ CALLSIGN_LOG_FROZEN: '1' })
  const asked = await Promise.all(
    [plain, rebuilding].map(({ http }) =>
      fetch(`${http}/add-checkpoint`, {
        method: 'POST',
        body: formatAddCheckpoint({ oldSize: lie.treeSize - 1, proof, note: lie.checkpoint }),
      }),
    ),
  )
  t.equal(asked[1]!.status, 422)
  t.match(await asked[1]!.text(), /over \d+ entries its root is .*, and rebuilt /)
  for (const file of [stateFile, later]) {
    const { verdict, of } = await auditOf(file)
    t.equal(verdict, 1)
    t.match(of('index'), { ok: false, index: `${lie.treeSize - 1}` })
    const [name] = readdirSync(dirname(file)).filter(each => each.includes('.evidence-'))
    t.equal(
      explain([join(dirname(file), name!), '--vkey', log.indexVkey!], () => undefined),
      0,
    )
  }
  await frozen.end()

  async function inStore<Result>(use: (index: IndexStore) => Promise<Result>): Promise<Result> {
    const database = LmdbStore.open(log.dataFolder)
    try {
      return await use(new IndexStore(database))
    } finally {
      await database.close()
    }
  }

  /** The checkpoint of the index once it is of so many entries. */
  async function untilIndexed({ http }: LiveLog, entries: number): Promise<string> {
    for (;;) {
      const answer = await fetch(`${http}/index/checkpoint`)
      const note = await answer.text()
      const { treeSize } = answer.ok ? openCheckpoint(note, keys.index!.verifier) : { treeSize: 0 }
      if (treeSize > 0) {
        const index = Math.floor((treeSize - 1) / TILE_WIDTH)
        const width = tileWidth('entries', index, treeSize)
        const path = formatTilePath({ level: 'entries', index, width })
        const bundle = new Uint8Array(await (await fetch(`${http}/index/${path}`)).arrayBuffer())
        const { inputCheckpoint } = parseIndexLeaf(entryInBundle(bundle, (treeSize - 1) % TILE_WIDTH))
        if (openCheckpoint(inputCheckpoint, keys.verifier).treeSize >= entries) return note
      }
    }
  }

  async function untilMetric({ admin }: LiveLog, pattern: RegExp): Promise<void> {
    while (!pattern.test(await (await fetch(`${admin}/metrics`)).text()));
  }
})
