/** People with an app of `@callsign/sdk/app` on a running server. */

import type { Test } from 'tap'
import { WebSocket } from 'ws'
import {
  type Call,
  Callsign,
  type CallsignOptions,
  memoryStorage,
  type OwnListState,
} from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { Server } from '../../src/app/session/server.ts'
import { Session } from '../../src/app/session/session.ts'
import { CODE, emailOf, settingsFor } from './call-people.ts'
import { openServer } from './open-server.ts'
import { proveByCode } from './step-up.ts'

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

/** Resolves when the call is so, at once if it is. */
export async function until(call: Call, isSo: (call: Call) => boolean): Promise<void> {
  while (!isSo(call)) await call.once('changed')
}

/** Makes both contacts, in a call: as Ann has it, who called, and as Bob has it. */
export async function inCall(
  ann: AppPerson,
  bob: AppPerson,
): Promise<{ readonly call: Call; readonly bobs: Call }> {
  await befriend(ann, bob)
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const bobs = await rung
  await bobs.answer()
  await until(call, ({ state }) => state === 'active')
  return { call, bobs }
}

/** Makes the person's device the only one of its user's list. */
export async function startOver({ me, options }: AppPerson): Promise<void> {
  const { server: url, storage = memoryStorage() } = options
  const session = await Session.open(new Server({ url }), storage)
  await proveByCode({ session, storage }, () => CODE)
  await me.devices.startOver()
}

/** Reads from the state of the person's device list once `read` finds something. */
export async function listed<Value>({ me }: AppPerson, read: (state: OwnListState) => Value | undefined) {
  for (;;) {
    const state = me.devices.listState
    const value = state === undefined ? undefined : read(state)
    if (value !== undefined) return value
    await me.once('changed')
  }
}

function appOf(t: Test, options: CallsignOptions): AppPerson {
  const me = new Callsign(options)
  t.teardown(() => me.close())
  const errors: unknown[] = []
  me.on('error', error => errors.push(error))
  return { me, options, errors }
}
