/** The entries since the newest leaf of an index: how many are read, from where, and which of them are believed. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { type CompletenessDemand, type Fetch, LogClient, MemoryStore } from '../../src/client/client.ts'
import type { IndexProof } from '../../src/client/index-proof.ts'
import { readTail } from '../../src/client/index-tail.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, signerKeyFromSeed } from '../../src/log/note.ts'
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

t.test('the tails of one answer are read one after the other, whatever leaves it rests on', async t => {
  const many = log.fork(600)
  const proofs = [20, 300, 500].map(treeSize => many.index.append(many, { treeSize }).proof(vrfHash))
  const results = proofs.map(indexProof => ({ ...many.result(3), indexProof }))
  const lying = many.fetch(path => (path === 'api/get-public-keys' ? { results } : undefined))
  let [open, most] = [0, 0]
  const fetch: Fetch = async (url, init) => {
    const isEntries = url.includes('tile/entries')
    if (isEntries) most = Math.max(most, ++open)
    // Longer than all else takes.
    for (let turns = isEntries ? 200 : 1; turns > 0; turns--) await setImmediate()
    if (isEntries) open--
    return lying(url, init as never) as never
  }
  const keys = { ...many.published, indexVkey: many.index.vkey }
  const client = new LogClient({ ...keys, url: 'https://log.example', store: new MemoryStore(), fetch })
  const outcomes = await client.lookUpAll([1, 2, 3].map(() => ({ userId: '1', deviceId: '1', vrfHash })))
  for (const outcome of outcomes) t.match(outcome, { kind: 'verified', complete: true })
  t.equal(most, 3, 'the bundles of the longest')
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
  // A third name is no key of the index.
  const further = formatVerifierKey(signerKeyFromSeed(`${index.signer.name}/index`, Buffer.alloc(32, 9)))
  const lines = [published.vkey, index.vkey, further].map(vkey => `log ${vkey}\n`).join('')
  t.throws(start({ policy: `${lines}quorum none\n` }), { code: 'KEY_INVALID' })
})

t.test('a refusal by the index says so, though the log has the same checks', async t => {
  const honest = log.fetch()
  const lie: Fetch = async (url, init) => {
    const answer = await honest(url, init)
    if (!url.endsWith('get-public-keys')) return answer
    const { results } = (await answer.json()) as { results: [{ indexProof: IndexProof }] }
    const [{ indexProof, ...result }] = results
    const output_log_proof = [Array.from({ length: 32 }, () => 0)]
    return Response.json({ results: [{ ...result, indexProof: { ...indexProof, output_log_proof } }] })
  }
  const lying = Object.assign(lie, { requests: honest.requests }) as LyingFetch
  const detail = /^the index: inclusion proof of leaf \d+ is malformed/
  t.match(await lookUp(log, lying), { kind: 'refused', check: 'completeness', detail })
})

t.test(
  'an index begun anew under another key is a new one, and is demanded from the first answer on',
  async t => {
    const store = new MemoryStore()
    const earlier = signerKeyFromSeed(`${log.signer.name}/index`, Buffer.alloc(32, 77))
    const tree = { treeSize: 900, rootHash: log.root(900) }
    const origin = earlier.name
    const note = signCheckpoint(tree, earlier)
    store.put({ origin, treeSize: 900, rootHash: Buffer.from(tree.rootHash).toString('base64'), note })
    const small = log.fork(40)
    const answers = { isBare: true }
    const fetch = small.fetch(path =>
      path === 'api/get-public-keys' && answers.isBare ? { results: [small.result(3)] } : undefined,
    )
    const client = new LogClient({
      ...small.published,
      indexVkey: small.index.vkey,
      url: 'https://log.example',
      store,
      fetch: fetch as Fetch,
    })
    const alice = { userId: '1', deviceId: '1', vrfHash }
    t.match(await client.lookUp(alice), { kind: 'refused', check: 'completeness' })
    answers.isBare = false
    t.match(await client.lookUp(alice), { kind: 'verified', complete: true })
    t.equal(store.get(origin)?.treeSize, 1)
  },
)

/** Another beginning. */
function stranger(): LyingLog {
  const other = new LyingLog({ number: 2 })
  other.register(1n, 1n)
  other.grow(INDEXED)
  return other
}
