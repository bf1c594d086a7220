import t from 'tap'
import { compareOwnKeys, type KeyHistory, parseLogKeys, verifyKeyHistory } from '../../src/client/client.ts'
import { LyingLog, numberedKey } from '../support/lying-log.ts'

/** Leaves 2, 5 and 9 are of one device; 12 leaves in all. */
const log = new LyingLog()
for (const at of [2, 5, 9]) {
  log.grow(at)
  log.register(1n, 1n)
}
log.grow(12)
const { vrfHash } = log.leaf(2)
const keys = parseLogKeys(log.published)
const claim = { userId: 1n, deviceId: 1n, vrfHash }
const history = log.history([2, 5, 9])

/** The check at which a history is refused, `verified` when it is not. */
function checkOf(changed: unknown): string {
  const verdict = verifyKeyHistory(keys, claim, changed as KeyHistory)
  return verdict.kind === 'refused' ? verdict.check : verdict.kind
}

function withEntry(at: number, changed: Record<string, unknown>) {
  return { ...history, entries: history.entries.with(at, { ...history.entries[at]!, ...changed }) }
}

t.test('a history gives its keys with their leaves, oldest first', async t => {
  const entries = [2, 5, 9].map(index => ({ index, publicKey: numberedKey(index) }))
  t.match(verifyKeyHistory(keys, claim, history), { kind: 'verified', entries, checkpoint: { treeSize: 12 } })
  t.match(verifyKeyHistory(keys, claim, log.history([5], 7)), { entries: [{ index: 5 }] })
})

t.test('a history that is not one is refused, at the check that failed', async t => {
  const [first, second, third] = history.entries
  const atElevenLeaves = log.history([5], 11).entries[0]!
  const stranger = log.result(3)
  const cases: [string, unknown][] = [
    ['verified', history],
    ['history', null],
    ['history', {}],
    ['history', { ...history, entries: [] }],
    ['history', { ...history, entries: 'none' }],
    ['history', { ...history, treeSize: '11' }],
    ['history', { ...history, treeSize: 12 }],
    ['history', { ...history, entries: [second, first, third] }],
    ['history', { ...history, entries: [first, first, third] }],
    ['history', { ...history, entries: [first, atElevenLeaves, third] }],
    ['history', withEntry(1, { index: '6' })],
    ['history', withEntry(1, { index: '05' })],
    ['history', withEntry(1, { index: 5 })],
    ['history', withEntry(1, { index: undefined })],
    ['proof', { ...history, entries: [first, null] }],
    ['proof', withEntry(1, { proof: undefined })],
    ['proof', withEntry(1, { publicKey: 7 })],
    ['inclusion', withEntry(1, { publicKey: first!.publicKey })],
    ['index', { ...history, entries: [first, { index: '12', ...log.result(5, { index: 12 }) }] }],
    ['vrf', { ...history, entries: [first, { index: '3', ...stranger }] }],
  ]
  t.same(
    cases.map(([, changed]) => checkOf(changed)),
    cases.map(([check]) => check),
  )
})

t.test('a history of another hash or device than was asked for is refused', async t => {
  const other = { ...claim, vrfHash: log.identity(2n, 1n).vrfHash }
  t.match(verifyKeyHistory(keys, other, history), { check: 'vrfHash' })
  t.match(verifyKeyHistory(keys, { ...claim, deviceId: 2n }, history), { check: 'vrf' })
  t.throws(() => verifyKeyHistory(keys, { ...claim, deviceId: '-1' }, history), RangeError)
})

t.test('own keys are compared with the logged ones and with those given to other users', async t => {
  const [a, b, c] = [1, 2, 3].map(numberedKey) as [string, string, string]
  const at = (index: number, publicKey: string) => ({ index, publicKey })
  const alert = { kind: 'alert', foreign: [], missing: [], outdated: [] }
  t.same(compareOwnKeys([at(4, a)], [a]), { kind: 'clean' })
  t.same(compareOwnKeys([at(4, a), at(7, b)], [a, b]), { kind: 'clean' })
  t.same(compareOwnKeys([], [a]), { ...alert, missing: [a] })
  t.same(compareOwnKeys([at(4, a)], [a, b]), { ...alert, missing: [b], outdated: [at(4, a)] })
  t.same(compareOwnKeys([at(4, c), at(7, a)], [a]), { ...alert, foreign: [at(4, c)] })
  t.same(compareOwnKeys([at(4, a), at(7, b), at(9, a)], [a, b]), { ...alert, outdated: [at(9, a)] })
  t.same(compareOwnKeys([at(4, a), at(7, b)], [a, b], at(4, a)), { ...alert, outdated: [at(4, a)] })
})

t.test('of many VRF proofs in one history, one is verified', async t => {
  const crowd = new LyingLog()
  crowd.grow(1)
  const { vrfHash, vrfProof } = crowd.register(1n, 1n)
  // It has the same hash, which is in its first half, and is no proof at all.
  const broken = Uint8Array.from(vrfProof, (octet, at) => (at < 32 ? octet : octet ^ 1))
  for (let at = 0; at < 500; at++) crowd.append({ vrfHash, vrfProof: broken, publicKey: numberedKey(2 + at) })
  const indexes = crowd.indexesOf(vrfHash)
  const ofCrowd = { ...claim, vrfHash }
  const read = verifyKeyHistory(parseLogKeys(crowd.published), ofCrowd, crowd.history(indexes))
  t.match(
    read,
    { kind: 'verified', entries: { length: 501 } },
    'to verify each would refuse it, half a minute later',
  )
})
