/**
 * The check of the lookup table over a log so long that a node with children has rows of its own, and some replace
 * rows below: made by the index itself, in memory.
 */

import { createHash } from 'node:crypto'
import t from 'tap'
import { Findings } from '../../../src/check/log/fault.ts'
import { LookupCheck } from '../../../src/check/log/lookup-check.ts'
import { LeafSet, NewestKeys } from '../../../src/check/log/newest-keys.ts'
import { LookupIndex } from '../../../src/keyserver/lookup-index.ts'
import { formatEntry } from '../../../src/log/entry.ts'
import { indexKey } from '../../../src/store/engine/keys.ts'
import type { View } from '../../../src/store/engine/store.ts'
import { plainBytesTable } from '../../support/plain-tables.ts'
import { formatBundle } from '../../support/tiles.ts'

/** As many as fill a node; all of their hashes begin with 8, the eighth partition to be written down. */
const CROWD = 1_200
/** Each partition has been written down twice; older entries are in the table only. */
const SIZE = 2 * 65_536 + 5_120
const PARENT = '108'

function hashOf(number: number): Uint8Array {
  const hash = new Uint8Array(createHash('sha512').update(`${number}`).digest())
  if (number < CROWD) hash[0] = 8
  else if (hash[0] === 8) hash[0] = 9
  return hash
}

/** The crowd, a second crowd, half of the first again before its partition's next turn, and a third. */
function numberAt(index: number): number {
  if (index < CROWD) return index
  return index >= 60_000 && index < 60_000 + CROWD / 2 ? 2 * (index - 60_000) : index
}

class LongLog {
  readonly rows = new Map<string, Buffer>()
  readonly #hashes = Array.from({ length: SIZE }, (_, index) => hashOf(numberAt(index)))

  constructor() {
    const view = {
      getVolatile: (_: unknown, key: Uint8Array) => this.rows.get(nameOf(key)),
    } as unknown as View
    const index = new LookupIndex({ view: read => read(view) }, plainBytesTable('lookup'))
    for (let first = 0; first < SIZE; first += 2_048) {
      const pending = index.add(first, this.#hashes.slice(first, first + 2_048))
      for (const { key, value } of pending.writes) this.rows.set(nameOf(key), Buffer.from(value))
      pending.release()
    }
  }

  /** `key offset detail` of the first fault, and how many there are. */
  check(unsound: readonly number[] = []): { first: string | undefined; faults: number } {
    const findings = new Findings()
    const damaged = new LeafSet(SIZE)
    for (const index of unsound) damaged.add(index)
    const tables = {
      lookupNode: (id: number) => this.rows.get(nameOf(indexKey(id))),
      bundle: (index: number) =>
        formatBundle(
          this.#hashes.slice(index * 256, (index + 1) * 256).map(hash => formatEntry(hash, 'AAAA')),
        ),
      keys: () => [...this.rows.keys()].sort().map(name => Buffer.from(name, 'hex')),
    }
    const check = new LookupCheck(tables, SIZE, damaged, findings)
    const newest = new NewestKeys(SIZE)
    for (const [index, hash] of this.#hashes.entries()) {
      if (!damaged.has(index)) newest.add(hash, 0, index, 1)
    }
    check.checkRange({ from: 0, to: 256 }, newest)
    check.finish()
    const { first, faults } = findings.outcome('lookup', '')
    return { first: first && `${first.key} ${first.offset} ${first.detail}`, faults }
  }

  node(id: string): Buffer {
    return this.rows.get(id.padStart(12, '0'))!
  }

  put(id: string, node: Buffer): void {
    this.rows.set(id.padStart(12, '0'), node)
  }
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}

const indexAt = (node: Buffer, at: number) => node.readUIntBE(at + 16, 6)

const log = new LongLog()

t.test('rows that replace rows further down are valid', async t => {
  t.equal(log.node(PARENT)[0], 2)
  t.ok(log.node(PARENT).length > 22 * 500, 'the parent has rows')
  t.same(log.check(), { first: undefined, faults: 0 })
})

t.test('a row that is older than the one it hides is named', async t => {
  const node = log.node(PARENT)
  const at = 1 + 22 * 7
  const newest = indexAt(node, at)
  const oldest = 2 * (newest - 60_000)
  const altered = Buffer.from(node)
  altered.writeUIntBE(oldest, at + 16, 6)
  log.put(PARENT, altered)
  const { first, faults } = log.check()
  t.match(first, new RegExp(`^108 \\d+ row leads to entry ${oldest}, which ${newest} has replaced`))
  t.equal(faults, 1)
  log.put(PARENT, node)
})

t.test('two rows that changed places are named', async t => {
  const node = log.node(PARENT)
  const altered = Buffer.from(node)
  altered.set(node.subarray(23, 45), 1)
  altered.set(node.subarray(1, 23), 23)
  log.put(PARENT, altered)
  t.equal(log.check().first, '108 23 row is not in its place among the others')
  log.put(PARENT, node)
})

t.test('a row in a node where no search for it comes is named, and so is its entry', async t => {
  const [one, other] = ['1081', '1082'].map(id => log.node(id))
  // Rows of the crowd's odd numbers were not replaced, so the table has them here only.
  let at = 1
  while (indexAt(one!, at) % 2 === 0) at += 22
  log.put('1081', Buffer.concat([one!.subarray(0, at), one!.subarray(at + 22)]))
  log.put('1082', Buffer.concat([other!.subarray(0, 1), one!.subarray(at, at + 22), other!.subarray(1)]))
  t.same(log.check(), { first: '1082 1 row belongs to another node', faults: 2 })
  log.put('1081', one!)
  log.put('1082', other!)
})

t.test('what leads to an entry that is damaged itself is not judged', async t => {
  const damaged = indexAt(log.node(PARENT), 1)
  t.same(log.check([damaged]), { first: undefined, faults: 0 })
  const node = log.node('1081')
  let at = 1
  while (indexAt(node, at) % 2 === 0) at += 22
  t.same(log.check([indexAt(node, at)]), { first: undefined, faults: 0 })
})
