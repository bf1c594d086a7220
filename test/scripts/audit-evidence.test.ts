/** An auditor's file about a contradiction proves it to everyone who has the file, and nothing else proves one. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { judgeEvidence } from '../../scripts/audit/evidence.ts'
import { explain as explainEvidence } from '../../scripts/audit/explain.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { type Outcome, runProgram, startedProgram } from '../support/programs.ts'
import { entriesOf, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const OTHER = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))

/** The file that an auditor keeps when a log of `size` is shown elsewhere with so many entries, forked at 50. */
async function keptOf(
  t: Test,
  size: number,
  otherSize: number,
  kind: 'evidence' | 'pending',
): Promise<string> {
  const log = await serveFiles(t, logFilesOf(entriesOf(size)))
  const forked = await serveFiles(t, logFilesOf(entriesOf(otherSize, 50)))
  if (kind === 'pending')
    forked.misbehave = (path, response) => path !== 'checkpoint' && Boolean(response.writeHead(404).end())
  const stateFile = newStateFile(t)
  await audit({ url: log.url, stateFile, gossip: [forked.url] })
  const [name, ...more] = readdirSync(dirname(stateFile)).filter(file => file.includes(`.${kind}-`))
  t.strictSame(more, [])
  return join(dirname(stateFile), name!)
}

function runExplain(...args: readonly string[]): Promise<Outcome> {
  return runProgram(process.execPath, [startedProgram('scripts/audit'), 'explain', ...args])
}

/** The same in the test's process. */
function explain(...args: readonly string[]): Pick<Outcome, 'code' | 'stdout'> {
  let stdout = ''
  const code = explainEvidence(args, text => {
    stdout += text
  })
  return { code, stdout }
}

t.test('a fork is proven by the file alone, for sizes alike and apart', async t => {
  for (const [size, otherSize] of [
    [600, 600],
    [600, 900],
    [900, 600],
    [512, 513],
    [256, 700],
    [51, 600],
  ] as const) {
    const file = await keptOf(t, size, otherSize, 'evidence')
    const { code, stdout } = explain(file)
    t.equal(code, 0, stdout)
    t.match(stdout, `size ${size}`)
    t.match(stdout, `size ${otherSize}`)
    t.match(stdout, formatVerifierKey(SIGNER))
    t.match(stdout, /^Proven: the owner of this key signed two histories.*Compare the key/m)
    t.match(JSON.parse(readFileSync(file, 'utf8')), {
      format: 'callsign evidence v1',
      vkey: formatVerifierKey(SIGNER),
      proof: size === otherSize ? null : { oldRoot: String, hashes: Array },
    })
  }
})

t.test('with --vkey it has to be the log that the reader knows', async t => {
  const file = await keptOf(t, 600, 600, 'evidence')
  t.equal(explain(file, '--vkey', formatVerifierKey(SIGNER)).code, 0)
  const { code, stdout } = explain('--vkey', formatVerifierKey(OTHER), file)
  t.equal(code, 1)
  t.match(stdout, /not the key of the log that you named/)
})

t.test('notes that could not be compared are kept, and are no proof', async t => {
  const file = await keptOf(t, 600, 900, 'pending')
  const { code, stdout } = explain(file)
  t.equal(code, 1)
  t.match(stdout, /Not proven: sizes 600 and 900 .* Give this file to an auditor with --notes/)
})

t.test('a file that was made up, or cut, or is of another key proves nothing', async t => {
  const proven = JSON.parse(readFileSync(await keptOf(t, 600, 900, 'evidence'), 'utf8'))
  const honest = [600, 900].map(size =>
    Buffer.from(logFilesOf(entriesOf(size)).get('checkpoint')!).toString(),
  )
  const judge = (changes: object) => judgeEvidence(JSON.stringify({ ...proven, ...changes }))
  t.equal(judge({}).kind, 'proven')
  t.equal(judge({ notes: proven.notes.toReversed() }).kind, 'proven', 'in any order')
  const { oldRoot, hashes } = proven.proof
  const ofOther = proven.notes.map((_: string, at: number) =>
    signCheckpoint({ treeSize: 600, rootHash: new Uint8Array(32).fill(at) }, OTHER),
  )
  for (const [what, changes, said] of [
    ['another format', { format: 'callsign evidence v2' }, /its format/],
    ['no key', { vkey: undefined }, /no vkey/],
    ['another key', { vkey: formatVerifierKey(OTHER) }, /note 1: .*signature/],
    ['notes of another key', { notes: ofOther }, /note 1: .*signature/],
    ['one note', { notes: proven.notes.slice(1) }, /two notes/],
    ['one note twice', { notes: [proven.notes[0], proven.notes[0]] }, /same tree/],
    ['a note that is none', { notes: ['hello', proven.notes[0]] }, /note 1/],
    ['no proof', { proof: null }, /contradict each other only if/],
    ['two notes of one history', { notes: honest }, /consistency proof/],
    ['another root', { proof: { oldRoot: Buffer.alloc(32, 1).toString('base64'), hashes } }, /old root/],
    ['a root that is too short', { proof: { oldRoot: 'AAAA', hashes } }, /3 bytes, not 32/],
    ['a hash less', { proof: { oldRoot, hashes: hashes.slice(1) } }, /consistency proof/],
    ['no hashes', { proof: { oldRoot, hashes: [] } }, /consistency proof/],
    ['hashes without end', { proof: { oldRoot, hashes: Array(65).fill(oldRoot) } }, /proof is not one/],
    ['a proof that is a text', { proof: 'yes' }, /proof is not one/],
  ] as const) {
    const { kind, lines } = judge(changes)
    t.equal(kind, 'unproven', what)
    t.match(lines.at(-1), said, what)
  }
  for (const text of ['', 'hello', '[]', 'null', '7', ' '.repeat(17 * 1024 * 1024)])
    t.equal(judgeEvidence(text).kind, 'unproven')
})

t.test('the honest proof of one history is no evidence', async t => {
  const file = await keptOf(t, 600, 900, 'evidence')
  const forked = JSON.parse(readFileSync(file, 'utf8'))
  const { oldRoot } = forked.proof
  const begins = signCheckpoint({ treeSize: 600, rootHash: Buffer.from(oldRoot, 'base64') }, SIGNER)
  writeFileSync(file, JSON.stringify({ ...forked, notes: [begins, forked.notes[1]] }))
  const { code, stdout } = await runExplain(file)
  t.equal(code, 1)
  t.match(stdout, /begins with the smaller, as it should/)
})

t.test('wrong usage: 2', async t => {
  for (const args of [[], ['a', 'b'], [join(t.testdir(), 'none')], ['x', '--vkey', 'no'], ['x', '--what']]) {
    const { code, stderr } = await runExplain(...args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, /^audit: /)
  }
})
