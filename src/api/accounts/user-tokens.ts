/** Tokens by which users show the operator's own API who they are, and the public keys that it checks them with. */

import { formatUserToken, USER_TOKEN_S, type UserTokenKey } from '../../domain/accounts/user-token.ts'
import { assertNotSuspended } from '../../domain/operators/suspension.ts'
import { SignalError } from '../../errors.ts'
import { UserTokenReply, UserTokenRequest } from '../../schema/user-token.ts'
import { sessionIdOf, sessionIdText } from '../../store/accounts/session-store.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { ApiDeps } from '../deps.ts'
import { documentRoute } from '../documents/document-route.ts'
import { operationWithBody, type RateRule } from '../table/operation.ts'

type Deps = Pick<
  ApiDeps,
  'accounts' | 'database' | 'publicUrl' | 'randomBytes' | 'tokenAudiences' | 'userTokenKey'
>

const TOKEN_RATE: RateRule = { name: 'user-token', by: 'user' }

export const createUserToken = operationWithBody(UserTokenRequest, {
  id: 'createUserToken',
  method: 'POST',
  path: '/app/api/user/tokens',
  tag: 'user',
  summary: "A token that shows one of the operator's own services who the user is, for five minutes",
  access: 'session',
  replies: { 200: UserTokenReply },
  codes: ['AUDIENCE_UNKNOWN', 'ACCOUNT_SUSPENDED'],
  rates: [TOKEN_RATE],
  handle: (deps: Deps, { body: { audience }, requester, nowMs }) => {
    const { userTokenKey, tokenAudiences, randomBytes } = deps
    if (userTokenKey === undefined || !tokenAudiences.includes(audience))
      throw new SignalError('AUDIENCE_UNKNOWN', 'this server makes no tokens for that audience')
    const { userId, sessionName } = requester
    const user = deps.database.view(view => deps.accounts.read(view, userId))
    assertNotSuspended(user, nowMs)
    const claims = {
      iss: deps.publicUrl(),
      sub: `${userId}`,
      ext: user?.externalId,
      aud: audience,
      sid: sessionIdText(sessionIdOf(sessionName)),
      jti: Buffer.from(randomBytes(JTI_BYTES)).toString('base64url'),
    }
    return {
      status: 200,
      body: { token: formatUserToken(userTokenKey, claims, nowMs), expiresIn: USER_TOKEN_S },
    }
  },
})

/** `GET /.well-known/jwks.json`. */
export function userTokenKeysRoute(keys: readonly UserTokenKey[]): HttpRoute {
  return documentRoute('/.well-known/jwks.json', () => ({ keys: keys.map(({ jwk }) => jwk) }), CACHE_CONTROL)
}

const JTI_BYTES = 16
/** Short, so that a key can be replaced within minutes where one was stolen. */
const CACHE_CONTROL = 'public, max-age=300'
