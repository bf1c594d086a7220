/**
 * Someone who can write to the data directory, and has read our source, changes the store while no server runs on it.
 * The server refuses to start or answer with any change it can notice; clients notice the rest, because no change of
 * the store makes a signature or a proof.
 */

import { cpSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BUNDLES, HEAD, IDENTITIES, LOOKUP, MAKER, TILES } from '../../src/keyserver/log-store.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import type { Change } from '../../src/store/engine/store.ts'
import { leafHash } from '../strangers/tree.ts'
import { verifyLookup } from '../strangers/verifier.ts'
import { type LiveLog, lookUp, type RegisteredKey, registerKey, startLog } from '../support/live-log.ts'
import { changeStore, growLog, storeDigest } from '../support/offline.ts'
import { openRefused } from '../support/open-server.ts'
import { postJson } from '../support/server.ts'
import { storedTable } from '../support/stored-table.ts'

type Tamper = (change: Change) => void

interface Problem {
  readonly code?: string
  readonly errors?: readonly { readonly pointer: string }[]
}

const folder = t.testdir({ base: {}, copies: {} })
const base = join(folder, 'base')

// Alice has two keys, at 0 and 2, and Bob one between them; 300 entries make partial tiles on two levels.
const log = await startLog(t, base)
const aliceOld = await registerKey(log.client, 1n, 1n)
const bob = await registerKey(log.client, 2n, 1n)
const alice = await registerKey(log.client, 1n, 1n)
log.client.close()
await log.end()
let olderHead: LogHead | undefined
await changeStore(base, change => {
  olderHead = change.get(HEAD, 'head')
})
await growLog(base, 300)

async function tamperedCopy(name: string, tamper: Tamper, grownTo = 300): Promise<string> {
  const copy = join(folder, 'copies', name.replace(/\W+/g, '-'))
  cpSync(base, copy, { recursive: true })
  if (grownTo > 300) await growLog(copy, grownTo)
  await changeStore(copy, tamper)
  return copy
}

function changeIdentity(index: number, edit: (record: Buffer) => void): Tamper {
  return change => {
    const block = Buffer.from(change.get(IDENTITIES, indexKey(Math.floor(index / IDENTITIES_PER_BLOCK)))!)
    const at = (index % IDENTITIES_PER_BLOCK) * IDENTITY_BYTES
    edit(block.subarray(at, at + IDENTITY_BYTES))
    change.put(IDENTITIES, indexKey(Math.floor(index / IDENTITIES_PER_BLOCK)), block)
  }
}

/** Lets the lookup row of one key point at another leaf. The rows of a first byte are in one node, unless it split. */
function changeLookupRow({ vrfHash }: RegisteredKey, index: number): Tamper {
  return change => {
    const prefix = Buffer.from(vrfHash, 'base64').subarray(0, 16)
    const node = Buffer.from(change.get(LOOKUP, indexKey(256 + prefix[0]!))!)
    const at = node.indexOf(prefix)
    if (at === -1) throw new Error('the lookup row is not in its node')
    node.writeUIntBE(index, at + prefix.length, 6)
    change.put(LOOKUP, indexKey(256 + prefix[0]!), node)
  }
}

/** Another byte in place of one; where the old one was of base64, so is the new one. */
function changeByte(table: string, key: Uint8Array, at: number): Tamper {
  return change => {
    const rows = storedTable(table)
    const bytes = Buffer.from(change.get(rows, key)!)
    bytes.write(bytes[at] === LETTER_A ? 'B' : 'A', at)
    change.put(rows, key, bytes)
  }
}

/** A careful forger's work: another key in the last entry, and its leaf hash in the tile to match. */
function forgeLastEntry(): Tamper {
  return change => {
    const bundle = Buffer.from(change.get(BUNDLES, indexKey(1))!)
    const entry = bundle.subarray(-ENTRY_BYTES)
    entry.write(bob.publicKey, ENTRY_BYTES - 45)
    change.put(BUNDLES, indexKey(1), bundle)
    const tile = Buffer.from(change.get(TILES, tileKey(0, 1))!)
    tile.set(leafHash(entry), tile.length - 32)
    change.put(TILES, tileKey(0, 1), tile)
  }
}

function remove(table: string, key: Uint8Array): Tamper {
  return change => change.remove(storedTable(table), key)
}

function changeHead(edit: (head: LogHead) => LogHead): Tamper {
  return change => {
    change.put(HEAD, 'head', edit(change.get(HEAD, 'head')!))
  }
}

function editCheckpoint(from: RegExp, to: string): Tamper {
  return changeHead(head => ({ ...head, checkpoint: head.checkpoint.replace(from, to) }))
}

/** A port in use: a server that overlooks what it should refuse to start with ends there, and not with the test. */
async function busyPort(t: Test): Promise<string> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `${(server.address() as AddressInfo).port}`
}

/** Status and code of both lookups of a key, and whether any key at all was given out. */
async function askBoth({ http }: LiveLog, { vrfHash: publicKeyHash }: RegisteredKey) {
  const bodies = { 'get-public-keys': { targets: [{ publicKeyHash }] }, 'get-key-history': { publicKeyHash } }
  const answers: Record<string, string> = {}
  for (const [operation, body] of Object.entries(bodies)) {
    const answer = await postJson<Problem>(`${http}/api/${operation}`, body)
    answers[operation] =
      `${answer.status} ${answer.body.code ?? 'OK'}${hasKey(answer.body) ? ' with key' : ''}`
  }
  return answers
}

function hasKey(body: unknown): boolean {
  return [aliceOld, alice, bob].some(({ publicKey }) => JSON.stringify(body).includes(publicKey))
}

/** 88 characters of VRF hash and 44 of key, each with a newline. */
const ENTRY_BYTES = 134
const LETTER_A = 0x41
const IDENTITY_BYTES = 24
const IDENTITIES_PER_BLOCK = 170
const MISMATCH = '409 IDENTITY_MISMATCH'
/** More entries than the lookup index keeps in memory, so that the rows of the first ones are read from the store. */
const BEYOND_MEMORY = 66_500

t.test('an untouched copy starts and answers', async t => {
  const copy = await startLog(t, await tamperedCopy('untouched', () => {}))
  t.same(await askBoth(copy, alice), {
    'get-public-keys': '200 OK with key',
    'get-key-history': '200 OK with key',
  })
})

const identityChanges: Record<string, Tamper> = {
  'the user of a leaf': changeIdentity(alice.index, record => record.writeBigUInt64BE(2n, 0)),
  'the device of a leaf': changeIdentity(alice.index, record => record.writeBigUInt64BE(2n, 8)),
}
for (const [what, change] of Object.entries(identityChanges)) {
  t.test(
    `${what} changed in the store: IDENTITY_MISMATCH, and no key, not even of another target`,
    async t => {
      const copy = await startLog(t, await tamperedCopy(what, change))
      t.same(await askBoth(copy, alice), { 'get-public-keys': MISMATCH, 'get-key-history': MISMATCH })

      const targets = [bob, alice, bob].map(({ vrfHash: publicKeyHash }) => ({ publicKeyHash }))
      const { status, body } = await postJson<Problem>(`${copy.http}/api/get-public-keys`, { targets })
      t.equal(status, 409)
      t.match(body, { code: 'IDENTITY_MISMATCH', errors: [{ pointer: '/targets/1/publicKeyHash' }] })
      t.notOk(hasKey(body))

      const [result] = await lookUp(copy.http, [bob.vrfHash])
      t.equal(verifyLookup(copy.keys, bob, result!).index, bob.index)
    },
  )
}

t.test("a history that leads to another's leaf: IDENTITY_MISMATCH, and no key", async t => {
  const change = changeIdentity(alice.index, record => record.writeUIntBE(bob.index + 1, 16, 6))
  const copy = await startLog(t, await tamperedCopy('history', change))
  t.match(await askBoth(copy, alice), { 'get-key-history': MISMATCH })
})

t.test('an older leaf of another user: the whole history is refused', async t => {
  const change = changeIdentity(aliceOld.index, record => record.writeBigUInt64BE(2n, 0))
  const copy = await startLog(t, await tamperedCopy('older leaf', change))
  t.match(await askBoth(copy, alice), { 'get-key-history': MISMATCH })
})

for (const [what, previous] of Object.entries({
  'cut short': 0,
  'that turns in a circle': alice.index + 1,
})) {
  t.test(`a history ${what}: IDENTITY_MISMATCH, and no key`, async t => {
    const change = changeIdentity(alice.index, record => record.writeUIntBE(previous, 16, 6))
    const copy = await startLog(t, await tamperedCopy(`history ${what}`, change))
    t.match(await askBoth(copy, alice), { 'get-key-history': MISMATCH })
  })
}

t.test('another key in an entry of a full bundle is not given out', async t => {
  const copy = await startLog(
    t,
    await tamperedCopy('full bundle', changeByte('log-bundles', indexKey(0), 100)),
  )
  t.match(await askBoth(copy, alice), { 'get-key-history': '503 CHECKPOINT_INVALID' })
})

t.test('a lookup row that points at another leaf: IDENTITY_MISMATCH, and no key', async t => {
  const change = changeLookupRow(alice, bob.index)
  const copy = await startLog(t, await tamperedCopy('lookup row', change, BEYOND_MEMORY))
  t.same(await askBoth(copy, alice), { 'get-public-keys': MISMATCH, 'get-key-history': MISMATCH })
  const [result] = await lookUp(copy.http, [bob.vrfHash])
  t.equal(verifyLookup(copy.keys, bob, result!).index, bob.index)
})

const changesNoticedAtStart: Record<string, Tamper> = {
  'a hash in the last tile': changeByte('log-tiles', tileKey(0, 1), 40),
  'a hash in the last tile of level 1': changeByte('log-tiles', tileKey(1, 0), 4),
  'the last tile missing': remove('log-tiles', tileKey(0, 1)),
  'a VRF hash in the last bundle': changeByte('log-bundles', indexKey(1), 10),
  'another key in the last entry, with its leaf hash': forgeLastEntry(),
  'a length in the last bundle': changeByte('log-bundles', indexKey(1), 1),
  'the last bundle missing': remove('log-bundles', indexKey(1)),
  "the checkpoint's signature": editCheckpoint(/.{8}\n$/, 'AAAAAAA=\n'),
  "the checkpoint's root": editCheckpoint(/\n300\n.{8}/, '\n300\nAAAAAAAA'),
  'an older signed checkpoint put back': changeHead(() => olderHead!),
  'the size beside the checkpoint': changeHead(head => ({ ...head, treeSize: 299 })),
  'the checkpoint gone': change => change.remove(HEAD, 'head'),
  'an empty record of the checkpoint': change => change.put(HEAD, 'head', {} as LogHead),
  'the maker gone': change => change.remove(MAKER, 'maker'),
  'a letter of the last bundle that is not base64': change => {
    const bundle = Buffer.from(change.get(BUNDLES, indexKey(1))!)
    bundle[10] = 0x2a
    change.put(BUNDLES, indexKey(1), bundle)
  },
  'a lookup index of a longer log': change =>
    change.put(LOOKUP, indexKey(0), Buffer.from([1, 0, 0, 0, 1, 8, 0])),
  'the last identity block missing': remove('log-identities', indexKey(1)),
}
const changesAtAFullTile: Record<string, Tamper> = {
  'the last full bundle': changeByte('log-bundles', indexKey(1), 10),
  'the last full tile': changeByte('log-tiles', tileKey(0, 1), 40),
}
const refusedStarts = [
  ...Object.entries(changesNoticedAtStart).map(([what, change]) => [what, change, 300] as const),
  ...Object.entries(changesAtAFullTile).map(([what, change]) => [what, change, 512] as const),
]
for (const [what, change, size] of refusedStarts) {
  t.test(
    `${what}: the server says so in one sentence, ends with 1 and leaves the store as it is`,
    async t => {
      const copy = await tamperedCopy(what, change, size)
      const before = storeDigest(copy)
      const environment = { CALLSIGN_HTTP_PORT: await busyPort(t) }
      const { code, stderr } = await openRefused({ dataFolder: copy, environment })
      t.equal(code, 1, stderr)
      const sentences = stderr.split('\n').filter(line => line.startsWith('callsign: '))
      t.equal(sentences.length, 1, stderr)
      t.equal(stderr.trimEnd().split('\n').at(-1), sentences[0], 'it is the last line')
      t.match(sentences[0], /\blog\b/)
      t.notMatch(sentences[0], /assertion failed|undefined/)
      t.equal(storeDigest(copy), before)
    },
  )
}
