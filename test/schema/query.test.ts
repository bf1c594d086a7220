/** Query strings: names and values decoded, typed by the schema, and refused with a pointer. */
import fc from 'fast-check'
import t from 'tap'
import Type from 'typebox'
import { SignalError } from '../../src/errors.ts'
import { QueryReader } from '../../src/schema/query.ts'
import { Uint64 } from '../../src/schema/uint64.ts'
import { checkProperty } from '../support/property.ts'

const reader = new QueryReader(
  Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    cursor: Type.Optional(Type.String({ maxLength: 64 })),
    userIds: Type.Optional(Type.Array(Uint64, { maxItems: 3 })),
    direction: Type.Optional(Type.Union([Type.Literal('incoming'), Type.Literal('outgoing')])),
    all: Type.Optional(Type.Boolean()),
  }),
)

function pointersOf(query: string): readonly string[] {
  try {
    reader.read(query)
  } catch (error) {
    if (error instanceof SignalError && error.code === 'VALIDATION_FAILED') {
      return [...new Set(error.errors.map(({ pointer }) => pointer))]
    }
    throw error
  }
  return []
}

t.test('values come in the types of the schema', async t => {
  t.same(reader.read('limit=20&cursor=ab-_&userIds=1,2,18446744073709551615&direction=incoming&all=true'), {
    limit: 20,
    cursor: 'ab-_',
    userIds: [1n, 2n, 18446744073709551615n],
    direction: 'incoming',
    all: true,
  })
  t.same(reader.read('all=false&cursor=7'), { all: false, cursor: '7' })
})

t.test('nothing, an empty value and an unknown name are all no member', async t => {
  for (const query of [
    '',
    '&',
    '&&=&',
    'limit=&cursor=&userIds=',
    'limit',
    'other=1&other=2',
    '__proto__=1',
  ]) {
    t.same(Object.keys(reader.read(query)), [], query)
  }
})

t.test('percent signs are decoded in names and values, plus signs stay', async t => {
  t.equal(reader.read('cursor=a%3D%26%2Cb').cursor, 'a=&,b')
  t.equal(reader.read('cursor=a=b').cursor, 'a=b')
  t.equal(reader.read('cursor=a+b').cursor, 'a+b')
  t.equal(reader.read('%63ursor=x').cursor, 'x')
  t.same(reader.read('userIds=1%2C2').userIds, [1n, 2n])
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 16 })
  checkProperty(t, [text], value => reader.read(`cursor=${encodeURIComponent(value)}`).cursor === value)
})

t.test('what encodes no UTF-8 is refused', async t => {
  for (const value of ['%', '%1', '%zz', '%ff', '%c3', '%ed%a0%80', '%c0%af']) {
    t.same(pointersOf(`cursor=${value}`), ['/cursor'], value)
  }
  t.same(pointersOf('%ff=1'), [''])
})

t.test('a name given twice is refused, however it is spelled', async t => {
  t.same(pointersOf('limit=1&limit=1'), ['/limit'])
  t.same(pointersOf('limit=&limit=1'), ['/limit'])
  t.same(pointersOf('cursor=1&%63ursor=2'), ['/cursor'])
})

t.test('what the schema refuses is pointed to', async t => {
  for (const limit of ['0', '201', '-1', '1.0', '1e2', '01', ' 1', 'x', '9007199254740993', 'NaN']) {
    t.same(pointersOf(`limit=${limit}`), ['/limit'], limit)
  }
  t.same(pointersOf('userIds=1,,2'), ['/userIds/1'])
  t.same(pointersOf('userIds=1,2,'), ['/userIds/2'])
  t.same(pointersOf('userIds=1,2,3,4'), ['/userIds'])
  t.same(pointersOf('userIds=18446744073709551616'), ['/userIds/0'])
  t.same(pointersOf('direction=both'), ['/direction'])
  t.same(pointersOf('all=1'), ['/all'])
})
