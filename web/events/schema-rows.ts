/** A schema as rows of a table: a member each, those of nested objects behind the member that holds them. */

import type { Schema } from './document.ts'

export interface MemberRow {
  readonly name: string
  /** How many members hold it. */
  readonly depth: number
  readonly isRequired: boolean
  /** Such as `string`, `list of objects`. */
  readonly type: string
  /** The values that it may have, when they are listed. */
  readonly values: readonly string[]
  /** Such as `1 to 32`, `at most 2048 characters`. */
  readonly bounds: readonly string[]
  readonly description: string
}

/** The members of an object; none for any other schema. */
export function memberRows(schema: Schema, depth = 0): readonly MemberRow[] {
  const required = new Set(schema.required)
  const named = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
    rowOf(name, member, depth, required.has(name)),
    ...memberRows(innerOf(member), depth + 1),
  ])
  const map = mapValueOf(schema)
  // Of a map at the top; a map that is a member says so in its own row.
  return map === undefined || depth > 0 ? named : [...named, rowOf('(any name)', map, depth, false)]
}

function rowOf(name: string, schema: Schema, depth: number, isRequired: boolean): MemberRow {
  return {
    ...{ name, depth, isRequired, type: typeOf(schema), values: valuesOf(schema) },
    bounds: boundsOf(schema),
    description: schema.description ?? '',
  }
}

/** What has the members that are shown below: a list's items, a map's values, or the schema itself. */
function innerOf(schema: Schema): Schema {
  return schema.items ?? mapValueOf(schema) ?? schema
}

function mapValueOf({ patternProperties, additionalProperties }: Schema): Schema | undefined {
  const [first] = Object.values(patternProperties ?? {})
  return first ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

function typeOf(schema: Schema): string {
  const choices = choicesOf(schema)
  if (choices.length > 0) return [...new Set(choices.map(typeOf))].join(' or ')
  if (schema.items !== undefined) return `list of ${pluralOf(typeOf(schema.items))}`
  const value = mapValueOf(schema)
  if (value !== undefined) return `map of ${pluralOf(typeOf(value))}`
  const { type = typeof schema.const, format } = schema
  return format === undefined ? type : `${type}, ${format}`
}

function pluralOf(type: string): string {
  const [first = '', ...rest] = type.split(', ')
  return [`${first}s`, ...rest].join(', ')
}

function choicesOf({ anyOf = [], oneOf = [] }: Schema): readonly Schema[] {
  return [...anyOf, ...oneOf]
}

function valuesOf(schema: Schema): readonly string[] {
  if (schema.const !== undefined) return [JSON.stringify(schema.const)]
  if (schema.enum !== undefined) return schema.enum.map(value => JSON.stringify(value))
  return choicesOf(schema).flatMap(valuesOf)
}

function boundsOf(schema: Schema): readonly string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format } = schema
  return [
    rangeOf(minimum, maximum, ''),
    rangeOf(minLength, maxLength, ' characters'),
    rangeOf(minItems, maxItems, ' items'),
    // The pattern of an id says what its format does.
    pattern === undefined || format === 'uint64' ? '' : `matches ${pattern}`,
  ].filter(text => text !== '')
}

function rangeOf(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`
  if (least !== undefined) return `at least ${least}${unit}`
  return most === undefined ? '' : `at most ${most}${unit}`
}
