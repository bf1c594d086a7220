/** People who have signed in to a running server, each with a device, and who know one another: for stories of calls. */

import { randomBytes } from 'node:crypto'
import { type Answer, App, newPublicKey } from './app.ts'

export interface Person {
  readonly app: App
  readonly userId: string
  readonly deviceId: string
  readonly publicKey: string
  readonly publicKeyHash: string
}

/** Settings by which so many people can sign in with a code that they know. */
export function settingsFor(people: number): Readonly<Record<string, string>> {
  const codes = Object.fromEntries(Array.from({ length: people }, (_, at) => [emailOf(at), CODE]))
  return { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(codes) }
}

/** Signs in a new person and registers their device. */
export async function signInPerson(http: string, at: number): Promise<Person> {
  const app = await signInAgain(http, at)
  const { userId } = await app.get(200, 'GET /app/api/user')
  const publicKey = newPublicKey('P-256 X9.63')
  const { deviceId, publicKeyHash } = await app.get(201, 'POST /app/api/register_device', { publicKey })
  return { app, userId, deviceId, publicKey, publicKeyHash }
}

/** Another session of theirs, without a device. */
export async function signInAgain(http: string, at: number): Promise<App> {
  const app = new App(http)
  const login = { email: emailOf(at), displayName: `Person ${at}` }
  const { challengeId } = await app.get(200, 'POST /app/api/login', login)
  app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp: CODE }))
  return app
}

/** So many people from `first` on; the first is everyone's contact. */
export async function meetPeople(http: string, count: number, first = 0): Promise<Person[]> {
  const signIns = Array.from({ length: count }, (_, at) => signInPerson(http, first + at))
  const [host, ...others] = await Promise.all(signIns)
  for (const other of others) await befriend(host!, other)
  return [host!, ...others]
}

export async function befriend(one: Person, other: Person): Promise<void> {
  await one.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: other.userId })
  await other.app.get(200, 'POST /app/api/friend-request/accept', { userId: one.userId })
}

/** `POST call/start`, with a key for each callee's device. */
export function startCall({ app }: Person, callees: readonly Person[]): Promise<Answer> {
  const keys = callees.map(({ userId, deviceId }) => [`${userId}_${deviceId}`, newCallKey()])
  return app.send('POST /app/api/call/start', {
    calleeIds: callees.map(({ userId }) => userId),
    encryptedAESKeys: Object.fromEntries(keys),
    isVideo: false,
  })
}

/** A stand-in for a call's key, encrypted for a device. */
export function newCallKey(): string {
  return randomBytes(113).toString('base64')
}

export function emailOf(at: number): string {
  return `person${at}@example.org`
}

export const CODE = '424242'
