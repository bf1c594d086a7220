/** Calls that ring when the page is closed, where the person has switched that on for this tab. */

import type { Callsign } from '../../src/app/app.ts'
import {
  renewWebPush,
  subscribeToWebPush,
  unsubscribeFromWebPush,
  type WebPushState,
} from '../../src/app/push/web-push.ts'
import type { Store } from './state.ts'
import { isKept, keepPerson } from './storage.ts'

export class ClosedRings {
  readonly #me: Callsign
  readonly #store: Store

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
  }

  async load(): Promise<void> {
    const canRing = 'serviceWorker' in navigator && 'PushManager' in globalThis
    const { features } = await this.#me.request('GET meta', undefined)
    if (!canRing || !features.webPush) return this.#show('unsupported')
    this.#show(isKept() ? await renewWebPush(this.#me, await register()) : 'off')
  }

  async turn(isOn: boolean): Promise<void> {
    const registration = await register()
    this.#show(await (isOn ? subscribeToWebPush : unsubscribeFromWebPush)(this.#me, registration))
    const { closedRings } = this.#store.state
    if (isOn && closedRings === 'refused')
      this.#store.say(
        'bad',
        'The browser does not let this page show notifications: allow it in its settings.',
      )
  }

  /** The person of this tab leaves it. */
  async end(): Promise<void> {
    if (isKept()) await this.turn(false)
  }

  /** Another tab's person is rung in this browser now: it has one subscription. */
  onLost(): void {
    this.#show('off')
  }

  #show(closedRings: WebPushState): void {
    keepPerson(closedRings === 'on')
    this.#store.update({ closedRings })
  }
}

/** A click of the person counts for a while, so this may come before they are asked. */
async function register(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(WORKER, { type: 'module', scope: '/dev/client' })
  return navigator.serviceWorker.ready
}

const WORKER = '/dev/pages/client/service-worker.js'
