/** Bodies from schemas: random ones that fit, and the ways in which one of their members can be wrong. */

import fc from 'fast-check'
import Type, { type TSchema } from 'typebox'
import { isChosenIdSchema, isUint64Schema } from '../../src/schema/uint64.ts'

/** A JSON value: bigints are written as bare digits, `RawJson` as it is. */
export type Json = string | number | bigint | boolean | null | RawJson | Json[] | { [name: string]: Json }

export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export function formatRaw(value: Json): string {
  if (value instanceof RawJson) return value.text
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(formatRaw).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${formatRaw(member)}`)
    .join()}}`
}

/** Values that the schema accepts. */
export function fitting(schema: TSchema): fc.Arbitrary<Json> {
  if (isChosenIdSchema(schema)) {
    return fc.oneof(fc.bigInt(2n ** 32n, 2n ** 53n - 1n), fc.constant('4294967296'))
  }
  if (isUint64Schema(schema)) {
    return fc.oneof(fc.bigInt(0n, UINT64_MAX), fc.bigInt(0n, UINT64_MAX).map(String), fc.constant('0'))
  }
  if (Type.IsUnknown(schema)) return fc.jsonValue() as fc.Arbitrary<Json>
  if (Type.IsUnion(schema)) return fc.oneof(...schema.anyOf.map(fitting))
  if (Type.IsLiteral(schema)) return fc.constant(schema.const as Json)
  if (Type.IsArray(schema)) {
    const { minItems = 0, maxItems = 3 } = schema as { minItems?: number; maxItems?: number }
    return fc.array(fitting(schema.items), { minLength: minItems, maxLength: Math.min(maxItems, 3) })
  }
  if (Type.IsRecord(schema)) return fittingRecord(schema)
  if (Type.IsObject(schema)) return fittingObject(schema.properties)
  return fittingScalar(schema as ScalarSchema)
}

interface ScalarSchema {
  readonly type?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

function fittingObject(properties: Readonly<Record<string, TSchema>>): fc.Arbitrary<Json> {
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, fitting(schema)]),
  )
  const requiredKeys = Object.entries(properties).flatMap(([name, schema]) =>
    Type.IsOptional(schema) ? [] : [name],
  )
  return fc.record(members, { requiredKeys, noNullPrototype: true })
}

/** Names are of any form; here they look like a device of a user. */
function fittingRecord(schema: TSchema): fc.Arbitrary<Json> {
  const [values] = Object.values(
    (schema as { patternProperties?: Record<string, TSchema> }).patternProperties ?? {},
  )
  const names = fc.tuple(fc.nat(), fc.nat()).map(ids => ids.join('_'))
  return fc.dictionary(names, fitting(values!), { maxKeys: 3, noNullPrototype: true })
}

/** Texts of one form: to prepare them costs as much as the requests that are made with them. */
function kept(form: string, prepare: () => fc.Arbitrary<string>): fc.Arbitrary<string> {
  const known = TEXTS.get(form) ?? prepare()
  TEXTS.set(form, known)
  return known
}

const TEXTS = new Map<string, fc.Arbitrary<string>>()

function fittingScalar({ type, pattern, minLength = 0, maxLength = 40, ...schema }: ScalarSchema) {
  switch (type) {
    case 'string':
      return kept(`${pattern} ${minLength} ${maxLength}`, () =>
        pattern === undefined
          ? fc.string({ minLength, maxLength: Math.min(maxLength, 40), unit: 'grapheme' })
          : fc.stringMatching(new RegExp(pattern, 'u')),
      )
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 1_000 })
    case 'boolean':
      return fc.boolean()
    default:
      throw new Error(`a schema of type ${type} has no values here`)
  }
}

/** A member at a place in a body, its schema, and values that it must not have; undefined is: left out. */
export interface Damage {
  readonly kind: 'id' | 'text' | 'other'
  /** Names and indexes from the body down. */
  readonly path: readonly string[]
  readonly wrong: readonly (Json | undefined)[]
}

/**
 * Every member that the schema names, with a value that it must not have. Members of a list's elements stand at index
 * 0.
 */
export function damages(schema: TSchema, path: readonly string[] = []): Damage[] {
  if (Type.IsArray(schema)) return damages(schema.items, [...path, '0'])
  if (!Type.IsObject(schema)) return []
  return Object.entries(schema.properties).flatMap(([name, member]) => {
    const missing = Type.IsOptional(member) ? [] : [undefined, null]
    const at = [...path, name]
    const damage = { kind: kindOf(member), path: at, wrong: [...missing, ...wrongValues(member)] }
    return [damage, ...damages(member, at)]
  })
}

function kindOf(schema: TSchema): Damage['kind'] {
  if (isChosenIdSchema(schema)) return 'other'
  if (isUint64Schema(schema)) return 'id'
  return (schema as ScalarSchema).type === 'string' ? 'text' : 'other'
}

function wrongValues(schema: TSchema): Json[] {
  if (isChosenIdSchema(schema)) return [...WRONG_IDS, 0, '4294967295', 2n ** 53n]
  if (isUint64Schema(schema)) return WRONG_IDS
  if (Type.IsUnion(schema)) {
    const areTexts = schema.anyOf.every(branch => Type.IsLiteral(branch) && typeof branch.const === 'string')
    return areTexts ? ['nonsense', '', 7, true, [], {}] : []
  }
  if (Type.IsUnknown(schema)) return []
  if (Type.IsLiteral(schema))
    return schema.const === true ? [false, 'true', 1, {}, []] : ['nonsense', 7, {}, []]
  if (Type.IsArray(schema)) {
    const { maxItems } = schema as { maxItems?: number }
    const tooMany =
      maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, (_, at) => String(at))]
    return ['x', 7, true, {}, ...tooMany]
  }
  if (Type.IsObject(schema) || Type.IsRecord(schema)) return ['x', 7, true, []]
  return wrongScalars(schema as ScalarSchema)
}

function wrongScalars({ type, pattern, minLength = 0, maxLength, minimum, maximum }: ScalarSchema): Json[] {
  switch (type) {
    case 'string': {
      const unfit = ['', '\u0000', 'a\nb', '\u{1f600}'.repeat(9), '9'.repeat(7), '-1']
      const form = pattern === undefined ? undefined : new RegExp(pattern, 'u')
      return [
        7,
        1.5,
        true,
        false,
        [],
        {},
        ['x'],
        ...(form === undefined ? [] : unfit.filter(text => !form.test(text))),
        ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), '9'.repeat(maxLength + 1)]),
        ...(minLength > 0 ? [''] : []),
      ]
    }
    case 'integer':
      return [
        1.5,
        '1',
        true,
        [],
        {},
        1e300,
        new RawJson('1e400'),
        ...(minimum === undefined ? [] : [minimum - 1]),
        ...(maximum === undefined ? [] : [maximum + 1, 2n ** 64n]),
      ]
    case 'boolean':
      return ['true', '', 0, 1, [], {}]
    default:
      return []
  }
}

/** The body with the member at the path replaced, or left out; objects on the way are made where there are none. */
export function damaged(body: Json, [name, ...rest]: readonly string[], value: Json | undefined): Json {
  if (name === undefined) return value ?? null
  const isList = /^\d+$/.test(name)
  if (isList) {
    const list = Array.isArray(body) && body.length > 0 ? [...body] : [{}]
    list[Number(name)] = damaged(list[Number(name)]!, rest, value)
    return list
  }
  const isObject =
    typeof body === 'object' && body !== null && !Array.isArray(body) && !(body instanceof RawJson)
  const copy = isObject ? { ...body } : {}
  if (rest.length > 0) copy[name] = damaged(copy[name] ?? {}, rest, value)
  else if (value === undefined) delete copy[name]
  else copy[name] = value
  return copy
}

const UINT64_MAX = 2n ** 64n - 1n
const WRONG_IDS: Json[] = [
  -1,
  1.5,
  1e25,
  true,
  false,
  [],
  {},
  2n ** 64n,
  10n ** 40n,
  -(2n ** 53n),
  '',
  ' 1',
  '1 ',
  '01',
  '-1',
  '+1',
  '1.0',
  '1e3',
  '0x1',
  'abc',
  '1\u0000',
  '\u0661',
  '1_000',
  'null',
  String(2n ** 64n),
  '9'.repeat(20),
  '9'.repeat(5_000),
  new RawJson('-0.5'),
]
