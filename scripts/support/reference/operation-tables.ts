/** The HTTP operations of every port, from the tables that serve them. */

import type { TSchema } from 'typebox'
import { LOG_FILE_PATHS, plainOperations } from '../../../src/api/documents/log-operations.ts'
import { OPERATIONS } from '../../../src/api/operations.ts'
import { SERVER_OPERATIONS } from '../../../src/api/server-api/operations.ts'
import type { Access, OperationForm } from '../../../src/api/table/operation.ts'
import { table } from './markdown-table.ts'

export function appOperationTables(): string {
  return sectionsOf([...OPERATIONS, ...plainOperations(false).filter(({ tag }) => tag === 'meta')])
}

export function serverOperationTables(): string {
  return sectionsOf(SERVER_OPERATIONS)
}

export function logOperationTable(): string {
  const lookups = plainOperations(false).filter(({ tag }) => tag === 'log')
  const files = Object.entries(LOG_FILE_PATHS).map(([path, { get }]) => {
    const { summary } = get as { readonly summary: string }
    return [`\`GET ${path}\``, `${summary}.`, 'anyone']
  })
  return table(HEAD, [...lookups.map(rowOf), ...files])
}

function sectionsOf(operations: readonly OperationForm[]): string {
  const tags = [...new Set(operations.map(({ tag }) => tag))]
  return tags
    .map(tag => {
      const rows = operations.filter(operation => operation.tag === tag).map(rowOf)
      return `### ${tag.charAt(0).toUpperCase()}${tag.slice(1)}\n\n${table(HEAD, rows)}`
    })
    .join('\n')
}

function rowOf(operation: OperationForm): readonly string[] {
  const { method, path, summary, access, scope, codes, bodySchema, querySchema } = operation
  const may = scope === undefined ? ACCESS[access] : `scope \`${scope}\``
  const taken = [membersOf('Body', bodySchema), membersOf('Query', querySchema)].filter(text => text !== '')
  const refusals = codes.map(code => `\`${code}\``)
  const refuses = refusals.length === 0 ? [] : [`Refuses: ${refusals.join(', ')}.`]
  const line = [`${summary}.`, ...taken, ...refuses, ...spellingsOf(operation)].join(' ')
  return [`\`${method} ${path.replace(PREFIX, '')}\``, line, may]
}

function membersOf(kind: string, schema: TSchema | undefined): string {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: object
    readonly required?: readonly string[]
  }
  const names = Object.keys(properties).map(name => `\`${name}${required.includes(name) ? '' : '?'}\``)
  return names.length === 0 ? '' : `${kind}: ${names.join(', ')}.`
}

function spellingsOf({ aliases = [], deprecatedAliases = [] }: OperationForm): readonly string[] {
  const older = deprecatedAliases.map(({ path }) => path)
  const all = [...aliases, ...older].map(path => `\`${path}\``)
  return all.length === 0 ? [] : [`Also at ${all.join(', ')}.`]
}

const HEAD = ['Operation', 'In a line', 'For'] as const
/** The text above the tables says it once. */
const PREFIX = /^\/(?:app\/api|server\/api\/v1)\//
const ACCESS: Readonly<Record<Access, string>> = {
  public: 'anyone',
  optional: 'anyone; a token that is sent must be good',
  ended: 'a session, also one that has ended',
  restricted: 'any session',
  'restricted-device': 'any session with a device',
  session: 'a session',
  device: 'a listed device',
  'server-key': 'a server key',
  operator: "the operator's command alone",
}
