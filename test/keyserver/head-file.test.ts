/** The head file: what it takes, what it refuses, and how heads that wait share a write. */

import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HeadFile } from '../../src/keyserver/head-file.ts'
import { type LogHead, signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { writeDurably } from '../../src/store/engine/durable-file.ts'
import { SIGNER } from '../support/stored-log.ts'

/** Roots are made up: the file looks at signature and text only. */
function headOf(treeSize: number, signer = SIGNER): LogHead {
  const rootHash = new Uint8Array(32).fill(treeSize)
  return { treeSize, checkpoint: signCheckpoint({ treeSize, rootHash }, signer) }
}

function pathIn(t: Test): string {
  return join(t.testdir(), 'head')
}

t.test('a recorded note is in the file as it is, and the next process reads it', async t => {
  const path = pathIn(t)
  const file = HeadFile.open(path, SIGNER)
  t.equal(file.checkpoint, undefined)
  for (const head of [headOf(1), headOf(1), headOf(7)]) {
    await file.record(head)
    t.equal(readFileSync(path, 'utf8'), head.checkpoint)
  }
  t.match(HeadFile.open(path, SIGNER).checkpoint, { treeSize: 7, origin: SIGNER.name })
  t.same(readdirSync(join(path, '..')), ['head'], 'no draft is left')
})

t.test('heads that wait for a write share the next one, which writes the last of them', async t => {
  const path = pathIn(t)
  const file = HeadFile.open(path, SIGNER)
  const first = file.record(headOf(1))
  // The first write begins before the rest come.
  await Promise.resolve()
  const others = [2, 3, 4].map(treeSize => file.record(headOf(treeSize)))
  t.equal(new Set([first, ...others]).size, 2, 'two writes in all')
  await first
  t.equal(readFileSync(path, 'utf8'), headOf(1).checkpoint)
  await Promise.all(others)
  t.equal(readFileSync(path, 'utf8'), headOf(4).checkpoint)
})

t.test('a file that is not a checkpoint of this log is refused by name', async t => {
  const { checkpoint } = headOf(3)
  const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  const otherOrigin = signerKeyFromSeed('other.example/log', SIGNER.seed)
  const contents: Record<string, string> = {
    empty: '',
    torn: checkpoint.slice(0, -20),
    altered: checkpoint.replace('\n3\n', '\n2\n'),
    'of another key': headOf(3, otherKey).checkpoint,
    'of another origin': headOf(3, otherOrigin).checkpoint,
    'something else': 'hello\n',
  }
  for (const [what, text] of Object.entries(contents)) {
    const path = pathIn(t)
    writeFileSync(path, text)
    const sentence =
      /CALLSIGN_LOG_HEAD_FILE .*head is not a checkpoint of log\.example\/test.*put this log's own/
    t.throws(() => HeadFile.open(path, SIGNER), { code: 'CHECKPOINT_INVALID', message: sentence }, what)
  }
  const folder = pathIn(t)
  mkdirSync(folder)
  t.throws(() => HeadFile.open(folder, SIGNER), { code: 'CHECKPOINT_INVALID', message: /can't be read/ })
})

t.test('a whole file of another key names that key, and one that is at fault names none', async t => {
  const path = pathIn(t)
  const made = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  const { checkpoint } = headOf(3, made)
  writeFileSync(path, checkpoint)
  const [, id] = formatVerifierKey(made).split('+')
  const sentence = `it is signed with ${SIGNER.name}+${id}; if this log was made with that key, set KT_PRIVATE_KEY to it`
  t.throws(() => HeadFile.open(path, SIGNER), { message: new RegExp(sentence.replaceAll('+', '\\+')) })
  t.equal(HeadFile.open(path, made).checkpoint?.treeSize, 3)
  for (const text of [checkpoint.replace('\n3\n', '\n2\n'), checkpoint.slice(0, -20)]) {
    writeFileSync(path, text)
    t.throws(() => HeadFile.open(path, made), { message: /^((?!KT_PRIVATE_KEY).)*$/ })
  }
})

t.test('a write that fails is refused, leaves the old note, and the next one may succeed', async t => {
  const path = pathIn(t)
  const file = HeadFile.open(path, SIGNER)
  await file.record(headOf(1))
  symlinkSync('/dev/full', `${path}.draft`)
  const refusal = { code: 'STORE_UNAVAILABLE', message: /can't be written.*ENOSPC/ }
  await t.rejects(file.record(headOf(2)), refusal)
  t.equal(readFileSync(path, 'utf8'), headOf(1).checkpoint)
  rmSync(`${path}.draft`)
  await file.record(headOf(2))
  t.equal(readFileSync(path, 'utf8'), headOf(2).checkpoint)
})

t.test('a write reported as failed may have taken effect, or be found to have', async t => {
  for (const isThere of [true, false]) {
    const path = pathIn(t)
    let mayFail = false
    const write = async (where: string, text: string) => {
      if (isThere || !mayFail) await writeDurably(where, text, 0o644)
      if (mayFail) throw Object.assign(new Error('the folder was not synced'), { code: 'EIO' })
    }
    const file = HeadFile.open(path, SIGNER, { write, retryMs: 0 })
    await file.record(headOf(1))
    mayFail = true
    await t.rejects(file.record(headOf(2)), { code: 'STORE_UNAVAILABLE', message: /EIO/ })
    await t.rejects(file.record(headOf(3)), { code: 'STORE_UNAVAILABLE' })
    mayFail = false
    await file.record(headOf(3))
    t.equal(readFileSync(path, 'utf8'), headOf(3).checkpoint)
    writeFileSync(path, headOf(2).checkpoint)
    await t.rejects(file.record(headOf(4)), { code: 'CHECKPOINT_INVALID' }, 'what might have been is over')
  }
})

t.test('a file that someone else has written is not written over', async t => {
  const path = pathIn(t)
  const file = HeadFile.open(path, SIGNER)
  await file.record(headOf(1))
  writeFileSync(path, headOf(9).checkpoint)
  await t.rejects(file.record(headOf(2)), { code: 'CHECKPOINT_INVALID', message: /changed by someone else/ })
  t.equal(readFileSync(path, 'utf8'), headOf(9).checkpoint)
})

t.test('a file that is gone is not made anew while the process runs', async t => {
  const path = pathIn(t)
  const file = HeadFile.open(path, SIGNER)
  await file.record(headOf(1))
  rmSync(path)
  await t.rejects(file.record(headOf(2)), { code: 'STORE_UNAVAILABLE', message: /is gone/ })
  writeFileSync(path, headOf(1).checkpoint)
  await file.record(headOf(2))
})

t.test('a smaller tree is never recorded after a larger one', async t => {
  const path = pathIn(t)
  await HeadFile.open(path, SIGNER).record(headOf(5))
  t.throws(() => void HeadFile.open(path, SIGNER).record(headOf(4)), /never shrinks/)
})
