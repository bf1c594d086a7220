/**
 * Holds answers against what the document says of their operations: the form of each reply, no member that it does not
 * name, and no code that it does not list.
 */

import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { PROBLEM } from '../../src/api/documents/openapi.ts'
import type { OperationForm } from '../../src/api/table/operation.ts'
import { codesOf } from '../../src/api/table/refusals.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { unknownMembers } from '../../src/schema/shape.ts'
import { statusOf } from '../../src/transport/problem.ts'

/** An answer as it came, its body parsed. */
export interface CheckedAnswer {
  readonly status: number
  readonly body: unknown
}

export class DocumentedAnswers {
  readonly #operations: ReadonlyMap<string, OperationForm>
  readonly #validators = new Map<TSchema, Validator>()

  constructor(operations: readonly OperationForm[]) {
    this.#operations = new Map(operations.map(operation => [placeOf(operation), operation]))
  }

  /** Throws when the document does not foresee this answer. `path` is the operation's, with its `{name}` segments. */
  check(method: string, path: string, { status, body }: CheckedAnswer): void {
    const operation = this.#operations.get(placeOf({ method, path }))
    if (operation === undefined) throw new Error(`no operation is documented at ${method} ${path}`)
    const fault =
      status < 300 ? this.#replyFault(operation, status, body) : refusalFault(operation, status, body)
    if (fault !== undefined) {
      throw new Error(`${operation.id} answers ${status} ${JSON.stringify(body)}, undocumented: ${fault}`)
    }
  }

  #replyFault({ replies }: OperationForm, status: number, body: unknown): string | undefined {
    const schema = replies[status as keyof OperationForm['replies']]
    if (schema === undefined) return 'no reply of this status'
    if (schema === null) return body === undefined ? undefined : 'this status has no body'
    const [, [fault]] = this.#validatorOf(schema).Errors(body)
    if (fault !== undefined) return `${fault.instancePath} ${fault.message}`
    const [unknown] = unknownMembers(schema, body)
    return unknown === undefined ? undefined : `member ${unknown}`
  }

  #validatorOf(schema: TSchema): Validator {
    const validator = this.#validators.get(schema) ?? Compile(schema)
    this.#validators.set(schema, validator)
    return validator
  }
}

function refusalFault(operation: OperationForm, status: number, body: unknown): string | undefined {
  const { code } = body as { readonly code: ErrorCode }
  if (!codesOf(operation).includes(code)) return `code ${code}`
  const unknown = Object.keys(body as object).find(member => !(member in PROBLEM.properties))
  if (unknown !== undefined) return `member ${unknown}`
  return statusOf(code) === status ? undefined : `status ${status} for ${code}`
}

function placeOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`
}
