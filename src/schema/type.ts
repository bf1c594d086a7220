/**
 * The builders of typebox that our schemas use, written out. Departure from `import Type from 'typebox'`, whose 440 files
 * took a sixth of the time that the server starts in (`bench/startup.ts`). What they build and the types of it are
 * typebox's, which `test/schema/type.test.ts` compares: its checks, in `check.ts`, can't tell the two apart.
 */

import type { TSchema, Type as Typebox } from 'typebox'

type Built = Record<string, unknown>

type Builders =
  | 'Object'
  | 'Array'
  | 'Record'
  | 'Union'
  | 'Optional'
  | 'String'
  | 'Integer'
  | 'Boolean'
  | 'Literal'
  | 'Unknown'
  | 'Unsafe'
  | 'Refine'
type Guards =
  | 'IsObject'
  | 'IsArray'
  | 'IsRecord'
  | 'IsUnion'
  | 'IsIntersect'
  | 'IsOptional'
  | 'IsInteger'
  | 'IsBoolean'

const isKind = (kind: string) => (schema: unknown) => (schema as Built)['~kind'] === kind
const isOptional = (schema: unknown) => Object.hasOwn(schema as Built, '~optional')

const BUILDERS: Record<Builders | Guards, (...given: never[]) => unknown> = {
  Object(properties: Readonly<Record<string, TSchema>>, options?: object) {
    const required = Object.keys(properties).filter(name => !isOptional(properties[name]))
    return kind('Object', {
      type: 'object',
      ...(required.length === 0 ? {} : { required }),
      properties,
      ...options,
    })
  },
  Array: (items: TSchema, options?: object) => kind('Array', { type: 'array', items, ...options }),
  /** Of any names: the key is not looked at. */
  Record: (_key: TSchema, value: TSchema, options?: object) =>
    kind('Record', { type: 'object', patternProperties: { '^.*$': value }, ...options }),
  Union: (anyOf: readonly TSchema[], options?: object) => kind('Union', { anyOf, ...options }),
  Optional: (schema: TSchema) => marked(schema, '~optional', true),
  String: (options?: object) => kind('String', { type: 'string', ...options }),
  Integer: (options?: object) => kind('Integer', { type: 'integer', ...options }),
  Boolean: (options?: object) => kind('Boolean', { type: 'boolean', ...options }),
  Literal: (value: unknown, options?: object) =>
    kind('Literal', { type: typeof value, const: value, ...options }),
  Unknown: (options?: object) => kind('Unknown', { ...options }),
  Unsafe: (schema: object) => marked(schema, '~unsafe', null),
  Refine: (schema: object, check: (value: unknown) => boolean, error: () => string) =>
    marked(schema, '~refine', [{ check, error }]),
  IsObject: isKind('Object'),
  IsArray: isKind('Array'),
  IsRecord: isKind('Record'),
  IsUnion: isKind('Union'),
  IsIntersect: isKind('Intersect'),
  IsOptional: isOptional,
  IsInteger: isKind('Integer'),
  IsBoolean: isKind('Boolean'),
}

/** Builds schemas, and tells them apart, as typebox does. */
export const Type = BUILDERS as unknown as Pick<typeof Typebox, Builders | Guards>

/** What is typebox's own is not enumerable, so that the schema is written out as plain JSON Schema. */
function hidden(schema: Built, name: string, value: unknown): Built {
  return Object.defineProperty(schema, name, { configurable: true, writable: true, enumerable: false, value })
}

function kind(name: string, schema: Built): Built {
  return hidden(schema, '~kind', name)
}

/** A copy of a schema with one mark more. */
function marked(schema: object, name: string, value: unknown): Built {
  return hidden(Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)), name, value)
}
