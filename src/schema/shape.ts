/**
 * Walks a value along its schema, for what a schema's check does not do: reading ids, taking `null` for an absent
 * member, and finding members that the schema does not name (contract 1.2, 1.3).
 */

import Type, { type TSchema } from 'typebox'
import { isUint64Schema, readUint64 } from './uint64.ts'

/** Changes a parsed value in place; returns what it became. */
export type Settle = (value: unknown) => unknown

/**
 * What is to be done with a parsed value before the schema checks it: ids become bigints, and optional members that
 * are `null` go. Undefined when nothing is. It knows objects, arrays, unions and intersections.
 */
export function settleOf(schema: TSchema): Settle | undefined {
  if (isUint64Schema(schema)) return readUint64
  if (Type.IsArray(schema)) return settleElements(settleOf(schema.items))
  if (Type.IsObject(schema)) return settleMembers(schema.properties)
  const branches = branchesOf(schema).flatMap(branch => settleOf(branch) ?? [])
  if (branches.length === 0) return undefined
  return value => branches.reduce((settled, settle) => settle(settled), value)
}

function settleElements(settle: Settle | undefined): Settle | undefined {
  if (settle === undefined) return undefined
  return value => (Array.isArray(value) ? value.map(settle) : value)
}

function settleMembers(properties: Readonly<Record<string, TSchema>>): Settle | undefined {
  const members = Object.entries(properties).map(([name, schema]) => ({
    name,
    isOptional: Type.IsOptional(schema),
    settle: settleOf(schema),
  }))
  const touched = members.filter(({ isOptional, settle }) => isOptional || settle !== undefined)
  if (touched.length === 0) return undefined
  return value => {
    if (!isObject(value)) return value
    for (const { name, isOptional, settle } of touched) {
      if (!Object.hasOwn(value, name)) continue
      if (value[name] === null && isOptional) delete value[name]
      else if (settle !== undefined) value[name] = settle(value[name])
    }
    return value
  }
}

/**
 * Pointers to the members of `value` that `schema` does not name, for a reply header of development mode (contract
 * 1.2): at most eight, percent-encoded as in a URI fragment (RFC 6901, section 6), each at most 100 characters.
 */
export function unknownMembers(schema: TSchema, value: unknown): string[] {
  const found: string[] = []
  collectUnknown([schema], value, '', found)
  return found
}

/** `schemas` are those that apply to the value: a member is known when one of them names it. */
function collectUnknown(schemas: readonly TSchema[], value: unknown, pointer: string, found: string[]): void {
  const flat = schemas.flatMap(flattened)
  if (Array.isArray(value)) {
    const items = flat.flatMap(schema => (Type.IsArray(schema) ? [schema.items] : []))
    for (const [at, element] of value.entries()) collectUnknown(items, element, `${pointer}/${at}`, found)
    return
  }
  const objects = flat.filter(schema => Type.IsObject(schema))
  if (!isObject(value) || objects.length === 0 || flat.some(schema => Type.IsRecord(schema))) return
  for (const [name, member] of Object.entries(value)) {
    if (found.length === UNKNOWN_MAX) return
    const known = objects.flatMap(({ properties }) =>
      Object.hasOwn(properties, name) ? [properties[name]!] : [],
    )
    const inner = `${pointer}/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`
    if (known.length === 0) found.push(inner.slice(0, POINTER_CHARS_MAX))
    else collectUnknown(known, member, inner, found)
  }
}

/** A schema, or the branches of a union or intersection, and theirs. */
function flattened(schema: TSchema): readonly TSchema[] {
  const branches = branchesOf(schema)
  return branches.length === 0 ? [schema] : branches.flatMap(flattened)
}

function branchesOf(schema: TSchema): readonly TSchema[] {
  if (Type.IsUnion(schema)) return schema.anyOf
  return Type.IsIntersect(schema) ? schema.allOf : []
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const UNKNOWN_MAX = 8
const POINTER_CHARS_MAX = 100
