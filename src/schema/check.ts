/** One schema's judgement of parsed values: the value in its type, or a refusal that names every element at fault. */

import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { type FieldError, SignalError } from '../errors.ts'
import { type Settle, settleOf } from './shape.ts'

/** Checks values against one schema. The checking code is compiled at the first use. */
export class SchemaCheck<Schema extends TSchema> {
  readonly schema: Schema
  /** What a refusal calls the value as a whole, such as `the body`. */
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
    const errors = faults.map(({ instancePath, keyword, message }) => ({
      pointer: instancePath,
      code: keyword === '~refine' ? 'FORMAT' : keyword.toUpperCase(),
      detail: message,
    }))
    return validationFailed(errors, this.#name)
  }
}

/** `VALIDATION_FAILED` for these faults; `name` stands for the pointer to the whole. */
export function validationFailed(errors: readonly FieldError[], name: string): SignalError {
  const [first] = errors
  const where = first === undefined ? name : `${first.pointer || name} ${first.detail}`
  return new SignalError('VALIDATION_FAILED', where, { errors })
}
