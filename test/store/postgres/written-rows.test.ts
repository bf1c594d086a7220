/** Bodies of changes: rows come back as they were, and nothing else is read. */

import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { unpack } from 'msgpackr'
import t from 'tap'
import { SignalError } from '../../../src/errors.ts'
import type { WrittenRow } from '../../../src/store/engine/change-ledger.ts'
import { STORE_FORM } from '../../../src/store/engine/store-form.ts'
import { decodeRows, encodeRows } from '../../../src/store/postgres/written-rows.ts'
import { checkProperty } from '../../support/property.ts'

/** How a body begins, in hexadecimal. */
const FORM = Buffer.of(STORE_FORM).toString('hex')
const bytes = fc.uint8Array({ maxLength: 80 })
const row = fc.record({
  table: fc.string({ maxLength: 40, unit: 'binary' }),
  key: bytes,
  value: fc.option(bytes, { nil: undefined }),
})

function textOf(rows: readonly WrittenRow[]): string {
  const hex = (part: Uint8Array | undefined) => part && Buffer.from(part).toString('hex')
  return JSON.stringify(rows.map(({ table, key, value }) => [table, hex(key), hex(value) ?? null]))
}

function hexOf(items: readonly unknown[]): string {
  return JSON.stringify(
    items.map(item => (item instanceof Uint8Array ? Buffer.from(item).toString('hex') : item)),
  )
}

function isRefused(body: Uint8Array): boolean {
  try {
    decodeRows(body)
    return false
  } catch (error) {
    if (error instanceof SignalError && error.code === 'MALFORMED') return true
    throw error
  }
}

t.test('rows come back as they were written', async t => {
  checkProperty(t, [fc.array(row, { maxLength: 20 })], rows => {
    return textOf(decodeRows(encodeRows(rows))) === textOf(rows)
  })
  const many = Array.from({ length: 30_000 }, (_, at) => ({
    table: 'calls',
    key: Buffer.from(String(at)),
    value: at % 3 === 0 ? undefined : randomBytes(at % 400),
  }))
  many.push({ table: 'entry-bundles', key: Buffer.from('k'), value: Buffer.alloc(300_000, 7) })
  t.equal(textOf(decodeRows(encodeRows(many))), textOf(many))
})

t.test('a body is the form of rows and one flat array of msgpack', async t => {
  checkProperty(t, [fc.array(row, { maxLength: 20 })], rows => {
    const body = encodeRows(rows)
    const read = unpack(body.subarray(1)) as unknown[]
    return (
      body[0] === STORE_FORM &&
      hexOf(read) === hexOf(rows.flatMap(({ table, key, value }) => [table, key, value ?? null]))
    )
  })
})

t.test('keys and values that are read are parts of the body', async t => {
  const body = encodeRows([{ table: 'calls', key: Buffer.from('k'), value: Buffer.from('value') }])
  const [read] = decodeRows(body)
  t.equal(read!.key.buffer, body.buffer)
  t.equal(read!.value!.buffer, body.buffer)
})

t.test('bodies of another form, cut off, or with more behind are refused', async t => {
  const body = encodeRows([
    { table: 'calls', key: Buffer.from('key'), value: Buffer.alloc(300) },
    { table: 'devices', key: Buffer.from('key'), value: undefined },
  ])
  for (let length = 0; length < body.length; length++) {
    if (!isRefused(body.subarray(0, length))) t.fail(`cut to ${length}`)
  }
  t.ok(isRefused(Buffer.concat([body, Buffer.of(0xc0)])))
  t.ok(isRefused(Buffer.concat([Buffer.of(STORE_FORM + 1), body.subarray(1)])))
})

t.test('arrays of anything but table, key and value are refused', async t => {
  const [head, nil, text, bytes] = [`${FORM}dd0000000`, 'c0', 'd90163', 'c4016b']
  const wrong = [
    `${head}2${text}${bytes}`,
    `${head}3${bytes}${bytes}${bytes}`,
    `${head}3${text}${text}${bytes}`,
    `${head}3${text}${nil}${bytes}`,
    `${head}3${text}${bytes}07`,
    `${head}3${text}${bytes}91${bytes}`,
    `${head}3${text}${bytes}${text}`,
    `${FORM}c0`,
    `${FORM}80`,
  ]
  t.same(decodeRows(Buffer.from(`${head}3${text}${bytes}${bytes}`, 'hex')).length, 1)
  for (const body of wrong) t.ok(isRefused(Buffer.from(body, 'hex')), body)
})

t.test('random bytes are refused or read, and nothing is made as large as they claim', async t => {
  checkProperty(
    t,
    [fc.uint8Array({ maxLength: 60 }), fc.nat(20)],
    (tail, items) => {
      isRefused(Buffer.concat([Buffer.of(STORE_FORM, 0xdd, 0, 0, 0, 3 * items), tail]))
      return true
    },
    2_000,
  )
  t.ok(isRefused(Buffer.from(`${FORM}ddffffffffddffffffff`, 'hex')))
  t.ok(isRefused(Buffer.from(`${FORM}dd00fffffda0c4ffff`, 'hex')))
})
