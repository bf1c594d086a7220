/** Storages of `@callsign/sdk/app`: they keep values whole, in order, and for their owner alone. */

import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fileStorage } from '../../../src/app/storage/file-storage.ts'
import { memoryStorage, readStored, writeStored } from '../../../src/app/storage/storage.ts'
import { rejectionOf } from '../../support/app-sessions.ts'

t.test('values are there afterwards, and can be taken away', async t => {
  for (const storage of [memoryStorage(), fileStorage(join(t.testdir(), 'state'))]) {
    t.equal(await readStored(storage, 'a', () => true), undefined)
    await writeStored(storage, 'a', { text: 'ä', list: [1, null] })
    t.same(await readStored(storage, 'a', () => true), { text: 'ä', list: [1, null] })
    t.equal(await rejectionOf(readStored(storage, 'a', () => false)), 'STORAGE_CORRUPT')
    await writeStored(storage, 'a', null)
    t.equal(await readStored(storage, 'a', () => true), undefined)
  }
})

t.test('of many writes at once the last one stays, in one file of its owner', async t => {
  const folder = join(t.testdir(), 'state')
  const storage = fileStorage(folder)
  await Promise.all(Array.from({ length: 20 }, (_, at) => storage.put('../a b', { at })))
  t.same(await storage.get('../a b'), { at: 19 })
  const [name, ...others] = readdirSync(folder)
  t.same(others, [])
  t.equal(statSync(join(folder, name!)).mode & 0o777, 0o600)
  t.equal(statSync(folder).mode & 0o777, 0o700)
})

t.test('a write that fails says so, leaves the value before, and the next one passes', async t => {
  const folder = t.testdir({})
  const storage = fileStorage(folder)
  await storage.put('a', { at: 1 })
  mkdirSync(join(folder, 'b.json'))
  t.equal(await rejectionOf(writeStored(storage, 'b', { at: 2 })), 'STORAGE_FAILED')
  t.equal(await rejectionOf(readStored(storage, 'b', () => true)), 'STORAGE_FAILED')
  t.same(readdirSync(folder), ['a.json', 'b.json'])
  await writeStored(storage, 'a', { at: 3 })
  t.same(await storage.get('a'), { at: 3 })
})

t.test('a file that is not JSON is an error that names the value', async t => {
  const folder = t.testdir({})
  writeFileSync(join(folder, 'session.json'), '{"kind":')
  const error = await fileStorage(folder)
    .get('session')
    .catch((each: unknown) => each)
  t.match(error, { code: 'STORAGE_CORRUPT', message: /"session" is damaged/ })
})
