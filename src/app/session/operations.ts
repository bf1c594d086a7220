/** The server's operations as the SDK asks for them. */

import type { Operations } from '../wire.ts'

/** A method and a path, such as `POST call/{callId}/join`: see `wire.ts`. */
export type OperationName = keyof Operations
export type BodyOf<Name extends OperationName> = Operations[Name]['body']
export type ReplyOf<Name extends OperationName> = Operations[Name]['reply']

/** Values for the path and the query by name, which have to be given where the path has some; then further headers. */
export type Addressed<Name extends OperationName> = object extends Operations[Name]['params']
  ? [params?: Operations[Name]['params'], headers?: Headers]
  : [params: Operations[Name]['params'], headers?: Headers]

type Headers = Readonly<Record<string, string>>

/** Method, address behind the server's, and whether it may be asked again after its answer was lost. */
export interface AddressedRequest {
  readonly method: string
  readonly path: string
  readonly isRepeatable: boolean
}

export function addressed(name: OperationName, params: object = {}): AddressedRequest {
  const [method = '', template = ''] = name.split(' ')
  const query = new Map(Object.entries(params).filter(([, value]) => value !== undefined))
  const filled = template.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = encodeURIComponent(String(query.get(key)))
    query.delete(key)
    return value
  })
  const parts = [...query].map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`)
  const path = (filled.startsWith('/') ? filled : `/app/api/${filled}`) + (parts.length > 0 ? '?' : '')
  return { method, path: path + parts.join('&'), isRepeatable: !COUNTED.includes(name) }
}

/** Each attempt counts: a repeated one could use up codes or tries, and a passkey's answer is good once. */
const COUNTED: readonly OperationName[] = [
  'POST resend-otp',
  'POST verify-login',
  'POST verify',
  'POST user/step-up',
  'POST login/passkey',
  'POST user/passkeys',
  'POST user/login-methods',
]
