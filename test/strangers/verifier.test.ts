/**
 * The strangers of this folder against vectors that they did not make: what they accept, and above all what they
 * refuse, for a verifier that accepts everything would prove nothing about the server.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_ROOT, readVectors } from '../support/vectors.ts'
import { tilePath } from './crawler.ts'
import { leafHash, rootOfLeaves, rootOfPath } from './tree.ts'
import { VerificationError, type VerificationStep } from './verification-error.ts'
import { openCheckpoint, readLogKeys, verifyLookup } from './verifier.ts'
import { verifyVrf } from './vrf.ts'

interface WholeLog {
  log_vkey: string
  vrf_pk_base64: string
  entries: { userID: string; deviceID: string; publicKey: string; vrfHash: string }[]
  tlog_proofs: { index: number; size: number; proof: string }[]
}

interface GoldenLog {
  vkey: string
  entries_utf8: string[]
  checkpoints: string[]
}

interface VrfCase {
  id?: string
  pk: string
  alpha: string
  pi: string
  beta: string
}

const wholeLog = readVectors<WholeLog>('derived-kt-e2e')
const goldenLog = readVectors<GoldenLog>('tessera-golden-log')
const keys = readLogKeys(wholeLog.log_vkey, wholeLog.vrf_pk_base64)
const someVrfKey = wholeLog.vrf_pk_base64

const lookups = wholeLog.tlog_proofs.map(({ index, size, proof }) => {
  const { userID, deviceID, publicKey, vrfHash } = wholeLog.entries[index]!
  const expected = { userId: BigInt(userID), deviceId: BigInt(deviceID), publicKey }
  return { index, size, expected, result: { publicKey, vrfHash, proof } }
})

/** The step at which a check refuses, or undefined. */
function refusal(run: () => unknown): VerificationStep | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof VerificationError) return error.step
    throw error
  }
}

t.test('the strangers share no code with the product', async t => {
  const folder = join(PROJECT_ROOT, 'test/strangers')
  const files = readdirSync(folder).filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const imports = files.flatMap(name => {
    const text = readFileSync(join(folder, name), 'utf8')
    return [...text.matchAll(/from '([^']+)'/g)].map(([, target]) => target!)
  })
  const foreign = imports.filter(target => !/^\.\/[a-z-]+\.ts$|^node:|^@noble\/curves\//.test(target))
  t.same(foreign, [])
  t.ok(imports.length >= 10, 'the imports were found')
})

t.test('the lookup results of a log made elsewhere verify', async t => {
  for (const { index, size, expected, result } of lookups) {
    const verified = verifyLookup(keys, expected, result)
    t.match(verified, { index, checkpoint: { size } })
  }
  t.ok(lookups.length >= 13)
})

t.test('a proof text with any one character changed is refused', async t => {
  const { expected, result } = lookups.find(({ size }) => size === 8)!
  const accepted: number[] = []
  for (let at = 0; at < result.proof.length; at++) {
    const changed = result.proof[at] === 'A' ? 'B' : 'A'
    const proof = result.proof.slice(0, at) + changed + result.proof.slice(at + 1)
    if (refusal(() => verifyLookup(keys, expected, { ...result, proof })) === undefined) accepted.push(at)
  }
  t.same(accepted, [])
  t.ok(result.proof.length > 400)
})

t.test('each step of the verification refuses what is wrong at that step', async t => {
  const { expected, result } = lookups.find(({ size }) => size === 260)!
  const other = lookups.find(({ expected: { userId } }) => userId !== expected.userId)!
  const hash = Buffer.alloc(32).toString('base64')
  const edit = (from: string | RegExp, to: string) => ({ ...result, proof: result.proof.replace(from, to) })
  const cases: [VerificationStep, () => unknown][] = [
    ['public key', () => verifyLookup(keys, { ...expected, publicKey: 'AAAA' }, result)],
    ['vrf', () => verifyLookup(keys, { ...expected, userId: expected.userId + 1n }, result)],
    ['vrf', () => verifyLookup(keys, { ...expected, deviceId: expected.deviceId + 1n }, result)],
    ['vrf hash', () => verifyLookup(keys, expected, { ...result, vrfHash: other.result.vrfHash })],
    ['root', () => verifyLookup(keys, { ...expected, publicKey: 'AAAA' }, { ...result, publicKey: 'AAAA' })],
    ['root', () => verifyLookup(keys, expected, edit(/index \d+/, 'index 3'))],
    ['index', () => verifyLookup(keys, expected, edit(/index \d+/, 'index 260'))],
    ['path', () => verifyLookup(keys, expected, edit('\n\n', `\n${hash}\n\n`))],
    ['path', () => verifyLookup(keys, expected, edit(/\n[^\n]+\n\n/, '\n\n'))],
    ['proof text', () => verifyLookup(keys, expected, edit('@v1', '@v2'))],
    ['proof text', () => verifyLookup(keys, expected, edit(/index \d+/, 'index 007'))],
    ['proof text', () => verifyLookup(keys, expected, edit(/extra [^\n]+\n/, ''))],
    ['signature', () => verifyLookup(keys, expected, edit('\n\n', '\n\n\n'))],
    ['note', () => verifyLookup(keys, expected, edit(/\n\n(?=\u2014)/, '\n'))],
    ['signature', () => verifyLookup(keys, expected, edit('\n260\n', '\n261\n'))],
    ['signature', () => verifyLookup({ ...keys, keyId: Buffer.alloc(4) }, expected, result)],
    ['signature', () => verifyLookup({ ...keys, origin: 'another.example' }, expected, result)],
  ]
  t.same(
    cases.map(([, run]) => refusal(run)),
    cases.map(([step]) => step),
  )
})

t.test('a verifier key whose key id is not its own is refused', async t => {
  const vkey = wholeLog.log_vkey.replace('+22a3b58a+', '+22a3b58b+')
  t.equal(
    refusal(() => readLogKeys(vkey, someVrfKey)),
    'verifier key',
  )
})

t.test('a checkpoint of another origin is refused, though its signature verifies', async t => {
  const { verify } = readVectors<{ verify: { vkey: string; note: string }[] }>('checkpoint')
  const checksumDatabase = verify.find(({ note }) => note.startsWith('go.sum database tree\n'))!
  const keys = readLogKeys(checksumDatabase.vkey, someVrfKey)
  t.equal(
    refusal(() => openCheckpoint(checksumDatabase.note, keys)),
    'origin',
  )
})

t.test('the sixteen golden checkpoints open, each with the root of its entries', async t => {
  const golden = readLogKeys(goldenLog.vkey, someVrfKey)
  const leaves = goldenLog.entries_utf8.map(entry => leafHash(Buffer.from(entry)))
  const opened = goldenLog.checkpoints.map(note => openCheckpoint(note, golden))
  t.same(
    opened,
    opened.map((_, size) => ({ size, rootHash: rootOfLeaves(leaves.slice(0, size)) })),
  )
  t.equal(opened.length, 16)
})

t.test('a path of every length but the right one is refused', async t => {
  const leaves = goldenLog.entries_utf8.map(entry => leafHash(Buffer.from(entry)))
  const path = Array.from({ length: 6 }, () => Buffer.alloc(32))
  for (let size = 1; size <= leaves.length; size++) {
    const lengths = path.map((_, length) => length)
    const accepted = lengths.filter(
      length => refusal(() => rootOfPath(leaves[0]!, 0, size, path.slice(0, length))) === undefined,
    )
    t.same(accepted, [Math.ceil(Math.log2(size))], `size ${size}`)
  }
})

t.test('VRF proofs verify and give their hash', async t => {
  const { published } = readVectors<{ published: VrfCase[] }>('vrf-r255')
  const { valid } = readVectors<{ valid: VrfCase[] }>('derived-vrf-r255')
  const cases = [...published, ...valid]
  const betas = cases.map(({ pk, alpha, pi }) => verifyVrf(hex(pk), hex(alpha), hex(pi)).toString('hex'))
  t.same(
    betas,
    cases.map(({ beta }) => beta),
  )
  t.equal(cases.length, 14)
})

t.test('VRF proofs that are not canonical, or of another key or input, are refused', async t => {
  const { invalid } = readVectors<{ invalid: VrfCase[] }>('derived-vrf-r255')
  const accepted = invalid.filter(
    ({ pk, alpha, pi }) => refusal(() => verifyVrf(hex(pk), hex(alpha), hex(pi))) !== 'vrf',
  )
  t.same(accepted, [])
  t.equal(invalid.length, 14)
})

t.test('tile paths are those of c2sp.org/tlog-tiles', async t => {
  t.equal(tilePath(0, 1_234_067, 256), 'tile/0/x001/x234/067')
  t.equal(tilePath(63, 1000, 256), 'tile/63/x001/000')
  t.equal(tilePath('entries', 0, 7), 'tile/entries/000.p/7')
})

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}
