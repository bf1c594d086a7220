import t from 'tap'
import {
  CheckpointPin,
  type CheckpointStore,
  compareCheckpoints,
  MemoryStore,
  parseLogKeys,
  type SignedCheckpoint,
  verifyCheckpoint,
} from '../../src/client/client.ts'
import { signerKeyFromSeed, signNote } from '../../src/log/note.ts'
import type { Tile } from '../../src/log/tile.ts'
import { LyingLog } from '../support/lying-log.ts'

const log = new LyingLog()
log.grow(600)
const origin = log.signer.name
const keys = parseLogKeys(log.published)
const NOW = { nowMs: 1_790_000_000_000 }
const fetchTile = async (tile: Tile) => log.tile(tile)

function checkpoint(treeSize: number, from = log): SignedCheckpoint {
  const verdict = verifyCheckpoint(keys, from.note(treeSize))
  if (verdict.kind !== 'verified') throw new Error(verdict.detail)
  return verdict.checkpoint
}

function pinAt(treeSize: number): { pin: CheckpointPin; store: MemoryStore } {
  const store = new MemoryStore()
  store.put(checkpoint(treeSize))
  return { store, pin: new CheckpointPin(keys, store, [fetchTile]) }
}

t.test('the first checkpoint is taken as it is, and a larger one takes its place', async t => {
  const store = new MemoryStore()
  const pin = new CheckpointPin(keys, store, [fetchTile])
  t.equal(await pin.highest(), undefined)
  for (const treeSize of [0, 1, 300, 300, 600]) {
    t.same(await pin.accept(checkpoint(treeSize), NOW, treeSize), { kind: 'accepted' })
    t.same(store.get(origin), checkpoint(treeSize))
  }
})

t.test('an answer below the floor is stale, one that was overtaken on its way is not', async t => {
  const { pin, store } = pinAt(500)
  t.match(await pin.accept(checkpoint(400), NOW, 401), { kind: 'unanswered', check: 'stale' })
  t.same(await pin.accept(checkpoint(400), NOW, 400), { kind: 'accepted' })
  t.same(store.get(origin), checkpoint(500))
})

t.test('a smaller tree that was overtaken still has to be the beginning of the pinned one', async t => {
  const other = log.fork(100)
  other.register(1n, 1n)
  other.grow(400)
  const { pin } = pinAt(500)
  t.match(await pin.accept(checkpoint(400, other), NOW, 300), { kind: 'refused', check: 'consistency' })
})

t.test('checkpoints that arrive at once are taken one after the other, and the highest stays', async t => {
  const store = new MemoryStore()
  const slowStore: CheckpointStore = {
    get: async name => store.get(name),
    put: async kept => {
      await new Promise(resolve => setImmediate(resolve))
      store.put(kept)
    },
  }
  const pin = new CheckpointPin(keys, slowStore, [fetchTile])
  const sizes = [300, 100, 600, 200, 600, 500]
  const outcomes = await Promise.all(sizes.map(size => pin.accept(checkpoint(size), NOW, 0)))
  t.same(new Set(outcomes.map(({ kind }) => kind)), new Set(['accepted']))
  t.equal(store.get(origin)?.treeSize, 600)
})

t.test(
  'a tile that cannot be fetched leaves the pin as it was and the checkpoint pending, and the next one is taken',
  async t => {
    const store = new MemoryStore()
    store.put(checkpoint(300))
    let isOffline = true
    const pin = new CheckpointPin(keys, store, [
      tile => (isOffline ? Promise.reject(new Error('offline')) : fetchTile(tile)),
    ])
    const open = { kind: 'unanswered', check: 'tiles', detail: 'offline' }
    t.same(await pin.accept(checkpoint(600), NOW, 0), open)
    const openSinceMs = NOW.nowMs
    t.same(store.get(origin), { ...checkpoint(300), pending: [log.note(600)], openSinceMs })
    isOffline = false
    t.same(await pin.accept(checkpoint(600), NOW, 0), { kind: 'accepted' })
    t.same(store.get(origin), checkpoint(600))
  },
)

const HOUR_MS = 3_600_000
const at = (hours: number, maxAgeMs?: number) => ({ nowMs: NOW.nowMs + hours * HOUR_MS, maxAgeMs })

t.test('what stays open longer than a day, or than the app allows, is refused without evidence', async t => {
  for (const [maxAgeMs, limit] of [
    [undefined, 24],
    [2 * HOUR_MS, 2],
  ] as const) {
    const { pin } = pinAt(500)
    const accept = (hours: number) => pin.accept(checkpoint(400), at(hours, maxAgeMs), 500)
    for (const hours of [0, limit])
      t.match(await accept(hours), { kind: 'unanswered', check: 'stale' }, `${hours} h`)
    t.match(await accept(limit + 1), { kind: 'refused', check: 'stale', evidence: undefined })
    t.match(await pin.accept(checkpoint(500), at(limit + 1, maxAgeMs), 500), { kind: 'accepted' })
    t.match(await accept(limit + 1), { kind: 'unanswered' }, 'counted anew')
  }
})

t.test('a clock that was ahead does not put the refusal off', async t => {
  const { pin } = pinAt(500)
  const accept = (hours: number) => pin.accept(checkpoint(400), at(hours), 500)
  t.match(await accept(1_000), { kind: 'unanswered' })
  t.match(await accept(0), { kind: 'unanswered' })
  t.match(await accept(25), { kind: 'refused', check: 'stale' })
})

t.test('later checkpoints do not push a pending one out', async t => {
  const store = new MemoryStore()
  store.put(checkpoint(300))
  const pin = new CheckpointPin(keys, store, [() => Promise.reject(new Error('offline'))])
  const fork = log.fork(200)
  fork.register(1n, 1n)
  fork.grow(400)
  await pin.accept(checkpoint(400, fork), NOW)
  for (let treeSize = 401; treeSize < 430; treeSize++) await pin.accept(checkpoint(treeSize), NOW, 300)
  t.same(store.get(origin)?.pending?.length, 16)
  const online = new CheckpointPin(keys, store, [fetchTile])
  const evidence = [fork.note(), log.note(600)]
  t.match(await online.accept(checkpoint(600), NOW, 300), { kind: 'refused', check: 'consistency', evidence })
})

t.test('a store may answer null, and what it made up is not taken for a checkpoint', async t => {
  const answering = (kept: unknown) => {
    const store = { get: () => kept as SignedCheckpoint, put: () => {} }
    return new CheckpointPin(keys, store, [fetchTile]).highest()
  }
  const good = checkpoint(3)
  t.equal(await answering(null), undefined)
  t.same(await answering(JSON.parse(JSON.stringify(good))), good)
  const bad = [
    { ...good, treeSize: -1 },
    { ...good, treeSize: '3' },
    { ...good, rootHash: 'AAAA' },
    { ...good, rootHash: undefined },
    { ...good, rootHash: 5 },
    { ...good, note: undefined },
    JSON.stringify(good),
  ]
  for (const kept of [...bad, { ...good, origin: 'other.example' }]) {
    await t.rejects(answering(kept), { code: 'MALFORMED' }, JSON.stringify(kept).slice(-60))
  }
})

t.test('of a log that may begin anew, a kept checkpoint of another key alone counts as none', async t => {
  const text = checkpoint(500).note.split('\n\n')[0]!
  const other = signerKeyFromSeed(origin, Buffer.alloc(32, 77))
  const store = new MemoryStore()
  store.put({ ...checkpoint(500), note: signNote(`${text}\n`, [other]), pending: ['a note'], openSinceMs: 1 })
  await t.rejects(new CheckpointPin(keys, store, [fetchTile]).highest(), { code: 'MALFORMED' })
  const pin = new CheckpointPin(keys, store, [fetchTile], { mayBegin: true })
  t.equal(await pin.highest(), undefined)
  t.ok(await pin.hasSeen())
  t.same(await pin.accept(checkpoint(3), NOW, 500), { kind: 'accepted' })
  t.same(store.get(origin), checkpoint(3))
  // A signature that names a present key has to hold.
  for (const note of [checkpoint(3).note.replace('\n3\n', '\n4\n'), 'no note', undefined]) {
    const planted = new MemoryStore()
    planted.put({ ...checkpoint(3), note: note as string })
    const reading = new CheckpointPin(keys, planted, [fetchTile], { mayBegin: true })
    await t.rejects(reading.highest(), { code: 'MALFORMED' })
  }
})

t.test('two checkpoints of one log are compared by size, then by root', async t => {
  const other = log.fork(2)
  other.register(1n, 1n)
  other.grow(10)
  const elsewhere = { ...checkpoint(10), origin: 'other.example' }
  t.same(compareCheckpoints(checkpoint(10), checkpoint(10)), { kind: 'same' })
  t.same(compareCheckpoints(checkpoint(10), checkpoint(9)), { kind: 'smaller' })
  t.same(compareCheckpoints(checkpoint(9), checkpoint(10)), { kind: 'larger' })
  t.match(compareCheckpoints(checkpoint(10), checkpoint(10, other)), {
    kind: 'refused',
    check: 'fork',
    evidence: [log.note(10), other.note(10)],
  })
  t.match(compareCheckpoints(checkpoint(10), elsewhere), { kind: 'refused', check: 'origin' })
})

t.test('an empty tree with another root than the empty one is no checkpoint', async t => {
  const text = `${origin}\n0\n${checkpoint(1).rootHash}\n`
  t.match(verifyCheckpoint(keys, signNote(text, [log.signer])), { kind: 'refused', check: 'checkpoint' })
  t.match(verifyCheckpoint(keys, log.note(0)), { kind: 'verified', checkpoint: { treeSize: 0 } })
})
