/** People who ask one another through the operations of contacts. */

import { newUser, type TestUser } from './application.ts'
import type { TestApi } from './test-api.ts'

/** New users of these names. */
export async function people(
  { world }: Pick<TestApi, 'world'>,
  ...names: readonly string[]
): Promise<TestUser[]> {
  const users: TestUser[] = []
  for (const name of names) users.push(await newUser(world, name))
  return users
}

/** Asks by id; the answer. */
export function askById({ send }: Pick<TestApi, 'send'>, from: TestUser, to: TestUser) {
  const body = { targetUserId: to.userId }
  return send('POST /app/api/friend-request/by-id', { token: from.token, body })
}

/** Makes contacts of two users. */
export async function befriend(api: Pick<TestApi, 'send'>, one: TestUser, other: TestUser): Promise<void> {
  await askById(api, one, other)
  await askById(api, other, one)
}

/** A share token of the user: its text and id. */
export async function shareTokenOf(
  { send }: TestApi,
  { token }: TestUser,
  body: object = {},
): Promise<{ readonly text: string; readonly id: string }> {
  const answer = await send('POST /app/api/share-token', { token, body })
  return { text: answer.body.token, id: answer.body.id }
}

/** Takes the kinds of the messages to a user. */
export function takeKindsTold({ told }: Pick<TestApi, 'told'>, { userId }: TestUser): string[] {
  const kinds = told.filter(each => each.userId === userId).map(({ body }) => body.kind)
  for (let at = told.length - 1; at >= 0; at--) if (told[at]!.userId === userId) told.splice(at, 1)
  return kinds
}
