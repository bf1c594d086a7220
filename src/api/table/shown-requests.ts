/** What the console of a development server may show of requests: their form is the operations', their secrets stay out. */

import { parseJson } from '../../schema/lossless.ts'
import { redactedJson, redactedPath, redactedQuery } from '../../schema/redaction.ts'
import { unknownMembers } from '../../schema/shape.ts'
import type { OperationForm } from './operation.ts'

/** The members are described in `RequestReader` of the console. */
export function requestReader(operations: readonly OperationForm[]) {
  const schemas = new Map(operations.map(({ method, path, bodySchema }) => [`${method} ${path}`, bodySchema]))
  return {
    pathOf: redactedPath,
    queryOf: redactedQuery,
    textOf: redactedJson,
    unknownFieldsOf(method: string, route: string, body: Uint8Array): readonly string[] {
      const schema = schemas.get(`${method} ${route}`)
      try {
        return schema === undefined ? [] : unknownMembers(schema, parseJson(body))
      } catch {
        // What is no JSON has no members.
        return []
      }
    },
  }
}
