/** `<callsign-account>`: the user's name, passkeys, calls when the page is closed, and signing out. Fires `signed-out`. */

import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import { type Callsign, hasCode, type LoginMethod } from '../../app/app.ts'
import {
  renewWebPush,
  subscribeToWebPush,
  unsubscribeFromWebPush,
  type WebPushState,
} from '../../app/push/web-push.ts'
import type { View } from '../element.ts'
import { browserName } from '../names.ts'
import { SHARED_STYLE } from '../style.ts'
import { timeView, whenText } from '../when.ts'
import { type Word, word } from '../words.ts'
import { HOME_STYLE, HomeElement } from './home-element.ts'
import { type PasskeysHere, readPasskeysHere } from './passkeys-here.ts'

/** `insecure`: browsers give pages without HTTPS no notifications. `no-server`: the server sends none. */
type Push = WebPushState | 'insecure' | 'no-server'

export class CallsignAccount extends HomeElement {
  static override properties = { worker: { attribute: false } }
  static override styles = [SHARED_STYLE, HOME_STYLE]

  /** The registration of the app's service worker, as soon as it has begun: undefined where there is none. */
  declare worker: Promise<ServiceWorkerRegistration | undefined> | undefined

  #passkeys: readonly LoginMethod[] = []
  #passkeysHere: PasskeysHere = 'off'
  #push: Push = 'unsupported'
  /** Browsers ask the person at a click alone, so nothing is awaited then. */
  #registration: ServiceWorkerRegistration | undefined

  protected override async load(me: Callsign): Promise<void> {
    if (me.restriction !== undefined) return
    const { items } = await me.account.loginMethods()
    this.#passkeys = items.filter(({ kind }) => kind === 'passkey')
    this.#passkeysHere = await readPasskeysHere(me)
    this.#push = await this.#readPush(me)
  }

  protected override listen(me: Callsign): readonly (() => void)[] {
    return [
      me.on('device_push_lost', ({ deviceId }) => {
        // Another user is rung in this browser now: it has one subscription.
        if (deviceId !== me.deviceId) return
        this.#push = 'off'
        this.requestUpdate()
      }),
    ]
  }

  protected override clear(): void {
    this.#passkeys = []
  }

  protected override render(): View {
    const { me } = this
    if (me?.userId === undefined) return nothing
    const isAll = me.restriction === undefined
    return html`<section class="card"><h2>${word('account-title')}</h2>
      ${isAll ? html`${this.#nameView(me)} ${this.#pushView(me)} ${this.#passkeysView(me)}` : nothing}
      ${this.outcomeView()}
      <p><button ?disabled=${this.doing.has('sign-out')}
        @click=${() => this.act('sign-out', () => this.#signOut(me))}>${word('account-sign-out')}</button></p></section>`
  }

  #nameView(me: Callsign): TemplateResult {
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const displayName = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim()
      void this.act('name', async () => {
        await me.account.update({ displayName })
        this.note(word('account-name-saved', displayName))
      })
    }
    return html`<form @submit=${onSubmit}>
      <label>${word('account-name')}
        <input name="name" required maxlength="50" dir="auto" autocomplete="name" .value=${me.user?.displayName ?? ''}></label>
      <p><button ?disabled=${this.doing.has('name')}>${word('account-name-save')}</button></p></form>`
  }

  #pushView(me: Callsign): TemplateResult {
    const push = this.#push
    const isOn = push === 'on'
    const canTurn = isOn || push === 'off' || push === 'refused'
    const onClick = (event: Event) => {
      // It changes once the browser has agreed.
      event.preventDefault()
      void this.act('push', () => this.#turnPush(me, !isOn))
    }
    return html`<h3>${word('account-push-title')}</h3>
      ${
        canTurn
          ? html`<p class="row"><input id="push" type="checkbox" role="switch" .checked=${isOn} aria-describedby="push-why"
              ?disabled=${this.doing.has('push')} @click=${onClick}><label for="push">${word('account-push')}</label></p>`
          : nothing
      }
      <p id="push-why" class=${push === 'refused' ? 'failure' : 'quiet'} role="status">${word(PUSHES[push])}</p>`
  }

  #passkeysView(me: Callsign): View {
    const here = this.#passkeysHere
    if (here === 'off') return nothing
    return html`<h3>${word('account-passkeys')}</h3>
      ${
        this.#passkeys.length === 0
          ? html`<p class="quiet">${word('account-passkeys-none')}</p>`
          : html`<ul class="list passkeys">${repeat(
              this.#passkeys,
              ({ id }) => id,
              passkey => this.#passkeyView(me, passkey),
            )}</ul>`
      }
      <p>${
        here === 'elsewhere'
          ? html`<span class="quiet">${word('account-passkeys-elsewhere')}</span>
              <a href=${`http://localhost:${location.port}${location.pathname}`}>localhost</a>`
          : html`<button ?disabled=${this.doing.has('passkey')}
              @click=${() => this.act('passkey', () => this.#addPasskey(me))}>${word('account-passkey-add')}</button>`
      }</p>`
  }

  #passkeyView(me: Callsign, passkey: LoginMethod): TemplateResult {
    const { label = word('account-passkey'), backedUp, addedAt, lastUsedAt } = passkey
    return html`<li>
      <span class="grow"><span class="name" dir="auto">${label}</span>
        <span class="quiet facts">${backedUp ? `${word('account-passkey-synced')}, ` : nothing}${word('devices-added')}
          ${timeView(addedAt)}, ${word('account-passkey-used')} ${timeView(lastUsedAt)}</span></span>
      <button class="plain bad" ?disabled=${this.doing.has('remove')}
        aria-label=${word('account-passkey-remove-label', label, whenText(new Date(addedAt)))}
        @click=${() => this.act('remove', () => this.#removePasskey(me, passkey))}>${word('devices-remove')}</button></li>`
  }

  async #addPasskey(me: Callsign): Promise<void> {
    await me.addPasskey({ label: browserName() })
    this.note(word('account-passkey-made'))
    await this.reload()
  }

  async #removePasskey(me: Callsign, { id }: LoginMethod): Promise<void> {
    await me.account.removeLoginMethod({ id }).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'LOGIN_METHOD_NOT_FOUND')) throw error
    })
    this.note(word('account-passkey-removed'))
    await this.reload()
    await this.focusOn('h2')
  }

  async #readPush(me: Callsign): Promise<Push> {
    if (!isSecureContext) return 'insecure'
    if (!('serviceWorker' in navigator && 'PushManager' in globalThis)) return 'unsupported'
    const { features } = await me.request('GET meta', undefined)
    if (features.webPush !== true) return 'no-server'
    this.#registration = await this.worker?.catch(() => undefined)
    if (this.#registration === undefined) return 'unsupported'
    const state = await renewWebPush(me, this.#registration)
    return state === 'off' && Notification.permission === 'denied' ? 'refused' : state
  }

  async #turnPush(me: Callsign, isOn: boolean): Promise<void> {
    const turn = isOn ? subscribeToWebPush : unsubscribeFromWebPush
    this.#push = await turn(me, this.#registration!)
  }

  async #signOut(me: Callsign): Promise<void> {
    // Pushes are for the user who switched them on.
    if (this.#push === 'on' && this.#registration !== undefined)
      await unsubscribeFromWebPush(me, this.#registration).catch(() => {})
    await me.signOut()
    this.say('signed-out')
  }
}

const PUSHES: Readonly<Record<Push, Word>> = {
  on: 'account-push-on',
  off: 'account-push-off',
  refused: 'account-push-refused',
  unsupported: 'account-push-unsupported',
  insecure: 'account-push-insecure',
  'no-server': 'account-push-no-server',
}

if (customElements.get('callsign-account') === undefined)
  customElements.define('callsign-account', CallsignAccount)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-account': CallsignAccount
  }
}
