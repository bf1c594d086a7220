/** Members that a schema does not name, and the written form of the id schemas. */
import t from 'tap'
import Type from 'typebox'
import { unknownMembers } from '../../src/schema/shape.ts'
import { Uint64, Uint64Text } from '../../src/schema/uint64.ts'

const Device = Type.Object({ platform: Type.String(), name: Type.Optional(Type.String()) })
const Body = Type.Object({
  publicKey: Type.String(),
  deviceInfo: Device,
  devices: Type.Optional(Type.Array(Device)),
  keys: Type.Optional(Type.Record(Type.String(), Type.String())),
  any: Type.Optional(Type.Unknown()),
})

t.test('a body of named members has no unknown ones', async t => {
  const body = {
    publicKey: 'x',
    deviceInfo: { platform: 'ios' },
    devices: [{ platform: 'a', name: 'b' }],
    keys: { x: 'y' },
  }
  t.same(unknownMembers(Body, body), [])
  t.same(unknownMembers(Body, { any: { whatever: [{ deep: 1 }] } }), [], 'what is not described has none')
})

t.test('each member that the schema does not name is pointed to', async t => {
  const body = { publicKy: 1, deviceInfo: { platfrom: 1, name: 'n' }, devices: [{}, { x: { y: 1 } }] }
  t.same(unknownMembers(Body, body), ['/publicKy', '/deviceInfo/platfrom', '/devices/1/x'])
  t.same(unknownMembers(Body, { toString: 1, __proto__: null, constructor: 2 }), [
    '/toString',
    '/constructor',
  ])
})

t.test('a member that one branch of a union names is known', async t => {
  const Either = Type.Union([
    Type.Object({ id: Uint64, who: Type.Object({ a: Type.String() }) }),
    Type.Intersect([
      Type.Object({ token: Type.String() }),
      Type.Object({ who: Type.Object({ b: Type.String() }) }),
    ]),
  ])
  t.same(unknownMembers(Either, { id: 1n, token: 'x', who: { a: '', b: '', c: '' }, more: 1 }), [
    '/who/c',
    '/more',
  ])
})

t.test('pointers fit a header: ASCII, few and short', async t => {
  const hostile = { '\r\nSet-Cookie: x': 1, 'a/b~c': 1, é: 1, '': 1 }
  t.same(unknownMembers(Body, hostile), ['/%0D%0ASet-Cookie%3A%20x', '/a~1b~0c', '/%C3%A9', '/'])
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${at}${'x'.repeat(500)}`, 1]))
  const pointers = unknownMembers(Body, many)
  t.equal(pointers.length, 8)
  t.ok(pointers.every(({ length }) => length <= 100))
})

t.test('the id schemas are written out as JSON Schema', async t => {
  const pattern = '^(0|[1-9][0-9]{0,19})$'
  const text = { type: 'string', format: 'uint64', pattern }
  const written = JSON.parse(
    JSON.stringify(Type.Object({ a: Uint64, b: Type.Optional(Uint64), c: Uint64Text })),
  )
  const both = { oneOf: [text, { type: 'integer', format: 'uint64', minimum: 0 }] }
  t.same(written, { type: 'object', required: ['a', 'c'], properties: { a: both, b: both, c: text } })
})
