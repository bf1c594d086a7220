/** Forms tell rows from what is none, and give shapes in their own order; keys have lengths and names by their parts. */

import t from 'tap'
import { HASH, ID, keyName, lengthsOf, opaque, TIME, untold } from '../../../src/store/engine/key-parts.ts'
import { idsKey, timeBytes } from '../../../src/store/engine/keys.ts'
import {
  bytes,
  count,
  either,
  type Form,
  flag,
  id,
  listOf,
  mapOf,
  maybe,
  object,
  oneOf,
  optional,
  type RowOf,
  sealed,
  text,
  tuple,
} from '../../../src/store/engine/row-form.ts'

const FORMS: readonly (readonly [Form<unknown>, fitting: readonly unknown[], others: readonly unknown[]])[] =
  [
    [flag, [true, false], [0, undefined]],
    [text, ['', 'a'], [1, undefined]],
    [count, [0, 1.5, Number.POSITIVE_INFINITY], [-1, Number.NaN, 1n]],
    [id(), [0n, 2n ** 64n - 1n], [-1n, 2n ** 64n, 1]],
    [bytes(), [Buffer.alloc(0), Buffer.alloc(9)], ['', [], null]],
    [bytes(2), [Buffer.alloc(2)], [Buffer.alloc(1), Buffer.alloc(3)]],
    [sealed, [Buffer.alloc(28)], [Buffer.alloc(27), 'a'.repeat(28)]],
    [oneOf('a', 0), ['a', 0], ['b', '0']],
    [either(text, count), ['a', 1], [true]],
    [maybe(text), ['a', undefined], [null]],
    [listOf(text), [[], ['a']], [['a', 1], 'a']],
    [tuple(text, count), [['a', 1]], [['a'], ['a', 1, 1], [1, 'a']]],
    [mapOf(count), [{}, { a: 1 }], [{ a: '1' }, [], Buffer.alloc(1), null]],
    [object({ a: text }), [{ a: '' }, { a: '', free: 1 }], [{}, { a: 1 }, [], null]],
    [object({ a: optional(text) }), [{}, { a: '' }, { a: undefined }], [{ a: 1 }]],
  ]

t.test('a form fits its values and no others', async t => {
  for (const [{ fits }, fitting, others] of FORMS) {
    t.same(
      fitting.map(fits),
      fitting.map(() => true),
    )
    t.same(
      others.map(fits),
      others.map(() => false),
    )
  }
})

t.test(
  'a shape has the members that are always there, and those optional ones that are named, in order',
  async t => {
    const form = object({ a: optional(text), b: count, c: optional(flag), d: id() })
    const row: RowOf<typeof form> = { b: 1, c: true, d: 1n }
    t.ok(form.fits(row))
    t.same(form.shape(), ['b', 'd'])
    t.same(form.shape('c', 'a'), ['a', 'b', 'c', 'd'])
  },
)

t.test('a key is as long as its parts, and a report names as much of it as may be told', async t => {
  const parts = { user: ID, at: TIME, token: opaque(4) }
  t.same(lengthsOf(parts), [18, 18])
  t.same(lengthsOf({ kind: ID, rest: opaque(64, 1) }), [9, 72])
  const key = Buffer.concat([idsKey(7n), timeBytes(0), Buffer.from('abcdef01', 'hex')])
  t.equal(keyName(parts, key), '7/1970-01-01T00:00:00.000Z/abcdef…')
  t.equal(keyName({ user: ID, session: untold(6), other: HASH }, key), '7/…')
  t.equal(keyName(parts, key.subarray(0, 9)), '7/?/?')
  t.equal(keyName('a name', Buffer.from('all')), 'all')
})
