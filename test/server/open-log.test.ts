/** A start on a store that this program can't read. */

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import t from 'tap'
import { MAKER as MAKERS } from '../../src/keyserver/log-store.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { openLog } from '../../src/server/open-log.ts'
import { Process } from '../../src/server/process/process.ts'
import { readConfig } from '../../src/server/settings/config.ts'
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
