/** `--notes`: checkpoints and evidence that users send are compared with the auditor's log. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { audit, newStateFile, openAuditor } from '../support/audit.ts'
import { entriesOf, integrate, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const SIZE = 600
const log = await serveFiles(t, logFilesOf(entriesOf(SIZE)))

function noteOf(size: number, forkedAt = size): string {
  return signCheckpoint(integrate(entriesOf(size, forkedAt)), SIGNER)
}

function fileOf(t: Test, text: string): string {
  const file = join(t.testdir(), 'notes')
  writeFileSync(file, text)
  return file
}

async function auditWith(t: Test, text: string, url = log.url) {
  const stateFile = newStateFile(t)
  const file = fileOf(t, text)
  return { file, stateFile, ...(await audit({ url, stateFile, notesFiles: [file] })) }
}

function besides(stateFile: string, kind: 'evidence' | 'pending'): string[] {
  return readdirSync(dirname(stateFile)).filter(name => name.includes(`.${kind}-`))
}

const good = [noteOf(1), noteOf(300), noteOf(600)]

t.test('notes of the same history pass, however they are written down', async t => {
  for (const text of [
    good.join(''),
    good.join('\n\n'),
    `\n${good.join('\n')}\n`,
    good.join('').replaceAll('\n', '\r\n'),
    JSON.stringify({ notes: good }),
    JSON.stringify({ notes: good }, null, 2),
    good.map(note => `${JSON.stringify({ note })}\n`).join(''),
    JSON.stringify({ note: good[2], evidence: good.slice(0, 2) }),
  ]) {
    const { verdict, failures, of, file } = await auditWith(t, text)
    t.strictSame([verdict, failures], [0, []], text)
    t.match(of('notes'), { ok: true, detail: /^3 notes/, file })
  }
})

t.test('a note of another history that the log signed: notes, with evidence', async t => {
  for (const note of [noteOf(600, 50), noteOf(300, 50)]) {
    for (const text of [good[0] + note + good[1], JSON.stringify({ notes: [good[2], note] })]) {
      const { verdict, failures, of, stateFile } = await auditWith(t, text)
      t.strictSame([verdict, failures], [1, ['notes false']])
      t.match(of('notes'), { notes: [noteOf(SIZE), note] })
      t.equal(besides(stateFile, 'evidence').length, 1)
    }
  }
})

t.test('a larger tree than the log shows is pending evidence, until the log has grown past it', async t => {
  const growing = await serveFiles(t, logFilesOf(entriesOf(SIZE)))
  for (const [note, failures, kept] of [
    [noteOf(900), [], 0],
    [noteOf(900, 50), ['notes false'], 1],
  ] as const) {
    growing.files = logFilesOf(entriesOf(SIZE))
    const { failures: first, stateFile, file } = await auditWith(t, note, growing.url)
    t.strictSame(first, ['notes null'])
    t.equal(besides(stateFile, 'pending').length, 1)
    growing.files = logFilesOf(entriesOf(1_000))
    writeFileSync(file, good[0]!)
    t.strictSame((await audit({ url: growing.url, stateFile, notesFiles: [file] })).failures, failures)
    t.equal(besides(stateFile, 'evidence').length, kept)
  }
})

t.test('another auditor’s evidence is judged by itself', async t => {
  const forked = await serveFiles(t, logFilesOf(entriesOf(900, 50)))
  const theirs = newStateFile(t)
  await audit({ url: log.url, stateFile: theirs, gossip: [forked.url] })
  const evidence = readFileSync(join(dirname(theirs), besides(theirs, 'evidence')[0]!), 'utf8')
  const { verdict, failures, of, stateFile } = await auditWith(t, evidence)
  t.equal(verdict, 1)
  t.match(failures, ['notes false'])
  t.match(of('notes'), { detail: /is proven: .*begins with a tree of size 600/ })
  const kept = besides(stateFile, 'evidence').map(name =>
    readFileSync(join(dirname(stateFile), name), 'utf8'),
  )
  t.strictSame(
    kept.map(text => JSON.parse(text).proof),
    [JSON.parse(evidence).proof],
  )
})

t.test('what the log did not sign says nothing about it', async t => {
  const other = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  for (const text of [
    signCheckpoint(integrate(entriesOf(600, 50)), other),
    '',
    'hello',
    '<h1>Sign in to the hotel</h1>',
    '{',
    '{"notes":7}',
    '{}\n[]\n',
    noteOf(600, 50).slice(0, -20),
  ]) {
    const { verdict, failures, of, stateFile } = await auditWith(t, text)
    t.strictSame([verdict, failures], [2, ['notes null']], text)
    t.match(of('notes'), { file: String })
    t.strictSame(besides(stateFile, 'pending'), [])
  }
  const stateFile = newStateFile(t)
  const none = await audit({ url: log.url, stateFile, notesFiles: [`${stateFile}.none`] })
  t.strictSame([none.verdict, none.failures], [2, ['notes null']])
  const mixed = await auditWith(t, `hello\n\n${noteOf(600, 50)}`)
  t.strictSame(mixed.failures, ['notes null'], 'text before a note makes it another note')
})

t.test('who follows a log reads the file again, and reports a bad note once', async t => {
  const file = fileOf(t, `${good[0]}hello\n`)
  const { auditor, findings } = openAuditor({ url: log.url, stateFile: newStateFile(t), notesFiles: [file] })
  t.teardown(() => auditor.close())
  const followed = auditor.follow(1)
  while (findings.filter(({ check }) => check === 'state').length < 3) await nextTurn()
  t.equal(findings.filter(({ check }) => check === 'notes').length, 1)
  writeFileSync(file, noteOf(600, 50))
  t.equal(await followed, 1)
  t.match(
    findings.findLast(({ check }) => check === 'notes'),
    { ok: false, notes: [String, String] },
  )
})
