/** The commands of docs/check/auditor.md, typed in the project's folder: they print the page's lines, but for numbers, keys and hashes. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { formatVerifierKey } from '../../src/log/note.ts'
import { INDEX_SIGNER, IndexedLog, keysOf } from '../support/indexed-log.ts'
import { runProgram } from '../support/programs.ts'
import { SIGNER, serveFiles } from '../support/served-log.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { blocksOf } from '../support/your-users.ts'

const blocks = blocksOf('check/auditor.md')
  .filter(({ language }) => language === 'console')
  .map(({ text }) => text.trimEnd().split('\n'))
const [auditing, indexing, explaining] = blocks as [string[], string[], string[]]

/** Runs a block's command with the state in this folder, beside a log at that URL. */
async function type(folder: string, url: string, [command = '']: readonly string[]) {
  const here = command
    .replace(/^\$ node /, `${process.execPath} `)
    .replace('https://kt.example.org', url)
    .replace('kt.example.org.json', join(folder, 'kt.example.org.json'))
  return runProgram('/bin/bash', ['--norc', '-c', `cd '${PROJECT_ROOT}'; unset NODE_OPTIONS; ${here}`], {
    environment: {
      KT_PUBLIC_KEY: formatVerifierKey(SIGNER),
      KT_INDEX_PUBLIC_KEY: formatVerifierKey(INDEX_SIGNER),
    },
  })
}

/** Lines as a terminal shows them, of the lines that a program reads. */
function shown(stdout: string): string[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
    .map(({ check, ok, detail }) => `${ok ? 'ok' : 'not ok'} ${check} ${detail}`)
}

/** Without spaces that align, numbers, keys and hashes. */
function alike(line: string): string {
  return line
    .replaceAll('kt.example.org', 'example.org')
    .replaceAll(/\+[\da-f]{8}\+[\w/+=]+…?/g, '+key')
    .replaceAll(/[\w/+]{8}…|[\w/+]{43}=/g, 'hash')
    .replaceAll(/\d[\d.]*/g, '1')
    .replaceAll(/ +/g, ' ')
}

t.test('an audit prints the lines of the page, and goes on with the index', async t => {
  const log = new IndexedLog(keysOf(30)).addLeaf()
  const server = await serveFiles(t, log.files)
  const folder = t.testdir()
  const { code, stdout } = await type(folder, server.url, auditing)
  t.equal(code, 0)
  t.strictSame(shown(stdout).map(alike), auditing.slice(1).map(alike))
  const indexed = await type(folder, server.url, indexing)
  t.equal(indexed.code, 0)
  t.match(shown(indexed.stdout).at(-1), /^ok index /)
})

t.test('a wrong root is found, and its evidence is explained in the words of the page', async t => {
  const log = new IndexedLog(keysOf(30)).addLeaf()
  log.addLeaf({ mapOf: log.entries.slice(1) })
  const server = await serveFiles(t, log.files)
  const folder = t.testdir()
  t.equal((await type(folder, server.url, indexing)).code, 1)
  const { code, stdout } = await explainIn(t, folder)
  t.equal(code, 0)
  t.strictSame(stdout.trimEnd().split('\n').map(alike), explaining.slice(1).map(alike))
})

function explainIn(t: Test, folder: string) {
  const [file = ''] = readdirSync(folder).filter(name => name.includes('.index.evidence-'))
  t.ok(file)
  const [command = ''] = explaining
  return type(folder, '', [command.replace(/kt\.example\.org\.json\S+/, file)])
}
