/** People who sign in by code, and phones that are on their device lists, over the operations and a clock that tests move. */

import { signInAnswerMessage, signInMessage } from '../../src/log/signing-messages.ts'
import type { TestAnswer } from './application.ts'
import { type ListedPhone, listBody, listOf, newPhone, registrationOf, signWith } from './device-lists.ts'
import { idOf, REGISTER } from './device-requests.ts'
import type { TestApi } from './test-api.ts'

export const DAY_MS = 86_400_000

/** A signed-in client: its tokens, and the phone that it is. */
export interface Client {
  readonly userId: string
  token: string
  refreshToken: string
  readonly challenge: string
  readonly phone: ListedPhone
}

type Extras = Readonly<Record<string, unknown>>

/** Asks for a code and enters it: the answer of `verify-login`. */
export async function enterCode(
  api: TestApi,
  address: string,
  extras: Extras | ((challengeId: string) => Extras) = {},
): Promise<TestAnswer> {
  await api.world.takeSent()
  const { body } = await api.send('POST /app/api/login', { body: { identifier: address } })
  const otp = await api.otpFor(address)
  const { challengeId } = body
  const more = typeof extras === 'function' ? extras(challengeId) : extras
  return api.send('POST /app/api/verify-login', { body: { challengeId, otp, ...more } })
}

/** Shows that the client is a listed device of its user. */
export function proofOf({ userId, phone }: Pick<Client, 'userId' | 'phone'>) {
  return (challengeId: string) => ({
    device: {
      userId,
      deviceId: `${phone.deviceId}`,
      signature: base64(signWith(phone.signer, signInMessage(Buffer.from(challengeId, 'base64url')))),
    },
  })
}

/** The client of a sign-in, with a new phone. */
export function clientOf({ body }: TestAnswer, name = 'phone'): Client {
  const { user, accessToken: token, refreshToken, challenge } = body
  return { userId: user.userId, token, refreshToken, challenge, phone: newPhone(name) }
}

/** Registers the client's phone; with `isFirst` as the only one on the list of its user, in place of any other list. */
export async function register(api: TestApi, client: Client, isFirst = false): Promise<TestAnswer> {
  const { userId, phone, challenge, token } = client
  const list = isFirst ? listOf(userId, [phone]) : undefined
  const answer = await api.send(REGISTER, { token, body: registrationOf(phone, challenge, list) })
  if (answer.status < 300) phone.deviceId = idOf(answer.body.deviceId)
  return answer
}

/** Makes the phone the only one of its user's list. */
export function startOver(api: TestApi, { userId, phone, token }: Client, seq: number): Promise<TestAnswer> {
  const headers = { 'if-match': `"${seq}"` }
  const body = listBody(listOf(userId, [phone]))
  return api.send('PUT /app/api/user/device-list', { token, body, headers })
}

/** A new person, with a phone on a device list. */
export async function signUp(api: TestApi, address: string, name = 'phone'): Promise<Client> {
  const client = clientOf(await enterCode(api, address), name)
  await register(api, client, true)
  return client
}

/** Uses the session, and so has its device seen. */
export async function refresh(api: TestApi, client: Client): Promise<TestAnswer> {
  const answer = await api.send('POST /app/api/refresh-token', {
    body: { refreshToken: client.refreshToken },
  })
  if (answer.status === 200) {
    client.token = answer.body.accessToken
    client.refreshToken = answer.body.refreshToken
  }
  return answer
}

/** The sign-ins that the client's phone shows. */
export async function shownSignIns(api: TestApi, { token }: Client): Promise<readonly Extras[]> {
  return (await api.send('GET /app/api/user/waiting-sign-ins', { token })).body.items
}

export function answerSignIn(
  api: TestApi,
  client: Client,
  id: string,
  approve: boolean,
): Promise<TestAnswer> {
  const body = { approve, signature: answerSignature(client, id, approve) }
  return api.send(`POST /app/api/user/waiting-sign-ins/${id}`, { token: client.token, body })
}

export function answerSignature(
  { userId, phone }: Pick<Client, 'userId' | 'phone'>,
  id: string,
  approve: boolean,
): string {
  const message = signInAnswerMessage(BigInt(userId), Buffer.from(id, 'base64url'), approve)
  return base64(signWith(phone.signer, message))
}

export function fetchWaiting(api: TestApi, waitingId: string): Promise<TestAnswer> {
  return api.send('POST /app/api/login/waiting', { body: { waitingId } })
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
