/**
 * The form of a row, joined from small parts. The type of the row is inferred from it, and the check of a store asks it
 * of each row that it reads; nothing is asked when a row is put or got. Members that a form does not name are free.
 */

/** How a value looks; `Value` is its type. */
export interface Form<Value> {
  readonly fits: (value: unknown) => boolean
  /** For the compiler only. */
  readonly type?: Value
}

/** The type of what has a form. */
export type RowOf<Of> = Of extends Form<infer Value> ? Value : never

/** The form of a member that may be missing. */
export interface OptionalForm<Value> extends Form<Value> {
  readonly isOptional: true
}

export interface ObjectForm<Members> extends Form<ObjectOf<Members>> {
  /** The names of its members in order, of those that may be missing only these: one of the `shapes` of a table. */
  readonly shape: (...optional: readonly OptionalNames<Members>[]) => readonly string[]
}

type Members = Readonly<Record<string, Form<unknown>>>
type OptionalNames<Members> = {
  [Name in keyof Members]: Members[Name] extends OptionalForm<unknown> ? Name : never
}[keyof Members]
type ObjectOf<Members> = Joined<
  { readonly [Name in Exclude<keyof Members, OptionalNames<Members>>]: RowOf<Members[Name]> } & {
    readonly [Name in OptionalNames<Members>]?: RowOf<Members[Name]>
  }
>
type Joined<Type> = { [Name in keyof Type]: Type[Name] }

export const flag: Form<boolean> = { fits: value => typeof value === 'boolean' }
export const text: Form<string> = { fits: value => typeof value === 'string' }
/** A count, an index, or milliseconds since 1970; infinite for a time that never comes. */
export const count: Form<number> = { fits: value => typeof value === 'number' && value >= 0 }
/** An initialisation vector, anything, a tag. */
export const sealed: Form<Uint8Array> = {
  fits: value => value instanceof Uint8Array && value.length >= SEALED_BYTES_MIN,
}

export function id<Id extends bigint = bigint>(): Form<Id> {
  return { fits: value => typeof value === 'bigint' && value === BigInt.asUintN(64, value) }
}

/** Bytes: exactly so many, or any number. */
export function bytes(length?: number): Form<Uint8Array> {
  return { fits: value => value instanceof Uint8Array && value.length === (length ?? value.length) }
}

export function oneOf<const Values extends readonly unknown[]>(...values: Values): Form<Values[number]> {
  return { fits: value => values.includes(value) }
}

export function either<Forms extends readonly Form<unknown>[]>(...forms: Forms): Form<RowOf<Forms[number]>> {
  return { fits: value => forms.some(({ fits }) => fits(value)) }
}

export function maybe<Value>({ fits }: Form<Value>): Form<Value | undefined> {
  return { fits: value => value === undefined || fits(value) }
}

export function listOf<Value>({ fits }: Form<Value>): Form<readonly Value[]> {
  return { fits: value => Array.isArray(value) && value.every(fits) }
}

export function tuple<const Forms extends readonly Form<unknown>[]>(
  ...forms: Forms
): Form<{ readonly [At in keyof Forms]: RowOf<Forms[At]> }> {
  return {
    fits: value =>
      Array.isArray(value) && value.length === forms.length && forms.every(({ fits }, at) => fits(value[at])),
  }
}

export function mapOf<Value>({ fits }: Form<Value>): Form<Readonly<Record<string, Value>>> {
  return { fits: value => isObject(value) && Object.values(value).every(fits) }
}

export function object<Named extends Members>(members: Named): ObjectForm<Named> {
  const all = Object.entries(members)
  return {
    fits: value => isObject(value) && all.every(([name, { fits }]) => fits(value[name])),
    shape: (...optional) =>
      all.flatMap(([name, form]) =>
        isOptional(form) && !optional.some(each => each === name) ? [] : [name],
      ),
  }
}

/** A member of an object that may be missing. */
export function optional<Value>(form: Form<Value>): OptionalForm<Value> {
  return { fits: maybe(form).fits, isOptional: true }
}

/** A value of a type from elsewhere; only this form is looked at. */
export function typed<Value>({ fits }: Form<unknown>): Form<Value> {
  return { fits }
}

function isOptional(form: Form<unknown>): boolean {
  return 'isOptional' in form
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  )
}

const SEALED_BYTES_MIN = 28
