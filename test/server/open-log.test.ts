/** A start on a store that this program can't read. */

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import t from 'tap'
import { MAKER as MAKERS } from '../../src/keyserver/log-store.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { openCopiedLog, openCopy, openLog } from '../../src/server/open-log.ts'
import { Process } from '../../src/server/process/process.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { NotInLedgerError } from '../../src/store/engine/change-ledger.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { LeasedStore } from '../../src/store/engine/leased-store.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { STORE_FORM } from '../../src/store/engine/store-form.ts'
import { MAKER } from '../support/stored-log.ts'

t.test('a store of another form is refused before any row is read', async t => {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/log', randomBytes)
  const keys = { CALLSIGN_ORIGIN: origin, KT_PRIVATE_KEY: ktPrivateKey, VRF_PRIVATE_KEY: vrfPrivateKey }
  for (const storeForm of [STORE_FORM - 1, STORE_FORM + 1]) {
    const dataFolder = t.testdir()
    const database = LmdbStore.open(dataFolder)
    await database.change(change => change.put(MAKERS, 'maker', { ...MAKER, storeForm }))
    await database.close()
    const config = readConfig(
      { ...keys, CALLSIGN_SECRET: secret, CALLSIGN_DATA_DIR: dataFolder },
      { dev: true },
    )
    let said = ''
    const write = (line: string) => {
      said += line
    }
    const logger = pino({ base: null }, { write })
    const host = new Process(config, logger, () => undefined)
    t.teardown(() => host.close())
    await t.rejects(openLog(host, undefined), {
      name: 'ConfigError',
      message: `the store in ${dataFolder} is not of form ${STORE_FORM}, the only one that this program reads: run the version that made it, or begin with an empty one`,
    })
    t.notMatch(said, /store-row/)
  }
})

t.test('a node compacts its copy before it opens it, and goes on from where it was', async t => {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/log', randomBytes)
  const keys = { CALLSIGN_ORIGIN: origin, KT_PRIVATE_KEY: ktPrivateKey, VRF_PRIVATE_KEY: vrfPrivateKey }
  const environment = { ...keys, CALLSIGN_SECRET: secret, CALLSIGN_DATA_DIR: t.testdir() }
  let said = ''
  const write = (line: string) => {
    said += line
  }
  const config = readConfig(environment, { dev: true })
  const host = new Process(config, pino({ base: null }, { write }), () => undefined)
  t.teardown(() => host.close())
  const database = await openCopy(host)
  const rowsOf = <Value>(value: Value) =>
    Array.from({ length: 2_000 }, (_, at) => ({ table: 'sessions', key: indexKey(at), value }))
  await database.fill(rowsOf(Buffer.alloc(400)))
  await database.fill(rowsOf(undefined))
  await database.filled(7, 3)
  await database.close()
  t.notMatch(said, /store-compact/)
  const again = await openCopy(host)
  t.match(
    said,
    /"event":"store-compacting".*"event":"store-compacted","bytesBefore":\d+,"bytesAfter":\d+,"ms":\d+/s,
  )
  t.same(again.copyState, { number: 7, epoch: 3, isFilling: false })
  await again.close()
})

t.test('a node that loses its lease as it opens the log leaves no thread behind', async t => {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/log', randomBytes)
  const keys = { CALLSIGN_ORIGIN: origin, KT_PRIVATE_KEY: ktPrivateKey, VRF_PRIVATE_KEY: vrfPrivateKey }
  const environment = { ...keys, CALLSIGN_SECRET: secret, CALLSIGN_DATA_DIR: t.testdir() }
  const host = new Process(readConfig(environment, { dev: true }), pino({ level: 'silent' }), () => undefined)
  const database = await openCopy(host)
  let threads = 0
  const count = () => {
    threads += 1
  }
  process.on('worker', count)
  t.teardown(() => {
    process.off('worker', count)
    host.close()
  })
  const append = async () => {
    throw new NotInLedgerError('another node is the writer')
  }
  const store = new LeasedStore(database, { epoch: 1, append })
  const witnesses = { knownCheckpoint: undefined, recordedHead: undefined }
  await t.rejects(openCopiedLog(host, store, witnesses), { code: 'STORE_UNAVAILABLE' })
  t.equal(threads, 0)
  await database.close()
})
