/** Logs that are stored, damaged and checked: what tests of the check and of the repair share. */

import type { Test } from 'tap'
import type { CheckOutcome, LogReport } from '../../src/check/log/fault.ts'
import { checkLog, type LogCheckOptions } from '../../src/check/log/log-check.ts'
import { RawLog } from '../../src/check/log/raw-log.ts'
import { LOG_TABLES, LogStore } from '../../src/keyserver/log-store.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { nameOfKey, RawTables, type RowKey } from './damage.ts'
import { FilledIndex } from './filled-index.ts'
import {
  createLog,
  type DeviceKey,
  deviceOf,
  ExpectedLog,
  freshKeys,
  keyOf,
  LogWriter,
  MAKER,
  SIGNER,
} from './stored-log.ts'

/** Where the devices of a test log come from stands in for the VRF. */
export const KNOWN: LogCheckOptions = {
  known: { verifier: SIGNER, vrfPublicKey: MAKER.vrfPublicKey },
  vrf: {
    hash: (userId, deviceId) => deviceOf(Number(userId) * 4 + Number(deviceId)).vrfHash,
    sampleMax: 1_000_000,
    random: () => 0.5,
  },
}

export interface Stored {
  readonly database: LmdbStore
  readonly tables: RawTables
  readonly log: ExpectedLog
}

export async function storeLog(t: Test, keys: readonly DeviceKey[], batchEntries = 500): Promise<Stored> {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const store = new LogStore(database)
  await createLog(store)
  const writer = new LogWriter(store, new ExpectedLog())
  for (let first = 0; first < keys.length; first += batchEntries) {
    await writer.append(keys.slice(first, first + batchEntries))
  }
  return { database, tables: RawTables.of(database), log: writer.expected }
}

/** The same with an index: a leaf behind each batch. */
export async function storeIndexedLog(
  t: Test,
  keys: readonly DeviceKey[],
  { batchEntries = 500, leavesPerBatch = 1 } = {},
): Promise<Stored & { readonly index: FilledIndex }> {
  const { database, tables, log } = await storeLog(t, [])
  const store = new LogStore(database)
  const writer = new LogWriter(store, log)
  const index = new FilledIndex(database)
  for (let first = 0; first < keys.length; first += batchEntries) {
    await writer.append(keys.slice(first, first + batchEntries))
    for (let leaf = 0; leaf < leavesPerBatch; leaf++) await index.addLeaf(store.head()!)
  }
  return { database, tables, log, index }
}

/** Keys; every fifth is a further key of one of ten devices. */
export function mixedKeys(count: number): DeviceKey[] {
  return freshKeys(0, count).map((key, at) =>
    at % 5 === 4 ? { device: deviceOf(100_000 + (at % 10)), publicKey: keyOf(at) } : key,
  )
}

export async function check(database: LmdbStore, options: LogCheckOptions = KNOWN): Promise<LogReport> {
  const raw = new RawLog(database)
  try {
    return await checkLog(raw, options)
  } finally {
    raw.end()
  }
}

export function brokenOf(report: LogReport): CheckOutcome[] {
  return report.outcomes.filter(({ ok }) => ok === false)
}

/** `check: table key offset detail` of the first fault of each check. */
export function namesOf(report: LogReport): string[] {
  return brokenOf(report).map(
    ({ check, first }) => `${check}: ${first!.table} ${first!.key} ${first!.detail}`,
  )
}

/** The keys of the lookup table's nodes. */
export function lookupKeys(tables: RawTables): RowKey[] {
  return tables.keys(LOG_TABLES.lookup).filter(key => nameOfKey(LOG_TABLES.lookup, key) !== '0')
}
