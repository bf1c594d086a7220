/**
 * Programs that other people wrote take our index as it is: torchwood and its mpt, transparency-dev/formats and merkle, Tessera's
 * client and its fsck (`test/strangers/go-index`). Skipped where Go's toolchain or the Go proxy is not to be had.
 */

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { SignalError } from '../../src/errors.ts'
import { formatVerifierKey, parseSignerKey } from '../../src/log/note.ts'
import { type PatriciaClaim, verifyPatricia } from '../../src/log/patricia.ts'
import { DEVELOPMENT_KEYS_FILE } from '../../src/server/development/development-keys.ts'
import { fromHex, toBase64, toHex } from '../support/bytes.ts'
import { buildGo, goModuleFolder } from '../support/go-program.ts'
import { registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { startMirror } from '../support/mirror.ts'
import { until } from '../support/nodes.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { PROJECT_ROOT, readVectors } from '../support/vectors.ts'

const TOOLCHAIN = 'go1.27.3'
const KEYS = 300
const ENVIRONMENT = { CALLSIGN_INDEX_SECONDS: '1' }
const folder = t.testdir({ go: {}, log: {} })
const { skip, run } = await build()

async function build(): ReturnType<typeof buildGo> {
  const source = join(folder, 'source')
  cpSync(join(PROJECT_ROOT, 'test/strangers/go-index'), source, { recursive: true })
  const torchwood = await goModuleFolder(source, 'filippo.io/torchwood', TOOLCHAIN)
  mkdirSync(join(source, 'mpt'))
  // Its files are kept from being built; this needs the tree in memory alone.
  for (const file of torchwood === undefined ? [] : ['tree.go', 'mem.go']) {
    const text = readFileSync(join(torchwood!, 'mpt', file), 'utf8')
    writeFileSync(join(source, 'mpt', file), text.replace('//go:build ignore\n', ''))
  }
  return buildGo(source, join(folder, 'go'), { toolchain: TOOLCHAIN })
}

interface LookupBody {
  output_log_cp: string
  output_log_leaf: string
  output_log_proof: number[][]
  index_value: number[]
  index_proof: string
}

function flipped(base64: string, at: number): string {
  const bytes = Buffer.from(base64, 'base64')
  bytes[at < 0 ? bytes.length + at : at]! ^= 1
  return bytes.toString('base64')
}

const LIES: readonly (readonly [
  name: string,
  change: (body: LookupBody) => Partial<LookupBody>,
  refusal: RegExp,
])[] = [
  [
    'its checkpoint',
    ({ output_log_cp }) => ({ output_log_cp: flipped(output_log_cp, -20) }),
    /^output checkpoint: /,
  ],
  [
    'its leaf',
    ({ output_log_leaf }) => ({ output_log_leaf: flipped(output_log_leaf, -3) }),
    /^output proof: /,
  ],
  [
    'its inclusion proof',
    ({ output_log_proof: [first, ...rest] }) => ({
      output_log_proof: [first!.with(31, first![31]! ^ 1), ...rest],
    }),
    /^output proof: /,
  ],
  [
    'an index',
    ({ index_value: [index, ...rest] }) => ({ index_value: [index! ^ 1, ...rest] }),
    /^index proof: /,
  ],
  ['no index', () => ({ index_value: [] }), /^index proof: /],
  [
    'the first octet of its proof',
    ({ index_proof }) => ({ index_proof: flipped(index_proof, 0) }),
    /^index proof: /,
  ],
  [
    'the last octet of its proof',
    ({ index_proof }) => ({ index_proof: flipped(index_proof, -1) }),
    /^index proof: /,
  ],
]

t.test('other people’s programs for an index', { skip }, async t => {
  const log = await startLog(t, join(folder, 'log'), ENVIRONMENT)
  const { vkey, http, client } = log
  const keys = parseEnv(readFileSync(join(folder, 'log', DEVELOPMENT_KEYS_FILE), 'utf8'))
  const indexVkey = formatVerifierKey(parseSignerKey(keys.KT_INDEX_PRIVATE_KEY!))
  const entriesOfIndex = async (): Promise<number> => {
    const answer = await fetch(`${http}/index/lookup/${'00'.repeat(32)}`)
    if (answer.status !== 200) return 0
    const { output_log_leaf } = (await answer.json()) as LookupBody
    const leaf = JSON.parse(Buffer.from(output_log_leaf, 'base64').toString()) as { input_log_cp: string }
    return Number(Buffer.from(leaf.input_log_cp, 'base64').toString().split('\n')[1])
  }
  // The first leaf is of a log without entries.
  await until(async () => (await fetch(`${http}/index/checkpoint`)).status === 200)
  const registered = await registerUsers(client, 0, KEYS)
  await until(async () => (await entriesOfIndex()) >= KEYS)
  const checkpoint = await (await fetch(`${http}/index/checkpoint`)).text()
  registered.push(await registerKey(client, 1n, 0n), await registerKey(client, 1n, 0n))
  await until(async () => (await entriesOfIndex()) >= KEYS + 2)
  const absent = [1, 2, 3].map(octet => toBase64(new Uint8Array(64).fill(octet)))
  const there = [...new Set(registered.map(({ vrfHash }) => vrfHash))]
  const ask = (task: object) =>
    run(JSON.stringify({ vkey, indexVkey, checkpoint, url: http, hashes: [], ...task }))

  t.test('take every lookup, follow the output log and make the same map', async t => {
    const { code, stdout, stderr } = await ask({ hashes: [...there, ...absent] })
    t.equal(code, 0, stderr)
    const { indexes, followed, leaves, entries } = JSON.parse(stdout)
    const indexesOf = (hash: string) =>
      registered
        .filter(({ vrfHash }) => vrfHash === hash)
        .map(({ index }) => index)
        .sort((one, other) => one - other)
    t.same(indexes, [...there.map(indexesOf), [], [], []])
    t.same(indexesOf(registered.at(-1)!.vrfHash), [KEYS, KEYS + 1], 'two keys of one device')
    t.equal(entries, KEYS + 2)
    t.ok(followed >= 1 && leaves > followed, `${leaves} leaves, ${followed} of them new`)
  })

  t.test('refuse a lookup with one bit changed in any part', async t => {
    for (const [name, change, refusal] of LIES) {
      const url = await startMirror(t, http, (path, body) => {
        if (!path.startsWith('/index/lookup/')) return body
        const whole = JSON.parse(body.toString()) as LookupBody
        return JSON.stringify({ ...whole, ...change(whole) })
      })
      const { code, stderr } = await ask({ url, hashes: there.slice(0, 1) })
      t.equal(code, 1, name)
      t.match(stderr, refusal, name)
    }
    const { code, stderr } = await ask({ indexVkey: vkey, hashes: there.slice(0, 1) })
    t.equal(code, 1)
    t.match(stderr, /^output checkpoint: /, 'another key')
  })

  t.test('refuse a tile, a leaf and an entry with one bit changed', async t => {
    for (const [prefix, at, refusal] of [
      ['/index/tile/0/', 3, /^(?:tracker|fsck): /m],
      ['/index/tile/entries/', 40, /^fsck: /m],
      ['/tile/entries/000', 100, /^entries of /m],
    ] as const) {
      let changed = 0
      const url = await startMirror(t, http, (path, body) => {
        if (path.startsWith(prefix)) changed += body[at]! ^= 1
        return body
      })
      const { code, stderr } = await ask({ url })
      t.equal(code, 1, prefix)
      t.match(stderr, refusal)
      t.ok(changed > 0)
    }
  })

  t.test('take and refuse proofs that were changed in some places as ours does', async t => {
    const seed = seedOf()
    const claims = changedClaims(seed)
    const { code, stdout, stderr } = await ask({
      url: '',
      claims: claims.map(({ root, key, value, proof }) => ({
        root: toHex(root),
        key: toHex(key),
        value: value === undefined ? null : toHex(value),
        proof: toHex(proof),
      })),
    })
    t.equal(code, 0, stderr)
    const verdicts: boolean[] = JSON.parse(stdout).verdicts
    t.equal(verdicts.length, claims.length)
    const worse = claims.filter((claim, at) => isTaken(claim) && !verdicts[at])
    t.same(worse, [], `seed ${seed}`)
    t.ok(claims.some(isTaken))
  })
})

function isTaken(claim: PatriciaClaim): boolean {
  try {
    verifyPatricia(claim)
    return true
  } catch (error) {
    if (error instanceof SignalError && error.code === 'PROOF_INVALID') return false
    throw error
  }
}

/** Torchwood's own, and each with octets changed, put in and left out. */
function changedClaims(seed: number): PatriciaClaim[] {
  const random = randomFrom(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const { cases } = readVectors<{
    cases: readonly { snap: string; key: string; val: string | null; proof: string }[]
  }>('mpt-verify')
  const claims = cases.map(({ snap, key, val, proof }) => ({
    root: fromHex(snap),
    key: fromHex(key),
    value: val === null ? undefined : fromHex(val),
    proof: fromHex(proof),
  }))
  const changed = Array.from({ length: 5_000 }, () => {
    const claim = claims[below(claims.length)]!
    const proof = [...claim.proof]
    for (let change = below(3); change >= 0; change--)
      proof.splice(below(proof.length + 1), below(3), ...Array.from({ length: below(4) }, () => below(256)))
    return { ...claim, proof: Uint8Array.from(proof) }
  })
  return [...claims, ...changed]
}
