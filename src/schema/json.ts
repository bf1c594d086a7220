/**
 * JSON bodies: bytes to a value of a schema's type, or one refusal that names every element at fault, and values to
 * text with their ids whole (contract 1.2, 1.3, 1.5).
 */

import type { Static, TSchema } from 'typebox'
import { assert, SignalError } from '../errors.ts'
import { SchemaCheck } from './check.ts'
import { parseJson } from './lossless.ts'

/**
 * Reads and checks bodies of one schema. An id (`Uint64`) comes back as a bigint; an optional member that is `null`
 * comes back absent, so `Type.Optional` is all a schema says of it. Unknown members stay in the value.
 */
export class BodyReader<Schema extends TSchema> {
  readonly schema: Schema
  readonly #check: SchemaCheck<Schema>

  constructor(schema: Schema) {
    this.schema = schema
    this.#check = new SchemaCheck(schema, 'the body')
  }

  /** Throws `UNSUPPORTED_MEDIA_TYPE`, `MALFORMED_JSON`, or `VALIDATION_FAILED` with a pointer to each fault. */
  read(body: Uint8Array, contentType: string): Static<Schema> {
    if (contentType !== 'application/json' && !MEDIA_TYPE_FORM.test(contentType)) {
      throw new SignalError('UNSUPPORTED_MEDIA_TYPE', 'send the body as application/json')
    }
    return this.#check.check(parseJson(body))
  }
}

/** How ids are written: as decimal strings, or as bare digits for clients whose decoders read 64-bit integers. */
export type IdForm = 'string' | 'number'

/** A value that is in many bodies and does not change any more: it is written once in each form. */
export class SharedJson<Value = unknown> {
  readonly #value: Value
  readonly #texts: Record<IdForm, string | undefined> = { string: undefined, number: undefined }

  constructor(value: Value) {
    this.#value = value
  }

  text(idsAs: IdForm): string {
    this.#texts[idsAs] ??= formatJson(this.#value, idsAs)
    return this.#texts[idsAs]
  }
}

/** A value that `formatJson` writes as one of this type: it leaves out undefined members, and any member may be shared. */
export type Written<Value> = Value extends readonly (infer Element)[]
  ? readonly WrittenMember<Element>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: WrittenMember<Value[Name]> | undefined }
    : Value

export type WrittenMember<Value> = Written<Value> | SharedJson<Written<Exclude<Value, undefined>>>

/**
 * The JSON of a plain value: objects, arrays, strings, finite numbers, booleans, null, bigints as ids, and shared texts
 * of these. Members that are undefined are left out. Written by hand, since `JSON.stringify` refuses bigints and would
 * quote digits.
 */
export function formatJson(value: unknown, idsAs: IdForm): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'bigint':
      return idsAs === 'string' ? `"${value}"` : `${value}`
    case 'number':
      assert(Number.isFinite(value), 'JSON has only finite numbers')
      return `${value}`
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      if (Array.isArray(value)) return formatArray(value, idsAs)
      return value instanceof SharedJson ? value.text(idsAs) : formatObject(value, idsAs)
    default:
      throw new Error(`JSON has no ${typeof value}`)
  }
}

function formatArray(elements: readonly unknown[], idsAs: IdForm): string {
  let text = '['
  for (let at = 0; at < elements.length; at++) {
    if (at > 0) text += ','
    text += formatJson(elements[at], idsAs)
  }
  return `${text}]`
}

/** The JSON of an object with gaps for members that each of its receivers has for itself. */
export interface GappedJson {
  /** The parts before, between and behind the gaps. */
  readonly texts: readonly string[]
  readonly gaps: readonly JsonGap[]
}

export interface JsonGap {
  /** The member's name. */
  readonly name: string
  /** The text before its value; a member without a value is left out with it. */
  readonly intro: string
}

/**
 * The member in a gap, one character for each octet of its UTF-8. Departure from a look at the finished text:
 * most values are ids and plain strings, which are known to be ASCII.
 */
export function formatInGap({ intro }: JsonGap, value: unknown, idsAs: IdForm): string {
  switch (typeof value) {
    case 'undefined':
      return ''
    case 'string':
      if (PLAIN_TEXT.test(value)) return `${intro}"${value}"`
      break
    case 'bigint':
      return intro + formatJson(value, idsAs)
  }
  return Buffer.from(intro + formatJson(value, idsAs)).toString('latin1')
}

/** The JSON of a plain object, without the members of these names. Its first member is none of them. */
export function formatGapped(object: object, names: ReadonlySet<string>, idsAs: IdForm): GappedJson {
  const texts: string[] = []
  const gaps: JsonGap[] = []
  let text = ''
  for (const name in object) {
    const { first, next } = introOf(name)
    const member = object[name as keyof object] as unknown
    if (names.has(name)) {
      assert(text !== '' || texts.length > 0, 'the first member is the same for all')
      texts.push(text)
      gaps.push({ name, intro: next })
      text = ''
    } else if (member !== undefined) {
      text += text === '' && texts.length === 0 ? first : next
      text += formatJson(member, idsAs)
    }
  }
  texts.push(`${text}}`)
  return { texts, gaps }
}

/**
 * Departure from `Object.entries` and `JSON.stringify` of each name: they took two thirds of the time (`bench/user.ts`).
 */
function formatObject(object: object, idsAs: IdForm): string {
  const prototype = Object.getPrototypeOf(object)
  assert(prototype === Object.prototype || prototype === null, 'only plain objects are written')
  let text = ''
  for (const name in object) {
    const member = object[name as keyof object] as unknown
    if (member === undefined) continue
    const { first, next } = introOf(name)
    text += text === '' ? first : next
    text += formatJson(member, idsAs)
  }
  return text === '' ? '{}' : `${text}}`
}

/** Departure from `JSON.stringify` alone: most strings are of plain characters, which is seen faster. */
function quoted(text: string): string {
  return PLAIN_TEXT.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** What comes before a member's value, by whether the member is the object's first. Each part that is joined costs memory. */
interface Intro {
  readonly first: string
  readonly next: string
}

function introOf(name: string): Intro {
  const known = INTROS.get(name)
  if (known !== undefined) return known
  const quoted = `${JSON.stringify(name)}:`
  const intro = { first: `{${quoted}`, next: `,${quoted}` }
  if (INTROS.size < NAMES_KEPT_MAX) INTROS.set(name, intro)
  return intro
}

/** Names of members are our own, so there are few. */
const INTROS = new Map<string, Intro>()
const NAMES_KEPT_MAX = 1_000
/** ASCII from blank to tilde, without quotation mark and backslash. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/
const MEDIA_TYPE_FORM = /^application\/json\s*(;|$)/i
