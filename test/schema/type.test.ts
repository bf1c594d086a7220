/** Our builders against typebox's, of which they are a copy: the same schemas, seen the same way. */

import t from 'tap'
import { Type as Typebox } from 'typebox'
import { Type } from '../../src/schema/type.ts'

type Builders = typeof Type

/** Every builder, with and without options, and inside one another. */
function schemasBy(type: Builders) {
  const options = { description: 'd', minLength: 1 }
  const text = type.String(options)
  const inner = type.Object({ a: type.Integer(), b: type.Optional(type.Boolean({ default: true })) })
  return {
    text,
    plain: [type.String(), type.Integer({ minimum: 0 }), type.Boolean(), type.Unknown({ description: 'u' })],
    literals: [type.Literal('a', { description: 'l' }), type.Literal(1), type.Literal(false)],
    array: type.Array(text, { maxItems: 2 }),
    inner,
    empty: type.Object({}, { description: 'o' }),
    optionals: type.Object({ a: type.Optional(inner) }),
    record: type.Record(type.String(), inner, { description: 'r' }),
    union: type.Union([text, inner], { description: 'x' }),
    unsafe: type.Unsafe<bigint>({ type: 'string', format: 'uint64' }),
    refined: type.Optional(type.Refine(type.Unsafe<bigint>({ x: 1 }), isAny, whyNot)),
  }
}

const isAny = () => true
const whyNot = () => 'never'

/** A schema with what is hidden in it, and whether it is hidden. */
function laidOpen(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  const members = Object.entries(Object.getOwnPropertyDescriptors(schema))
  return members.map(([name, { value, enumerable }]) => [name, enumerable, laidOpen(value)])
}

t.test('each builder builds what that of typebox builds, down to what is hidden', async t => {
  const [ours, theirs] = [schemasBy(Type), schemasBy(Typebox)]
  for (const name of Object.keys(theirs) as (keyof typeof theirs)[]) {
    t.same(sorted(laidOpen(ours[name])), sorted(laidOpen(theirs[name])), name)
    t.equal(JSON.stringify(ours[name]), JSON.stringify(theirs[name]), `${name} as it is written`)
  }
})

t.test('what a schema is of is told as typebox tells it', async t => {
  const schemas = Object.values(schemasBy(Typebox)).flat()
  schemas.push(Typebox.Intersect([Typebox.Object({}), Typebox.Object({})]) as never)
  for (const name of GUARDS)
    for (const schema of schemas) t.equal(Type[name](schema), Typebox[name](schema), name)
})

/** The order of hidden members is nobody's business. */
function sorted(opened: unknown): unknown {
  if (!Array.isArray(opened)) return opened
  const inner = opened.map(sorted)
  return inner.every(each => Array.isArray(each) && typeof each[0] === 'string')
    ? inner.sort((a, b) => String(a).localeCompare(String(b)))
    : inner
}

const GUARDS = [
  'IsObject',
  'IsArray',
  'IsRecord',
  'IsUnion',
  'IsIntersect',
  'IsOptional',
  'IsInteger',
  'IsBoolean',
] as const
