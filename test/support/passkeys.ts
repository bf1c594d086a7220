/** Passkeys of users, made and used over the operations. */

import type { TestAnswer, TestUser } from './application.ts'
import { Authenticator, type Oddity } from './authenticator.ts'
import type { TestApi } from './test-api.ts'

const PATH = '/app/api/user/passkeys'

/** Has the authenticator make a passkey for the user. */
export async function addPasskey(
  { send }: Pick<TestApi, 'send'>,
  { token }: Pick<TestUser, 'token'>,
  authenticator = new Authenticator(),
  oddity: Oddity = {},
): Promise<TestAnswer> {
  const answer = await send(`POST ${PATH}/options`, { token })
  if (answer.status !== 200) return answer
  const credential = authenticator.create(answer.body.options, oddity)
  return send(`POST ${PATH}`, { token, body: { credential } })
}

/** Signs in by the authenticator's newest passkey. */
export async function signInByPasskey(
  { send }: Pick<TestApi, 'send'>,
  authenticator: Authenticator,
  oddity: Oddity = {},
): Promise<TestAnswer> {
  const { body } = await send('POST /app/api/passkey/options')
  const credential = authenticator.get(body.options, oddity)
  return send('POST /app/api/login/passkey', { body: { credential } })
}
