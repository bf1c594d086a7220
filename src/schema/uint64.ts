/** Ids on the wire (contract 1.3): which texts and numbers are one, and what the schemas say of them. */

import Type, { type TSchema } from 'typebox'

const PATTERN = '^(0|[1-9][0-9]{0,19})$'
const FORM = new RegExp(PATTERN)
const UINT64_MAX = 2n ** 64n - 1n

/**
 * An id in a request: a decimal string or an integer on the wire, a bigint in what a reader returns. Written out, this
 * schema is the JSON Schema of both forms, without the 64-bit bounds that client generators fail on.
 */
export const Uint64 = Type.Refine(Type.Unsafe<bigint>({ toJSON: bothForms }), isUint64, () => REFUSAL)

/** An id that a client chose, from `min` up to `end`. */
export function chosenId(min: bigint, end: bigint) {
  const range = `from ${min} to ${end - 1n}`
  return Type.Refine(
    Type.Unsafe<bigint>({ toJSON: chosenForms, range }),
    value => isUint64(value) && value >= min && value < end,
    () => `must be ${range}, as a decimal string or a number`,
  )
}

/** An id in a reply: a bigint that `formatJson` writes. */
export const Uint64Text = Type.Unsafe<bigint>({ type: 'string', format: 'uint64', pattern: PATTERN })

/** Whether a schema is `Uint64` or a `chosenId`, be it optional. */
export function isUint64Schema(schema: TSchema): boolean {
  return (schema as { toJSON?: unknown }).toJSON === bothForms || isChosenIdSchema(schema)
}

/** Whether a schema is a `chosenId`, be it optional. */
export function isChosenIdSchema(schema: TSchema): boolean {
  return (schema as { toJSON?: unknown }).toJSON === chosenForms
}

/** The bigint that a value from the wire stands for. Any other value stays as it is, for the schema to refuse. */
export function readUint64(value: unknown): unknown {
  if (typeof value === 'string') return FORM.test(value) ? BigInt(value) : value
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}

function isUint64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value <= UINT64_MAX
}

function chosenForms(this: { readonly range: string }): object {
  return { description: `Random, ${this.range}. Left out: the server makes one`, ...bothForms() }
}

function bothForms(): object {
  return {
    oneOf: [
      { type: 'string', format: 'uint64', pattern: PATTERN },
      { type: 'integer', format: 'uint64', minimum: 0 },
    ],
  }
}

const REFUSAL = 'must be an unsigned 64-bit integer, as a decimal string or a number'
