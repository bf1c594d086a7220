/** People with apps of `@callsign/sdk/app`, whose server can lie to one of them. */

import { KeyExchange } from '../../src/app/calls/key-exchange.ts'
import { type KeyEvent, KeyLog, type OnReset } from '../../src/app/devices/key-log.ts'
import { OwnDeviceList, type OwnListState } from '../../src/app/devices/own-device-list.ts'
import type { AppStorage } from '../../src/app/storage/storage.ts'
import { registrationOf } from './app-connections.ts'
import { type AppSession, signIn, startApp } from './app-sessions.ts'
import { CODE } from './call-people.ts'
import type { OpenServer } from './server.ts'
import { proveByCode } from './step-up.ts'

/** Changes the answer at a path, or leaves it where it gives nothing. */
export type Lie = (path: string, answer: Answer) => Promise<unknown> | undefined

/** The honest answer's JSON. */
export type Answer = <Body>() => Promise<Body>

export interface AppPerson extends AppSession {
  readonly userId: string
  readonly deviceId: string
  readonly keyLog: KeyLog
  readonly exchange: KeyExchange
  readonly ownList: OwnDeviceList
  /** In the order in which they came. */
  readonly events: readonly KeyEvent[]
  lie: Lie
}

type Log = Pick<OpenServer, 'http' | 'vkey' | 'vrfPublicKey'>

/** The app starts, signs in unless its storage has a session, and registers its device. */
export async function startPerson(
  { http, vkey, vrfPublicKey }: Log,
  at: number,
  kept?: AppStorage,
  lie: Lie = () => undefined,
  onReset: OnReset = 'ask',
): Promise<AppPerson> {
  const lyingFetch: typeof fetch = async (url, init) => {
    const honest = () => fetch(url, init)
    const path = new URL(String(url)).pathname
    const lied = await lie(path, async <Body>() => (await honest()).json() as Promise<Body>)
    if (lied instanceof Response) return lied
    return lied === undefined ? honest() : Response.json(lied)
  }
  const app = await startApp(http, { fetch: lyingFetch, ...(kept && { storage: kept }) })
  if (app.session.userId === undefined) await signIn(app, at)
  const device = await registrationOf(app).register()
  const { userId, deviceId } = device
  const events: KeyEvent[] = []
  const log = { vkey, vrfPublicKey, fetch: lyingFetch }
  const keyLog = new KeyLog({ ...app, device, log, onEvent: event => void events.push(event), onReset })
  return {
    ...app,
    userId,
    deviceId,
    keyLog,
    exchange: new KeyExchange(keyLog, app.session),
    ownList: new OwnDeviceList(app.server, app.session, device, keyLog),
    events,
    get lie() {
      return lie
    },
    set lie(next) {
      lie = next
    },
  }
}

/** Makes the person's device the only one of its user's list. */
export async function startOver(person: AppPerson): Promise<OwnListState> {
  await proveByCode(person, () => CODE)
  return person.ownList.startOver()
}

export async function becomeContacts(one: AppPerson, other: AppPerson): Promise<void> {
  await one.session.request('POST friend-request/by-id', { targetUserId: other.userId })
  await other.session.request('POST friend-request/accept', { userId: one.userId })
}
