/** One schema's judgement of parsed values: the value in its type, or a refusal that names every element at fault. */

import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { type FieldError, SignalError } from '../errors.ts'
import { type Settle, settleOf } from './shape.ts'

type Faults = ReturnType<Validator['Errors']>[1]

/** Checks values against one schema. The checking code is compiled at the first use. */
export class SchemaCheck<Schema extends TSchema> {
  readonly schema: Schema
  /** A refusal's name for the whole value, such as `the body`. */
  readonly #name: string
  #validator: Validator | undefined
  #settle: Settle | undefined

  constructor(schema: Schema, name: string) {
    this.schema = schema
    this.#name = name
  }

  /**
   * The value with its ids as bigints and without optional members that were `null`; it may be changed in place.
   * Throws `VALIDATION_FAILED` with a pointer to each fault (contract 1.5).
   */
  check(value: unknown): Static<Schema> {
    this.#validator ??= this.#compile()
    const settled = this.#settle === undefined ? value : this.#settle(value)
    if (!this.#validator.Check(settled)) throw this.#refusal(this.#validator, settled)
    return settled as Static<Schema>
  }

  #compile(): Validator {
    this.#settle = settleOf(this.schema)
    return Compile(this.schema)
  }

  #refusal(validator: Validator, value: unknown): SignalError {
    // The validator stops at the eighth fault.
    const [, faults] = validator.Errors(value)
    return validationFailed(fieldErrorsOf(faults, this.schema), this.#name)
  }
}

/** Each member that is missing has an error of its own; a value that is none of a few has one that names them. */
function fieldErrorsOf(faults: Faults, schema: TSchema): FieldError[] {
  const constants = faults.filter(fault => fault.keyword === 'const')
  return faults.flatMap(fault => {
    const { instancePath: pointer, keyword, message } = fault
    if (keyword === 'required') {
      const names = fault.params.requiredProperties
      return names.map(name => ({ pointer: `${pointer}/${name}`, code: 'REQUIRED', detail: 'is missing' }))
    }
    const choice = constants.filter(({ instancePath }) => instancePath === pointer)
    if (choice.length === 0) return [{ pointer, code: codeOf(keyword), detail: message }]
    // It stands once for all of them, and for the fault that none of them fits.
    if (fault !== choice[0]) return []
    const allowed = choicesAt(schema, fault.schemaPath) ?? choice.map(({ params }) => params.allowedValue)
    const texts = allowed.map(value => JSON.stringify(value)).join(', ')
    return [{ pointer, code: 'ENUM', detail: `must be one of ${texts}` }]
  })
}

/** All constants of the union that has the one at this path: of more than eight, the faults lack some. */
function choicesAt(schema: TSchema, path: string): readonly unknown[] | undefined {
  const steps = path.split('/').slice(1, -1)
  const union = steps.reduce<unknown>(
    (at, step) => (at as Record<string, unknown> | undefined)?.[step],
    schema,
  )
  return Array.isArray(union) ? union.flatMap(({ const: value }) => value ?? []) : undefined
}

/** `MAX_LENGTH` of `maxLength`; a form that the schema itself can't say is a FORMAT. */
function codeOf(keyword: string): string {
  return keyword === '~refine' ? 'FORMAT' : keyword.replace(/[A-Z]/g, '_$&').toUpperCase()
}

/** `VALIDATION_FAILED` for one member, or for the whole where `pointer` is empty, which `name` then stands for. */
export function invalidMember(pointer: string, code: string, detail: string, name = 'the body'): SignalError {
  return validationFailed([{ pointer, code, detail }], name)
}

function validationFailed(errors: readonly FieldError[], name: string): SignalError {
  const [first] = errors
  const where = first === undefined ? name : `${first.pointer || name} ${first.detail}`
  return new SignalError('VALIDATION_FAILED', where, { errors })
}
