/** The entries since the newest leaf of an index: how many are read, from where, and which of them are believed. */
import t from 'tap'
import { type CompletenessDemand, type Fetch, LogClient, MemoryStore } from '../../src/client/client.ts'
import { readTail } from '../../src/client/index-tail.ts'
import type { Tile } from '../../src/log/tile.ts'
import { type LyingFetch, LyingLog } from '../support/lying-log.ts'

const INDEXED = 10
const log = new LyingLog()
log.grow(3)
log.register(1n, 1n)
log.grow(INDEXED)
log.index.append(log)
log.grow(INDEXED + 4_096)
const { vrfHash } = log.leaf(3)
const head = (treeSize: number, of = log) => ({ treeSize, rootHash: of.root(treeSize) })
const honest = async (tile: Tile) => log.tile(tile)

function lookUp(from: LyingLog, fetch: LyingFetch, completeness: CompletenessDemand = 'when-offered') {
  const client = new LogClient({
    ...from.published,
    indexVkey: from.index.vkey,
    url: 'https://log.example/',
    store: new MemoryStore(),
    fetch: fetch as Fetch,
    completeness,
  })
  return client.lookUp({ userId: '1', deviceId: '1', vrfHash })
}

t.test('4,096 entries are read, and no more', async t => {
  t.match(await lookUp(log, log.fetch(), 'demand'), { kind: 'verified', complete: true, indexes: [3] })
  const longer = log.fork()
  longer.grow(INDEXED + 4_097)
  const fetch = longer.fetch()
  t.match(await lookUp(longer, fetch), { kind: 'verified', complete: 'tail-unread' })
  t.match(await lookUp(longer, fetch, 'demand'), { kind: 'refused', check: 'completeness' })
  t.notOk(fetch.requests.some(path => path.startsWith('tile/entries')))
})

t.test('lookups of one answer read the tail once, and an answer from another tree reads its own', async t => {
  const small = log.fork(40)
  const fetch = small.fetch()
  const client = new LogClient({
    ...small.published,
    indexVkey: small.index.vkey,
    url: 'https://log.example',
    store: new MemoryStore(),
    fetch: fetch as Fetch,
  })
  const alice = { userId: '1', deviceId: '1', vrfHash }
  const bundles = () => fetch.requests.filter(path => path.startsWith('tile/entries'))
  const outcomes = await client.lookUpAll([alice, alice, alice])
  for (const outcome of outcomes) t.match(outcome, { kind: 'verified', complete: true })
  t.match(await client.lookUp(alice), { kind: 'verified', complete: true })
  t.same(bundles(), ['tile/entries/000.p/40'])
  small.grow(41)
  t.match(await client.lookUp(alice), { kind: 'verified', complete: true })
  t.same(bundles(), ['tile/entries/000.p/40', 'tile/entries/000.p/41'])
})

t.test('a log that has dropped its partial bundles serves the full ones', async t => {
  const grown = log.fork(300)
  const shown = (path: string, asked: { readonly index?: boolean }) => {
    if (/\.p\/\d+$/.test(path)) return new Response('', { status: 404 })
    if (path !== 'api/get-public-keys') return undefined
    t.equal(asked.index, true)
    return { results: [{ ...grown.result(3, { treeSize: 200 }), indexProof: grown.index.proof(vrfHash) }] }
  }
  t.match(await lookUp(grown, grown.fetch(shown as never)), { complete: true, indexes: [3] })
})

t.test('entries that do not lead from the one root to the other are not believed', async t => {
  const other = log.fork(20)
  other.register(9n, 9n)
  other.grow(300)
  const foreign = async (tile: Tile) => other.tile(tile)
  const half = async (tile: Tile) => (tile.level === 'entries' ? other.tile(tile) : log.tile(tile))
  const short = async (tile: Tile) =>
    log.tile(tile.level === 'entries' ? { ...tile, width: tile.width - 1 } : tile)
  const torn = async (tile: Tile) => log.tile(tile).subarray(0, tile.level === 'entries' ? -1 : undefined)
  const silent = () => Promise.reject(new Error('no network'))
  for (const lie of [foreign, half, short, torn, silent]) {
    t.match(await readTail([lie], head(INDEXED), head(300)), { kind: 'lost' })
    t.match(await readTail([lie, honest], head(INDEXED), head(300)), { kind: 'read' })
  }
  t.match(await readTail([honest], head(INDEXED, stranger()), head(300)), { kind: 'lost' })
  t.match(await readTail([honest], head(0), head(20)), { kind: 'read' })
})

t.test('a bundle with more bytes than entries may have is cut off', async t => {
  const small = log.fork(40)
  const flooded = small.fetch(path =>
    path.startsWith('tile/entries') ? new Uint8Array(256 * 1_116 + 1) : undefined,
  )
  const outcome = await lookUp(small, flooded)
  t.match(outcome, { kind: 'unanswered', check: 'tiles', detail: /more than 285696 bytes/ })
})

t.test('a client whose keys cannot prove completeness refuses to demand it', async t => {
  const { published, index } = log
  const start = (options: object) => () =>
    new LogClient({ ...published, url: 'https://log.example', store: new MemoryStore(), ...options })
  t.throws(start({ completeness: 'demand' }), { code: 'KEY_INVALID' })
  t.throws(start({ indexVkey: index.vkey, maxIndexAgeMs: 1 }), { code: 'KEY_INVALID' })
  t.throws(start({ indexVkey: published.vkey }), { code: 'KEY_INVALID' })
  t.doesNotThrow(start({ indexVkey: index.vkey, completeness: 'demand' }))
})

/** Another beginning. */
function stranger(): LyingLog {
  const other = new LyingLog({ number: 2 })
  other.register(1n, 1n)
  other.grow(INDEXED)
  return other
}
