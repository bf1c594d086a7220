/** The form of a decoded value: small predicates, joined to the form of a row. Members they don't name are free. */

export type Form = (value: unknown) => boolean
type Members = Readonly<Record<string, Form>>

/** The form of a table's rows. */
export interface TableForm {
  /** Left out: msgpack records. */
  readonly codec?: 'bytes'
  /** The shapes that the table is opened with. */
  readonly shapes?: readonly (readonly string[])[]
  /** Lengths that a key may have; `text` for a table under short texts. */
  readonly key: readonly number[] | 'text'
  readonly form: Form
}

export const anything: Form = () => true
export const flag: Form = value => typeof value === 'boolean'
export const text: Form = value => typeof value === 'string'
export const id: Form = value => typeof value === 'bigint' && value >= 0n
/** A count, an index, or milliseconds since 1970; infinite for a time that never comes. */
export const count: Form = value => typeof value === 'number' && value >= 0

/** Bytes: exactly so many, or any number. */
export function bytes(length?: number): Form {
  return value => value instanceof Uint8Array && (length === undefined || value.length === length)
}

export function oneOf(...values: readonly unknown[]): Form {
  return value => values.includes(value)
}

export function either(...forms: readonly Form[]): Form {
  return value => forms.some(form => form(value))
}

export function listOf(form: Form): Form {
  return value => Array.isArray(value) && value.every(form)
}

export function tuple(...forms: readonly Form[]): Form {
  return value =>
    Array.isArray(value) && value.length === forms.length && forms.every((form, at) => form(value[at]))
}

/** An object with all of these members, and any of `optional`, each in its form. */
export function record(members: Members, optional: Members = {}): Form {
  const needed = Object.entries(members)
  const allowed = Object.entries(optional)
  return value =>
    isRecord(value) &&
    needed.every(([name, form]) => form(value[name])) &&
    allowed.every(([name, form]) => value[name] === undefined || form(value[name]))
}

export function recordOf(form: Form): Form {
  return value => isRecord(value) && Object.values(value).every(form)
}

/** Sealed bytes: an initialisation vector, anything, a tag. */
export const sealed: Form = value => value instanceof Uint8Array && value.length >= SEALED_BYTES_MIN

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  )
}

const SEALED_BYTES_MIN = 28
