/**
 * A byte changed anywhere in a stored log or its index: the check names its table, key and, where it can be known, the byte itself;
 * the repair puts it right where it is derived. `CALLSIGN_DAMAGES` sets the number of bytes of each table (12),
 * `CALLSIGN_SEED` replays them.
 */

import t from 'tap'
import type { CheckName, LogReport } from '../../../src/check/log/fault.ts'
import type { TableName } from '../../../src/check/log/raw-log.ts'
import { RawLog } from '../../../src/check/log/raw-log.ts'
import { reasonAgainstRepair, repairLog } from '../../../src/check/log/repair.ts'
import { INDEX_TABLES } from '../../../src/keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../../src/keyserver/log-store.ts'
import { parseBundle } from '../../../src/log/tile.ts'
import type { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { brokenOf, check, mixedKeys, namesOf, storeIndexedLog } from '../../support/checked-log.ts'
import { nameOfKey, type RowKey } from '../../support/damage.ts'
import { seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'
import { SeededRandom } from '../../support/world.ts'

/** The required report of a table's changed byte, by its place. */
interface Expectation {
  readonly check: CheckName
  /** Whether the named offset can be the byte's, given the row as it was. */
  readonly isRightOffset: (named: number | undefined, offset: number, row: Buffer) => boolean
  readonly isDerived: (offset: number) => boolean
}

const isSame = (named: number | undefined, offset: number) => named === offset

/** The bytes of an entry are known only together; broken base64 or a wrong length breaks the bundle first. */
function isWithinEntry(named: number | undefined, offset: number, row: Buffer): boolean {
  let start = 0
  for (const entry of parseBundle(row)) {
    const end = start + 2 + entry.length
    if (offset < end) return named !== undefined && named >= start && named <= offset + 2
    start = end
  }
  return false
}

/** Nothing says what a signature should be, so the first of its bytes is named; the frame of a record is one thing. */
function isRightInHead(named: number | undefined, offset: number, row: Buffer): boolean {
  const signature = row.length - 93
  const text = row.indexOf(Buffer.from('log.example/test'))
  if (offset >= signature) return named === signature
  return offset >= text ? named === offset : true
}

const IDENTITY_PREVIOUS = 16
const EXPECTED: Partial<Record<TableName, Expectation>> = {
  [LOG_TABLES.tiles]: { check: 'tiles', isRightOffset: isSame, isDerived: () => true },
  [LOG_TABLES.bundles]: { check: 'entries', isRightOffset: isWithinEntry, isDerived: () => false },
  [LOG_TABLES.identities]: {
    check: 'identities',
    // User and device count as one: the record's start, or its first byte unlike an earlier one's.
    isRightOffset: (named, offset) =>
      offset % 24 >= IDENTITY_PREVIOUS
        ? named === offset
        : Math.floor(named! / 24) === Math.floor(offset / 24) || named !== undefined,
    isDerived: offset => offset % 24 >= IDENTITY_PREVIOUS,
  },
  [LOG_TABLES.lookup]: { check: 'lookup', isRightOffset: isSame, isDerived: () => true },
  [LOG_TABLES.head]: { check: 'checkpoint', isRightOffset: isRightInHead, isDerived: () => false },
  [LOG_TABLES.maker]: { check: 'maker', isRightOffset: named => named === undefined, isDerived: () => false },
  [INDEX_TABLES.rows]: { check: 'index-map', isRightOffset: isSame, isDerived: () => true },
  [INDEX_TABLES.tiles]: { check: 'index-tiles', isRightOffset: isSame, isDerived: () => true },
  [INDEX_TABLES.bundles]: {
    check: 'index-leaves',
    isRightOffset: isWithinEntry,
    isDerived: () => false,
  },
  // The check does not look for the first wrong byte of the shown checkpoint.
  [INDEX_TABLES.head]: {
    check: 'index-checkpoint',
    isRightOffset: (named, offset, row) => named === undefined || isRightInHead(named, offset, row),
    isDerived: () => false,
  },
}

for (const [table, expected] of Object.entries(EXPECTED) as [TableName, Expectation][]) {
  t.test(
    `a byte changed anywhere in ${table} is named by table and key, and put right where it is derived`,
    sized(),
    async t => {
      const seed = seedOf()
      const draw = new SeededRandom(seed)
      // At 2,560 the index was just written down, so its state row can say nothing else.
      const { database, tables } = await storeIndexedLog(t, mixedKeys(2_560), {
        batchEntries: 512,
        leavesPerBatch: 60,
      })
      const wrong: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const keys = tables.keys(table)
        const key = keys[draw.below(keys.length)]!
        const before = tables.get(table, key)!
        const offset = draw.below(before.length)
        const meantBefore = meaningOf(database, table, key)
        await tables.change(table, key, offset, 1 + draw.below(255))
        // The frame of a record has a byte that means nothing.
        if (meantBefore !== undefined && meaningOf(database, table, key) === meantBefore) continue
        const report = await check(database)
        for (const fault of misjudged(report, expected, table, key, offset, before)) {
          wrong.push(`${nameOfKey(table, key)} byte ${offset}: ${fault}`)
        }
        if (expected.isDerived(offset)) await repairLog(database, report)
        else await tables.put(table, key, before)
        if (!tables.get(table, key)!.equals(before) && table !== LOG_TABLES.lookup) {
          wrong.push(`${nameOfKey(table, key)} byte ${offset}: not put right`)
        }
        const after = namesOf(await check(database))
        if (after.length > 0) wrong.push(`${nameOfKey(table, key)} byte ${offset}: afterwards ${after[0]}`)
      }
      t.same(wrong, [], `seed ${seed}`)
    },
  )
}

/** A record's content, as text. */
function meaningOf(database: LmdbStore, table: TableName, key: RowKey): string | undefined {
  if (table !== LOG_TABLES.head && table !== LOG_TABLES.maker && table !== INDEX_TABLES.head) return undefined
  const raw = new RawLog(database)
  try {
    return JSON.stringify(raw.record(table, String(key)))
  } catch {
    return 'nothing'
  } finally {
    raw.end()
  }
}

/** All in which a report does not say that this byte, and nothing else, is wrong. */
function misjudged(
  report: LogReport,
  expected: Expectation,
  table: TableName,
  key: RowKey,
  offset: number,
  before: Buffer,
): string[] {
  const broken = brokenOf(report)
  const named = broken.find(({ check }) => check === expected.check || check === 'vrf')
  if (named === undefined) return [`not found: ${namesOf(report)}`]
  const { first, lasting } = named
  const faults: string[] = []
  if (broken.some(({ check }) => check !== expected.check && check !== 'vrf')) {
    faults.push(`others are blamed: ${namesOf(report)}`)
  }
  // When two records of one device differ, either may be the wrong one.
  const isPair = table === LOG_TABLES.identities && !expected.isDerived(offset)
  if (first!.table !== table || (first!.key !== nameOfKey(table, key) && !isPair)) {
    faults.push(`named as ${first!.table} ${first!.key}`)
  }
  if (!expected.isRightOffset(first!.offset, offset, before)) {
    faults.push(`named as byte ${first!.offset}: ${first!.detail}`)
  }
  if ((lasting === 0) !== expected.isDerived(offset)) faults.push(`${lasting} faults can't be repaired`)
  const reason = reasonAgainstRepair(report)
  const mayRepair = expected.isDerived(offset) || table === LOG_TABLES.identities
  if ((reason === undefined) !== mayRepair) faults.push(`repair: ${reason}`)
  return faults
}

const ROUNDS = countOf('CALLSIGN_DAMAGES', { short: 4, long: 12 })
