/**
 * Program: Fastify that answers `GET /app/api/user` with the same bytes as the project: it checks the same token by its
 * MAC, looks up whose it is in memory, and writes the user by a schema.
 */

import { createSecretKey } from 'node:crypto'
import Fastify from 'fastify'
import { type AccessToken, parseAccessToken } from '../../src/domain/accounts/token.ts'
import { serveParent } from './program.ts'

export interface FastifyServerProtocol {
  readonly setup: {
    readonly path: string
    /** The key of the tokens' MACs. */
    readonly secret: Uint8Array
    /** Each with the body that answers it. */
    readonly tokens: readonly (readonly [token: string, body: string])[]
    /** Of the answer, but `content-type`. */
    readonly headers: readonly (readonly [string, string])[]
  }
  readonly request: 'server'
  readonly answer: { readonly url: string; readonly name: string }
}

serveParent<FastifyServerProtocol>(async ({ path, secret, tokens, headers }) => {
  const key = createSecretKey(secret)
  const users = new Map<string, object>()
  for (const [token, body] of tokens) users.set(sessionOf(parseAccessToken(key, token)), JSON.parse(body))
  const [, body = '{}'] = tokens[0] ?? []
  const fixed = Object.fromEntries(headers)
  const app = Fastify({ logger: false })
  app.get(path, { schema: { response: { 200: schemaOf(JSON.parse(body)) } } }, async (request, reply) => {
    const token = parseAccessToken(key, (request.headers.authorization ?? '').slice('Bearer '.length))
    const user = users.get(sessionOf(token))
    if (token === undefined || token.expiresAtS * 1000 < Date.now() || user === undefined) {
      throw Object.assign(new Error('no session'), { statusCode: 401 })
    }
    reply.headers(fixed)
    return user
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return () => ({ url, name: `Fastify ${app.version}` })
})

function sessionOf(token: AccessToken | undefined): string {
  return token === undefined ? '' : Buffer.from(token.sessionId).toString('latin1')
}

/** What fast-json-stringify needs to write a value like this one. */
function schemaOf(value: unknown): object {
  if (value === null) return { type: 'null' }
  if (Array.isArray(value)) return { type: 'array', items: value.length === 0 ? {} : schemaOf(value[0]) }
  if (typeof value !== 'object') return { type: typeof value }
  const members = Object.entries(value).map(([name, member]) => [name, schemaOf(member)])
  return { type: 'object', properties: Object.fromEntries(members) }
}
