/** Tokens by which the operator's backend signs in users that it has made (operators.md section 2). */

import { formatSignInToken } from '../../domain/accounts/token.ts'
import { readUserRef } from '../../domain/operators/user-ref.ts'
import { CreatedSignInToken } from '../../schema/sign-in-token.ts'
import { madeUser } from '../accounts/server-sign-in.ts'
import { type ServerOperation, serverOperation } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<
  ServerApiDeps,
  'accounts' | 'database' | 'randomBytes' | 'requestRates' | 'secrets' | 'serverUsers'
>

export const SIGN_IN_TOKENS: readonly ServerOperation<Deps>[] = [
  serverOperation({
    id: 'createSignInToken',
    method: 'POST',
    path: '/server/api/v1/users/{ref}/sign-in-token',
    tag: 'sign-in tokens',
    summary:
      'A token that signs a user in once, within a minute: one whom your backend made, and who has no login method of their own',
    scope: 'sign-in',
    replies: { 201: CreatedSignInToken },
    codes: ['USER_NOT_FOUND', 'USER_OWNS_SIGN_IN', 'ACCOUNT_SUSPENDED'],
    handle(deps: Deps, { params: [ref = ''], nowMs, commit }) {
      const { accounts, database, randomBytes, requestRates, secrets, serverUsers } = deps
      const user = readUserRef(ref)
      const asked = database.view(view => serverUsers.userOf(view, user))
      requestRates?.take('server-sign-in', 'user', `${asked}`)
      return commit(change => {
        const userId = serverUsers.userOf(change, user)
        madeUser(change, accounts, userId, nowMs)
        const content = { userId, nonce: randomBytes(NONCE_BYTES), expiresAtMs: nowMs + LASTS_S * 1000 }
        const token = formatSignInToken(secrets.signInToken, content)
        return { status: 201, body: { token, expiresIn: LASTS_S, userId }, target: `id:${userId}` }
      })
    },
  }),
]

const NONCE_BYTES = 16
const LASTS_S = 60
