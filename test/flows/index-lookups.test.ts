/** A server with an index: lookups prove that they are complete, and its files and answers are those of one index. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import t, { type Test } from 'tap'
import { plainOperations } from '../../src/api/documents/log-operations.ts'
import { verifyIndex } from '../../src/client/index-proof.ts'
import { parseLogKeys } from '../../src/client/log-keys.ts'
import { INDEX_BUNDLES } from '../../src/keyserver/index/index-tables.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from '../../src/log/note.ts'
import { vrfInput } from '../../src/log/vrf.ts'
import { verifyVrf } from '../../src/log/vrf-verify.ts'
import { DEVELOPMENT_KEYS_FILE } from '../../src/server/development/development-keys.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { DevPerson } from '../support/dev-person.ts'
import { DocumentedAnswers } from '../support/documented.ts'
import { FilledIndex } from '../support/filled-index.ts'
import { type LiveLog, registerKey, registerUsers, startLog } from '../support/live-log.ts'

/** No leaf is added by the server itself. */
const ENVIRONMENT = { CALLSIGN_INDEX_SECONDS: '3600', CALLSIGN_LOG_LEVEL: 'error' }
const dataFolder = t.testdir()

/** One server after the other over the same data. */
function startServer(t: Test): Promise<LiveLog> {
  return startLog(t, dataFolder, ENVIRONMENT)
}

function indexSigner(folder = dataFolder): SignerKey {
  return parseSignerKey(
    parseEnv(readFileSync(join(folder, DEVELOPMENT_KEYS_FILE), 'utf8')).KT_INDEX_PRIVATE_KEY!,
  )
}

/** With the server stopped. */
async function inStore(change: (database: LmdbStore) => Promise<unknown>): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  await change(database)
  await database.close()
}

/** As it is sent. */
async function lookUp({ http }: LiveLog, hashes: readonly string[], more: object = {}) {
  const targets = hashes.map(publicKeyHash => ({ publicKeyHash }))
  const body = JSON.stringify({ targets, ...more })
  const answer = await fetch(`${http}/api/get-public-keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return { status: answer.status, text: await answer.text() }
}

function keyUnder(vrfHash: string): string {
  return createHash('sha256').update(vrfHash).digest('hex')
}

/** A client's verdict on a proof; a refused one fails the test. */
function verified(
  t: Test,
  server: Pick<LiveLog, 'vkey' | 'vrfPublicKey'> & { folder?: string },
  vrfHash: string,
  proof: unknown,
) {
  const indexVkey = formatVerifierKey(indexSigner(server.folder))
  const { index, ...keys } = parseLogKeys({ ...server, indexVkey })
  const verdict = verifyIndex({ ...keys, index: index! }, vrfHash, proof, { nowMs: Date.now() })
  if (verdict.kind === 'verified') return verdict
  t.fail(`${verdict.check}: ${verdict.detail}`)
  throw new Error(verdict.detail)
}

const PAUSE_MS = 50
const documented = new DocumentedAnswers(plainOperations(false))
const hashes: string[] = []
const plain: string[] = []

t.test('while there is no index yet, lookups go on without it', async t => {
  const server = await startServer(t)
  for (const { vrfHash } of await registerUsers(server.client, 1, 300)) hashes.push(vrfHash)
  await registerKey(server.client, 7n, 1n)
  for (const asked of [hashes.slice(0, 1), hashes.slice(0, 64)]) {
    const { status, text } = await lookUp(server, asked)
    t.equal(status, 200)
    plain.push(text)
    t.equal((await lookUp(server, asked, { index: false })).text, text)
    t.equal((await lookUp(server, asked, { index: true })).text, text, 'none is left out, not refused')
  }
  const answer = await fetch(`${server.http}/index/lookup/${keyUnder(hashes[0]!)}`)
  t.equal(answer.status, 503)
  t.ok(answer.headers.get('retry-after'))
  t.match(await answer.json(), { code: 'INDEX_UNAVAILABLE' })
  for (const path of ['checkpoint', 'tile/0/000.p/1', 'tile/entries/000.p/1']) {
    const file = await fetch(`${server.http}/index/${path}`)
    t.equal(file.status, 503, path)
    t.match(file.headers.get('content-type'), /^text\/plain/)
  }
})

t.test('with an index', async t => {
  await inStore(async database => {
    const index = new FilledIndex(database, indexSigner())
    const log = new LogStore(database)
    await index.addLeaf(log.head()!)
    for (let leaf = 2; leaf <= 5; leaf++) await index.addLeaf(log.head()!)
  })
  const server = await startServer(t)

  await t.test('a lookup that does not ask for it is byte for byte what it was', async t => {
    t.equal((await lookUp(server, hashes.slice(0, 1))).text, plain[0])
    t.equal((await lookUp(server, hashes.slice(0, 64), { index: false })).text, plain[1])
  })

  await t.test('sixty-four keys, each with what the index has under it', async t => {
    const { text } = await lookUp(server, hashes.slice(0, 64), { index: true })
    const { results } = JSON.parse(text)
    for (const [at, { indexProof, ...result }] of results.entries()) {
      t.same(result, JSON.parse(plain[1]!).results[at])
      const { indexes, input, output } = verified(t, server, hashes[at]!, indexProof)
      t.equal(indexes.length, at === 6 ? 2 : 1)
      t.equal(input.treeSize, 301)
      t.equal(output.treeSize, 5)
    }
    documented.check('POST', '/api/get-public-keys', { status: 200, body: JSON.parse(text) })
    t.equal((await lookUp(server, hashes.slice(0, 65), { index: true })).status, 422, 'more are refused')
    t.equal((await lookUp(server, hashes.slice(0, 1), { index: 'yes' })).status, 422)
  })

  await t.test('one key by itself, there or absent', async t => {
    const { results } = JSON.parse((await lookUp(server, hashes.slice(6, 7), { index: true })).text)
    const alone = await fetch(`${server.http}/index/lookup/${keyUnder(hashes[6]!)}`)
    t.equal(alone.headers.get('cache-control'), 'no-store')
    const body = await alone.json()
    t.same(body, results[0].indexProof)
    documented.check('GET', '/index/lookup/{indexKey}', { status: 200, body })
    const absent = Buffer.alloc(64, 7).toString('base64')
    const answer = await fetch(`${server.http}/index/lookup/${keyUnder(absent)}`)
    t.equal(answer.status, 200)
    t.same(verified(t, server, absent, await answer.json()).indexes, [])
  })

  await t.test('a key is 64 lower-case hexadecimal digits', async t => {
    const key = keyUnder(hashes[0]!)
    for (const path of [
      key.slice(1),
      `${key}0`,
      key.toUpperCase(),
      `${key.slice(2)}zz`,
      `${key}%00`,
      'x',
      '%F0',
      '..%2f..%2fcheckpoint',
    ]) {
      const answer = await fetch(`${server.http}/index/lookup/${path}`)
      t.equal(answer.status, 404, path)
      t.match(await answer.json(), { code: 'NOT_FOUND' }, path)
    }
    t.equal((await fetch(`${server.http}/index/lookup/${key}`, { method: 'POST' })).status, 405)
    t.equal((await fetch(`${server.http}/index`)).status, 404)
    t.equal((await fetch(`${server.http}/index/lookup/`)).status, 404)
  })

  await t.test('its files, on both ports', async t => {
    for (const base of [server.http, server.serverApi]) {
      const answer = await fetch(`${base}/index/checkpoint`)
      const { treeSize, rootHash } = openCheckpoint(await answer.text(), indexSigner())
      t.equal(treeSize, 5)
      const tag = answer.headers.get('etag')!
      t.equal((await fetch(`${base}/index/checkpoint`, { headers: { 'if-none-match': tag } })).status, 304)
      t.not(tag, (await fetch(`${base}/checkpoint`)).headers.get('etag'))
      const bundle = Buffer.from(await (await fetch(`${base}/index/tile/entries/000.p/1`)).arrayBuffer())
      const tile = Buffer.from(await (await fetch(`${base}/index/tile/0/000.p/5`)).arrayBuffer())
      t.same(tile.subarray(0, 32), Buffer.from(hashLeaf(bundle.subarray(2))))
      t.equal(rootHash.length, 32)
      t.equal(
        (await fetch(`${base}/index/tile/0/000.p/5`, { method: 'HEAD' })).headers.get('content-length'),
        '160',
      )
      for (const path of [
        'tile/0/000.p/6',
        'tile/0/000',
        'tile/1/000.p/1',
        'tile/entries/000.p/6',
        'tile/0/000.p/05',
        'tile/0/x000/000',
        'tile/',
        'checkpoint?x',
      ])
        t.equal((await fetch(`${base}/index/${path}`)).status, 404, path)
      t.equal((await fetch(`${base}/index/checkpoint`, { method: 'DELETE' })).status, 405)
    }
  })

  await t.test('a user without a device list has nothing in slot 0, and proves it', async t => {
    const [ann, bob, eve] = await Promise.all(
      ['Ann', 'Bob', 'Eve'].map(name => DevPerson.signIn(server.http, name)),
    )
    await ann!.befriend(bob!)
    const asked = [ann!, bob!, eve!].map(({ userId }) => userId)
    const { users, unavailable } = await ann!.app.get(200, `GET /app/api/user/publicKeys?userIds=${asked}`)
    t.same(unavailable, [eve!.userId])
    t.equal(users.length, 2)
    for (const { userId, devices, absent } of users) {
      t.equal(devices.length, 1)
      t.equal(absent.deviceId, '0')
      const proof = Uint8Array.from(Buffer.from(absent.vrfProof, 'base64'))
      const input = vrfInput(BigInt(userId), 0n)
      const beta = verifyVrf(Uint8Array.from(Buffer.from(server.vrfPublicKey, 'base64')), input, proof)
      t.equal(Buffer.from(beta).toString('base64'), absent.vrfHash)
      t.same(verified(t, server, absent.vrfHash, absent.indexProof).indexes, [])
    }
  })

  await t.test('keys that were logged since are in answers, and not in the index yet', async t => {
    const { vrfHash } = await registerKey(server.client, 8_000n, 1n)
    const { text } = await lookUp(server, [vrfHash], { index: true })
    const [{ publicKey, indexProof }] = JSON.parse(text).results
    t.ok(publicKey)
    t.same(verified(t, server, vrfHash, indexProof).indexes, [])
  })
})

t.test('a damaged index answers nothing, and lookups go on without it', async t => {
  await inStore(database =>
    database.change(change => {
      const bundle = change.get(INDEX_BUNDLES, indexKey(0))!
      bundle[bundle.length - 5]! ^= 1
      change.put(INDEX_BUNDLES, indexKey(0), bundle)
    }),
  )
  const server = await startServer(t)
  const { status, text } = await lookUp(server, hashes.slice(0, 2), { index: true })
  t.equal(status, 200)
  t.notMatch(text, 'indexProof')
  t.equal((await fetch(`${server.http}/index/lookup/${keyUnder(hashes[0]!)}`)).status, 503)
  t.equal((await fetch(`${server.http}/index/checkpoint`)).status, 503)
  t.equal((await fetch(`${server.serverApi}/index/checkpoint`)).status, 503)
  const ann = await DevPerson.signIn(server.http, 'Anna')
  const { users } = await ann.app.get(200, 'GET /app/api/user/publicKeys')
  t.notOk('absent' in users[0])
})

t.test('a server’s own index goes after its log, and every process answers from it', async t => {
  const folder = join(t.testdir(), 'data')
  const server = await startLog(t, folder, { ...ENVIRONMENT, CALLSIGN_INDEX_SECONDS: '1' })
  for (let device = 1n; device <= 3n; device++) {
    const { vrfHash, index } = await registerKey(server.client, 9n, device)
    let found: readonly number[] = []
    // As many requests as it takes, to whichever process answers.
    while (found.length === 0) {
      const { results } = JSON.parse((await lookUp(server, [vrfHash], { index: true })).text)
      const [{ indexProof }] = results
      if (indexProof !== undefined) found = verified(t, { ...server, folder }, vrfHash, indexProof).indexes
      else await setTimeout(PAUSE_MS)
    }
    t.same(found, [index])
  }
})
