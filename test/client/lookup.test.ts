import t from 'tap'
import { type LookupClaim, type LookupResult, parseLogKeys, verifyLookup } from '../../src/client/client.ts'
import { formatVerifierKey, parseVerifierKey } from '../../src/log/note.ts'
import { LyingLog } from '../support/lying-log.ts'
import { readVectors } from '../support/vectors.ts'

interface WholeLog {
  log_vkey: string
  vrf_pk_base64: string
  entries: { userID: string; deviceID: string; publicKey: string; vrfHash: string }[]
  tlog_proofs: { index: number; size: number; proof: string }[]
}

const wholeLog = readVectors<WholeLog>('derived-kt-e2e')
const published = { vkey: wholeLog.log_vkey, vrfPublicKey: wholeLog.vrf_pk_base64 }
const keys = parseLogKeys(published)
const lookups = wholeLog.tlog_proofs.map(({ index, size, proof }) => {
  const { userID: userId, deviceID: deviceId, publicKey, vrfHash } = wholeLog.entries[index]!
  const claim: LookupClaim = { userId, deviceId, publicKey, vrfHash }
  return { index, size, claim, result: { publicKey, vrfHash, proof } }
})
const { claim, result } = lookups.find(({ size }) => size === 260)!

/** The check at which a result is refused, `verified` when it is not. */
function checkOf(changed: Partial<LookupResult>, asked: LookupClaim = claim, by = keys): string {
  const verdict = verifyLookup(by, asked, { ...result, ...changed })
  return verdict.kind === 'refused' ? verdict.check : verdict.kind
}

function edit(from: string | RegExp, to: string): Partial<LookupResult> {
  return { proof: result.proof.replace(from, to) }
}

t.test('the lookup results of a log made elsewhere verify', async t => {
  for (const { index, size, claim, result } of lookups) {
    const { publicKey, vrfHash } = result
    const verified = verifyLookup(keys, claim, result)
    t.match(verified, { kind: 'verified', index, publicKey, vrfHash, checkpoint: { treeSize: size } })
  }
  t.ok(lookups.length >= 13)
})

t.test('ids are taken as bigint and as text, and nothing else is an id', async t => {
  const userId = BigInt(claim.userId)
  const deviceId = BigInt(claim.deviceId)
  t.equal(checkOf({}, { ...claim, userId, deviceId }), 'verified')
  const notIds = [
    '',
    '01',
    '-1',
    '1.0',
    '1e3',
    ' 1',
    '0x1',
    `${2n ** 64n}`,
    -1n,
    2n ** 64n,
    7,
    null,
    undefined,
  ]
  for (const id of notIds) {
    t.throws(() => checkOf({}, { ...claim, userId: id as string }), RangeError, `${id}`)
    t.throws(() => checkOf({}, { ...claim, deviceId: id as string }), RangeError, `${id}`)
  }
})

t.test('each check refuses its own fault, and is named', async t => {
  const other = lookups.find(({ claim: { userId } }) => userId !== claim.userId)!
  const hash = Buffer.alloc(32).toString('base64')
  const verifier = parseVerifierKey(published.vkey)
  const foreign = new LyingLog({ origin: verifier.name, number: 9 })
  const cases: [string, () => string][] = [
    ['verified', () => checkOf({})],
    ['verified', () => checkOf({}, { userId: claim.userId, deviceId: claim.deviceId })],
    ['proof', () => checkOf({ proof: '' })],
    ['proof', () => checkOf(edit('@v1', '@v2'))],
    ['proof', () => checkOf(edit(/index \d+/, 'index 007'))],
    ['proof', () => checkOf(edit(/extra [^\n]+\n/, ''))],
    ['proof', () => checkOf({ vrfHash: 'AAAA' })],
    ['proof', () => checkOf({ vrfHash: `${result.vrfHash}\n` })],
    ['proof', () => checkOf({ publicKey: '' })],
    ['proof', () => checkOf({ publicKey: 'not base64' })],
    ['origin', () => checkOf(edit(`\n\n${verifier.name}\n`, '\n\nother.example\n'))],
    ['checkpoint', () => checkOf(edit(/\n\n(?=\u2014)/, '\n'))],
    ['signature', () => checkOf(edit('\n260\n', '\n261\n'))],
    ['signature', () => checkOf({}, claim, parseLogKeys({ ...published, vkey: foreign.published.vkey }))],
    ['index', () => checkOf(edit(/index \d+/, 'index 260'))],
    ['index', () => checkOf(edit(/index \d+/, `index ${2 ** 53 - 1}`))],
    ['vrf', () => checkOf({}, { ...claim, userId: BigInt(claim.userId) + 1n })],
    ['vrf', () => checkOf({}, { ...claim, deviceId: BigInt(claim.deviceId) + 1n })],
    [
      'vrf',
      () => checkOf({}, claim, parseLogKeys({ ...published, vrfPublicKey: foreign.published.vrfPublicKey })),
    ],
    ['vrf', () => checkOf(edit(/extra [^\n]+/, 'extra AAAA'))],
    ['vrfHash', () => checkOf({ vrfHash: other.result.vrfHash })],
    ['vrfHash', () => checkOf({}, { ...claim, vrfHash: other.result.vrfHash })],
    ['inclusion', () => checkOf({ publicKey: 'AAAA' }, { ...claim, publicKey: 'AAAA' })],
    ['inclusion', () => checkOf(edit(/index \d+/, 'index 3'))],
    ['inclusion', () => checkOf(edit(/\n\n/, `\n${hash}\n\n`))],
    ['inclusion', () => checkOf(edit(/\n[^\n]+\n\n/, '\n\n'))],
    ['publicKey', () => checkOf({}, { ...claim, publicKey: 'AAAA' })],
  ]
  t.same(
    cases.map(([, run]) => run()),
    cases.map(([check]) => check),
  )
})

t.test('an answer that has not the form of one is refused at `proof`', async t => {
  const answers = [
    null,
    undefined,
    7,
    'text',
    [],
    {},
    { ...result, proof: undefined },
    { ...result, proof: 7 },
  ]
  for (const answer of answers) {
    const verdict = verifyLookup(keys, claim, answer as unknown as LookupResult)
    t.match(verdict, { kind: 'refused', check: 'proof' }, JSON.stringify(answer))
  }
})

t.test('a result with any one character changed is refused', async t => {
  const { claim, result } = lookups.find(({ size }) => size === 8)!
  const accepted: string[] = []
  for (const [name, text] of Object.entries(result)) {
    for (let at = 0; at < text.length; at++) {
      const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
      const verdict = verifyLookup(keys, claim, { ...result, [name]: changed })
      if (verdict.kind !== 'refused') accepted.push(`${name} at ${at}`)
    }
  }
  t.same(accepted, [])
})

t.test('the client reports each check that held, up to the one that failed', async t => {
  const told: string[] = []
  verifyLookup(keys, claim, result, ({ check }) => told.push(check))
  t.same(told, ['proof', 'signature', 'index', 'vrf', 'vrfHash', 'inclusion', 'publicKey'])
  told.length = 0
  verifyLookup(keys, claim, { ...result, publicKey: 'AAAA' }, ({ check }) => told.push(check))
  t.same(told, ['proof', 'signature', 'index', 'vrf', 'vrfHash'])
})

t.test('public keys that are not of their form cannot be pinned', async t => {
  const identity = Buffer.alloc(32).toString('base64')
  const bad = [
    { ...published, vrfPublicKey: identity },
    { ...published, vrfPublicKey: 'AAAA' },
    { ...published, vrfPublicKey: '' },
    { ...published, vkey: '' },
    { ...published, vkey: `${published.vkey}=` },
    { ...published, vkey: published.vkey.replace('+', '+0') },
  ]
  for (const keys of bad) t.throws(() => parseLogKeys(keys), { code: 'KEY_INVALID' })
  t.equal(formatVerifierKey(keys.verifier), published.vkey)
})
