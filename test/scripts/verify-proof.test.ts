/** `verify-proof` as an operator or a developer runs it: a process with arguments, standard input and an exit code. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { readSettings, type Step, verify } from '../../scripts/verify-proof/verification.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { toBase64 } from '../support/bytes.ts'
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

t.test('with the key of the index, the result has to prove that it is the newest', async t => {
  const indexed = log.fork()
  indexed.index.append(indexed)
  const options = { '--index-vkey': indexed.index.vkey }
  const { vrfHash } = indexed.leaf(INDEX)
  const withProof = (from = indexed) => ({ ...from.result(INDEX), indexProof: indexed.index.proof(vrfHash) })
  const good = await verifyProof(withProof(), options)
  t.match([good.code, good.last], [0, { check: 'completeness', ok: true }])
  t.match(
    (await verifyProof(withProof())).last,
    { check: 'publicKey' },
    'without the key nothing is said of it',
  )
  const missing = await verifyProof(result, options)
  t.match([missing.code, missing.last], [2, { check: 'completeness', ok: null }])
  const grown = indexed.fork()
  grown.grow(44)
  const behind = await verifyProof(withProof(grown), options)
  t.match([behind.code, behind.last], [2, { ok: null, detail: /entries 40 to 43$/ }])
  indexed.register(18446744073709551615n, 7n)
  indexed.index.append(indexed)
  const older = await verifyProof(withProof(), options)
  t.match([older.code, older.last], [1, { check: 'completeness', ok: false, index: `${INDEX}` }])
  const late = await verifyProof({ ...withProof(), ...log.result(INDEX) }, options)
  t.match([late.code, late.last], [2, { check: 'completeness', ok: null }])
  const twin = log.fork(20)
  twin.register(66n, 6n)
  twin.grow(40)
  const other = log.fork()
  other.index.append(other, { inputNote: log.note(40, twin.root(40)) })
  const twoTrees = await verifyProof({ ...result, indexProof: other.index.proof(vrfHash) }, options)
  t.match([twoTrees.code, twoTrees.last], [1, { ok: false, detail: /signed tree size 40 with two roots/ }])
  t.equal(twoTrees.last?.notes?.length, 2)
  const stranger = new LyingLog({ number: 2 }).index.vkey
  const unsigned = await verifyProof(withProof(), { '--index-vkey': stranger })
  t.match([unsigned.code, unsigned.last], [1, { check: 'checkpoint', ok: false }])
})
