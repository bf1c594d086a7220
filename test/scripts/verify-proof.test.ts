/** `verify-proof` as an operator or a developer runs it: a process with arguments, standard input and an exit code. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { readSettings, type Step, verify } from '../../scripts/verify-proof/verification.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { toBase64 } from '../support/bytes.ts'
import { LyingIndex } from '../support/lying-index.ts'
import { LyingLog, numberedKey } from '../support/lying-log.ts'
import { type Outcome, runProgram, skipWithout, startedProgram } from '../support/programs.ts'
import { bySize, sized } from '../support/size.ts'

const SCRIPT = startedProgram('scripts/verify-proof')
const log = new LyingLog()
log.grow(3)
const { publicKey } = log.register(18446744073709551615n, 7n)
log.grow(40)
const INDEX = 3
const result = log.result(INDEX)

const OPTIONS = {
  '--vkey': log.published.vkey,
  '--vrf-key': log.published.vrfPublicKey,
  '--user': '18446744073709551615',
  '--device': '7',
  '--public-key': publicKey,
}

interface Verification {
  readonly code: number | string
  readonly steps: readonly Step[]
  readonly last: Step | undefined
}

type Options = Readonly<Record<string, string | undefined>>

/** Runs the program with `options` over the good ones; undefined leaves one out. */
async function runVerifyProof(
  input: unknown,
  options: Options = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<Outcome & Verification> {
  const program = [SCRIPT, ...argumentsOf(options)]
  const outcome = await runProgram(process.execPath, program, { input: textOf(input), environment })
  const steps = outcome.stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as Step)
  return { ...outcome, steps, last: steps.at(-1) }
}

/** The same in the test's process. */
async function verifyProof(input: unknown, options: Options = {}): Promise<Verification> {
  const steps: Step[] = []
  const settings = readSettings(argumentsOf(options), {})!
  const code = await verify(settings, Readable.from([Buffer.from(textOf(input))]), step => steps.push(step))
  return { code, steps, last: steps.at(-1) }
}

function argumentsOf(options: Options): string[] {
  const given = Object.entries({ ...OPTIONS, ...options }).filter(([, value]) => value !== undefined)
  return given.flatMap(([name, value]) => [name, value!])
}

function textOf(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input)
}

function stateFile(t: Test): string {
  return join(t.testdir(), 'state.json')
}

t.test('a good result: a line for each check, exit 0', async t => {
  const { code, steps, stderr } = await runVerifyProof(result)
  t.equal(code, 0, stderr)
  t.same(
    steps.map(({ check, ok }) => `${check} ${ok}`),
    ['proof', 'checkpoint', 'index', 'vrf', 'vrfHash', 'inclusion', 'publicKey'].map(
      check => `${check} true`,
    ),
  )
  t.ok(steps.every(({ detail }) => detail.length > 10))
})

t.test('a whole answer with one result is read like the result, one with two is refused', async t => {
  t.equal((await verifyProof({ results: [result] })).code, 0)
  t.equal((await runVerifyProof({ results: [result, result] })).code, 2)
  t.equal((await verifyProof({ results: [] })).code, 2)
})

t.test('the public keys may be in the environment, and other members in the result', async t => {
  const environment = { KT_PUBLIC_KEY: log.published.vkey, VRF_PUBLIC_KEY: log.published.vrfPublicKey }
  const fromEnvironment = await runVerifyProof(
    { ...result, userID: '1' },
    { '--vkey': undefined, '--vrf-key': undefined },
    environment,
  )
  t.equal(fromEnvironment.code, 0)
})

t.test('with the key of the index it says whether the key is the newest, up to the log’s tree', async t => {
  const { vrfHash } = result
  const indexed = new LyingIndex(log.signer.name).append(log)
  const own = log.fork()
  own.register(18446744073709551615n, 7n)
  const key = { '--index-vkey': indexed.vkey }
  const whole = await runVerifyProof({ ...result, indexProof: indexed.proof(vrfHash) }, key)
  t.equal(whole.code, 0, whole.stderr)
  t.match(whole.last, {
    check: 'completeness',
    ok: true,
    detail: /^the index has entries 3 under the hash, up to tree size 40, and no others$/,
  })
  const fromEnvironment = { KT_INDEX_PUBLIC_KEY: indexed.vkey }
  t.equal(
    (await runVerifyProof({ ...result, indexProof: indexed.proof(vrfHash) }, {}, fromEnvironment)).code,
    0,
  )
  const of = (index: LyingIndex) => ({ ...result, indexProof: index.proof(vrfHash) })
  const elsewhere = new LyingLog({ number: 3 })
  elsewhere.grow(40)
  const cases: [string, unknown, Options, number, Partial<Record<keyof Step, unknown>>][] = [
    [
      'no key',
      of(indexed),
      {},
      0,
      { check: 'completeness', ok: null, detail: /--index-vkey has it checked/ },
    ],
    ['no proof', result, key, 2, { check: 'completeness', ok: null, detail: /"index": true/ }],
    [
      'an index that is behind',
      of(new LyingIndex(log.signer.name).append(log, { treeSize: 30 })),
      key,
      2,
      { ok: null, detail: /entries 30 to 39 came after it, and are in the log$/ },
    ],
    [
      'one that is ahead, with a newer entry',
      of(new LyingIndex(log.signer.name).append(own)),
      key,
      2,
      { ok: null, detail: /^entry 40 is newer than the answer's tree size 40$/ },
    ],
    [
      'one that leaves the entry out',
      of(
        new LyingIndex(log.signer.name).append(log, {
          entries: all => all.filter(({ index }) => index !== INDEX),
        }),
      ),
      key,
      1,
      { ok: false, detail: /^the index leaves out entry 3$/ },
    ],
    [
      'a later entry under the hash',
      of(new LyingIndex(log.signer.name).append(log, { entries: all => [...all, { vrfHash, index: 20 }] })),
      key,
      1,
      { ok: false, detail: /^entry 20 is newer under this hash than entry 3$/ },
    ],
    [
      'another tree of the log',
      of(new LyingIndex(log.signer.name).append(log, { inputNote: log.note(40, elsewhere.root()) })),
      key,
      1,
      { ok: false, detail: /signed tree size 40 with two roots/, notes: [/./, /./] },
    ],
    ['another key', of(new LyingIndex(log.signer.name, 6).append(log)), key, 1, { ok: false }],
    ['no form', { ...result, indexProof: 'none' }, key, 1, { ok: false }],
  ]
  for (const [name, input, options, code, step] of cases) {
    const outcome = await verifyProof(input, options)
    t.equal(outcome.code, code, name)
    t.match(outcome.last, step, name)
  }
  t.throws(
    () => readSettings(argumentsOf({ '--index-vkey': log.published.vkey }), {}),
    /the key of the index is of/,
  )
})

t.test('what does not hold: exit 1, with the check, a sentence and the leaf at fault', async t => {
  const stranger = new LyingLog({ number: 2 })
  const elsewhere = new LyingLog({ origin: 'other.example/kt' })
  const forked = log.fork(20)
  forked.register(66n, 6n)
  forked.grow(40)
  const index = `${INDEX}`
  const cases: [Partial<Step>, unknown, Record<string, string>?][] = [
    [{ check: 'proof' }, { ...result, proof: 'c2sp.org/tlog-proof@v1\n' }],
    [{ check: 'proof' }, { ...result, vrfHash: '' }],
    [{ check: 'checkpoint' }, log.result(INDEX, { note: elsewhere.note(0) })],
    [{ check: 'checkpoint' }, { ...result, proof: result.proof.replace('\n40\n', '\n41\n') }],
    [{ check: 'checkpoint' }, result, { '--vkey': stranger.published.vkey }],
    [{ check: 'index', index: '40' }, log.result(INDEX, { index: 40 })],
    [{ check: 'vrf', index }, result, { '--vrf-key': stranger.published.vrfPublicKey }],
    [{ check: 'vrf', index }, result, { '--device': '8' }],
    [
      { check: 'vrfHash', index },
      { ...result, vrfHash: log.identity(1n, 1n).vrfHash },
    ],
    [{ check: 'inclusion', index }, log.result(INDEX, { path: log.path(INDEX).slice(1) })],
    [{ check: 'inclusion', index }, log.result(INDEX, { note: log.note(40, forked.root()) })],
    [
      { check: 'inclusion', index },
      { ...result, publicKey: numberedKey(9) },
    ],
    [{ check: 'publicKey', index }, result, { '--public-key': numberedKey(9) }],
  ]
  for (const [expected, input, options] of cases) {
    const { code, steps, last } = await verifyProof(input, options)
    t.equal(code, 1, `${expected.check}`)
    t.match(last, { ...expected, ok: false, detail: /.{10}/ })
    t.ok(
      steps.slice(0, -1).every(({ ok }) => ok === true),
      'what was checked before it held',
    )
  }
})

t.test('input that is no result: exit 2, and not a word on the log', sized(), async t => {
  const inputs = {
    empty: '',
    'not JSON': '{"publicKey": ',
    'not UTF-8': Buffer.from([0x22, 0xff, 0x22]).toString('latin1'),
    null: 'null',
    'a number': '7',
    'a list': '[]',
    'a member missing': JSON.stringify({ ...result, proof: undefined }),
    'a member that is no text': JSON.stringify({ ...result, proof: 7 }),
    'two results': `${JSON.stringify(result)}\n${JSON.stringify(result)}`,
    'four megabytes': ' '.repeat(4_000_001) + JSON.stringify(result),
  }
  // The first of them go the way of all.
  const count = bySize({ short: 4, long: Object.keys(inputs).length })
  for (const [what, input] of Object.entries(inputs).slice(0, count)) {
    const { code, steps } = await verifyProof(input)
    t.equal(code, 2, what)
    t.match(steps, [{ check: 'input', ok: null, detail: /.{10}/ }], what)
    t.equal(steps.length, 1)
  }
})

t.test('wrong usage: exit 2, a sentence and the usage on stderr', sized(), async t => {
  const { keyId } = parseVerifierKey(log.published.vkey)
  const wrong: Record<string, string | undefined>[] = [
    { '--vkey': undefined },
    { '--vkey': 'no key' },
    { '--vkey': log.published.vkey.replace(keyId.toString(16), '00000000') },
    { '--vrf-key': undefined },
    { '--vrf-key': 'AAAA' },
    { '--vrf-key': toBase64(new Uint8Array(32)) },
    { '--user': undefined },
    { '--user': '-1' },
    { '--user': '18446744073709551616' },
    { '--device': undefined },
    { '--device': '07' },
    { '--public-key': undefined },
    { '--public-key': 'no base64' },
    { '--unknown': 'option' },
  ]
  for (const options of wrong.slice(0, bySize({ short: 5, long: wrong.length }))) {
    const { code, stdout, stderr } = await runVerifyProof(result, options)
    t.equal(code, 2, JSON.stringify(options))
    t.equal(stdout, '')
    t.match(stderr, /^verify-proof: [\s\S]+\n\nusage: /)
  }
  const help = await runProgram(process.execPath, [SCRIPT, '--help'])
  t.match(help, { code: 0, stdout: /^usage: /, stderr: '' })
})

t.test('the state follows a log that grows, and is left alone when nothing is new', async t => {
  const file = stateFile(t)
  const options = { '--state': file }
  t.match(await verifyProof(log.result(INDEX, { treeSize: 10 }), options), {
    code: 0,
    last: { check: 'state' },
  })
  t.match(JSON.parse(readFileSync(file, 'utf8')), { checkpoints: [{ treeSize: 10, note: log.note(10) }] })
  t.match(await verifyProof(result, options), { code: 0 })
  const kept = readFileSync(file, 'utf8')
  t.match(JSON.parse(kept), { checkpoints: [{ treeSize: 10 }, { treeSize: 40, note: log.note(40) }] })
  t.match(await verifyProof(result, options), { code: 0, last: { check: 'state', ok: true } })
  t.equal(readFileSync(file, 'utf8'), kept)
})

t.test(
  'a smaller tree is stale: exit 2; another root for a size a fork: exit 1, both notes; state untouched',
  async t => {
    const file = stateFile(t)
    const options = { '--state': file }
    await verifyProof(log.result(INDEX, { treeSize: 10 }), options)
    await verifyProof(result, options)
    const kept = readFileSync(file, 'utf8')
    const forked = log.fork(5)
    forked.register(66n, 6n)
    forked.grow(40)

    const stale = await runVerifyProof(log.result(INDEX, { treeSize: 30 }), options)
    t.match(stale, { code: 2, last: { check: 'stale', ok: null, notes: undefined } })
    for (const treeSize of [40, 10]) {
      const fork = await verifyProof(forked.result(INDEX, { treeSize }), options)
      const notes = [log.note(treeSize), forked.note(treeSize)]
      t.match(fork, { code: 1, last: { check: 'consistency', ok: false, notes } })
    }
    t.equal(readFileSync(file, 'utf8'), kept)
  },
)

t.test('a state file that is no use, or of another log, is left untouched: exit 2', async t => {
  const folder = t.testdir()
  const other = new LyingLog({ origin: 'other.example/kt' })
  const note = other.note(0)
  const checkpoint = {
    treeSize: 0,
    rootHash: toBase64(other.root(0)),
    note,
    verifiedAt: '2026-01-01T00:00:00Z',
  }
  const texts = {
    empty: '',
    garbage: 'garbage',
    'of another log': JSON.stringify({
      program: 'verify-proof',
      origin: other.signer.name,
      checkpoints: [checkpoint],
    }),
  }
  for (const [what, text] of Object.entries(texts)) {
    const file = join(folder, 'state.json')
    writeFileSync(file, text)
    const { code, last } = await verifyProof(result, { '--state': file })
    t.equal(code, 2, what)
    t.match(last, { check: 'state', ok: null })
    t.equal(readFileSync(file, 'utf8'), text)
  }
  mkdirSync(join(folder, 'a-folder'))
  for (const file of [join(folder, 'a-folder'), join(folder, 'nowhere/state.json')]) {
    t.match(await verifyProof(result, { '--state': file }), { code: 2, last: { check: 'state', ok: null } })
  }
  t.notOk(existsSync(join(folder, 'nowhere')))
})

t.test('a result that does not hold is exit 1 whatever the state file is, and is not remembered', async t => {
  const file = stateFile(t)
  t.match(await verifyProof(result, { '--state': file, '--device': '8' }), { code: 1 })
  t.notOk(existsSync(file))
  writeFileSync(file, 'garbage')
  t.match(await verifyProof(result, { '--state': file, '--device': '8' }), { code: 1 })
})

t.test(
  'at a terminal the account is for people, with the evidence in full',
  { skip: skipWithout(['/usr/bin/script'], 'bsdutils') },
  async t => {
    const file = stateFile(t)
    const input = join(t.testdir({ 'forked.json': '' }), 'forked.json')
    const forked = log.fork(5)
    forked.register(66n, 6n)
    forked.grow(40)
    await verifyProof(result, { '--state': file })
    writeFileSync(input, JSON.stringify(forked.result(INDEX)))
    const args = Object.entries({ ...OPTIONS, '--state': file }).map(([name, value]) => `${name}=${value}`)
    const command = `${process.execPath} ${SCRIPT} ${args.join(' ')} < ${input}`
    const { code, stdout } = await runProgram('/usr/bin/script', ['-qec', command, '/dev/null'])
    t.equal(code, 1)
    t.match(stdout, /^ok +inclusion +\S/m)
    t.match(stdout, /^FAILED +consistency +\S/m)
    for (const line of [...log.note().split('\n'), ...forked.note().split('\n')]) t.ok(stdout.includes(line))
  },
)

t.test('it is a command of callsign', async t => {
  const outcome = await runProgram(process.execPath, [
    startedProgram('scripts/callsign'),
    'verify-proof',
    '--help',
  ])
  t.match(outcome, { code: 0, stdout: /^usage: / })
})
