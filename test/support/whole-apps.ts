/** People with an app of `callsign/app` on a running server. */

import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { Callsign, type CallsignOptions, memoryStorage } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { CODE, emailOf, settingsFor } from './call-people.ts'
import { openServer } from './open-server.ts'

export interface AppPerson {
  readonly me: Callsign
  readonly options: CallsignOptions
  /** Faults that the app was told of. */
  readonly errors: unknown[]
}

/** The app starts, and its person signs in. */
export async function newPerson(
  t: Test,
  http: string,
  at: number,
  options: Partial<CallsignOptions> = {},
): Promise<AppPerson> {
  const pins = await developmentPins(http)
  const webSocket = globalThis.WebSocket ?? WebSocket
  const person = appOf(t, { server: http, pins, storage: memoryStorage(), webSocket, ...options })
  await person.me.signIn(emailOf(at), () => CODE, { displayName: `Person ${at}` })
  return person
}

/** The person's app once more, after it was closed. */
export async function restart(t: Test, { options }: AppPerson): Promise<AppPerson> {
  const person = appOf(t, options)
  await person.me.resume()
  return person
}

/** So many people on a server of their own; the first is everybody's contact. */
export async function newFriends(t: Test, count = 2): Promise<AppPerson[]> {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(count) })
  t.teardown(() => server.end())
  const people: AppPerson[] = []
  for (let at = 0; at < count; at++) people.push(await newPerson(t, server.http, at))
  const [first, ...others] = people
  for (const other of others) await befriend(other, first!)
  return people
}

export async function befriend(ann: AppPerson, bob: AppPerson): Promise<void> {
  const { link } = await bob.me.contacts.shareLink()
  await ann.me.contacts.request({ link })
  await bob.me.contacts.accept(ann.me.userId!)
}

function appOf(t: Test, options: CallsignOptions): AppPerson {
  const me = new Callsign(options)
  t.teardown(() => me.close())
  const errors: unknown[] = []
  me.on('error', error => errors.push(error))
  return { me, options, errors }
}
