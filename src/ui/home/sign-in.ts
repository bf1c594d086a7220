/**
 * `<callsign-sign-in>`: an address, the code that went to it, and whatever else stands before the first call: a wait for
 * another device, or one device too many. Goes on with the session that the storage has. Fires `signed-in`.
 */

import { html, nothing, type TemplateResult } from 'lit'
import {
  type AppStorage,
  type Callsign,
  type CallsignError,
  type Device,
  hasCode,
  type Question,
  type User,
  type WaitingSignIn,
} from '../../app/app.ts'
import type { View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { timeView } from '../when.ts'
import { word } from '../words.ts'
import { deviceRows, ROWS_STYLE } from './device-rows.ts'
import { addresses, HOME_STYLE, HomeElement, sentCodesView } from './home-element.ts'
import { readPasskeysHere } from './passkeys-here.ts'

/**
 * - `refused`: a sign-in that waited has come to nothing
 * - `crowded`: the user has as many devices as may be, without this one
 * - `in`: nothing is shown
 */
type Stage =
  | { readonly kind: 'starting' | 'address' | 'in' }
  | { readonly kind: 'code'; readonly question: Question }
  | { readonly kind: 'waiting'; readonly waiting: WaitingSignIn }
  | { readonly kind: 'refused'; readonly sentence: string }
  | { readonly kind: 'crowded'; readonly devices: readonly Device[]; readonly isRestricted: boolean }

export class CallsignSignIn extends HomeElement {
  static override properties = { developmentInbox: { attribute: false }, storage: { attribute: false } }
  static override styles = [SHARED_STYLE, HOME_STYLE, ROWS_STYLE]

  /** Finds the code for an address, such as `sentCode`: an app sets it for a development server alone. */
  declare developmentInbox: ((address: string) => Promise<string>) | undefined
  /** The storage of `me`: with it a browser that has lost its keys becomes a new device. */
  declare storage: AppStorage | undefined

  #stage: Stage = { kind: 'starting' }
  #started: Callsign | undefined
  #address = ''
  #canUsePasskeys = false
  #resendAtMs = 0
  #clock: ReturnType<typeof setInterval> | undefined
  #answer: (otp: string) => void = () => {}
  #giveUp: (reason: undefined) => void = () => {}
  /** Ends the turn of a button: with the next question, signed in, or in vain. */
  #endTurn: (error?: unknown) => void = () => {}

  protected override willUpdate(): void {
    super.willUpdate()
    const { me } = this
    if (me !== undefined && me !== this.#started) void this.#start(me)
    // Signed out.
    if (this.#stage.kind === 'in' && me?.userId === undefined) this.#go({ kind: 'address' })
  }

  override connectedCallback(): void {
    super.connectedCallback()
    if (this.#stage.kind === 'code') this.#go(this.#stage)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.#clock)
  }

  protected override render(): View {
    const stage = this.#stage
    switch (stage.kind) {
      case 'starting':
        return html`<p class="quiet" role="status">${word('sign-in-starting')}</p>${this.outcomeView()}`
      case 'address':
        return this.#addressView()
      case 'code':
        return this.#codeView(stage.question)
      case 'waiting':
        return this.#waitingView(stage.waiting)
      case 'refused':
        return html`<section class="card" aria-labelledby="title"><h2 id="title">${word('sign-in-refused')}</h2>
          <p role="alert">${stage.sentence}</p>
          <button class="main" @click=${() => this.#go({ kind: 'address' })}>${word('sign-in-begin-again')}</button></section>`
      case 'crowded':
        return this.#crowdedView(stage.devices, stage.isRestricted)
      case 'in':
        return nothing
    }
  }

  #addressView(): TemplateResult {
    const isWaiting = this.doing.has('sign-in')
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const values = new FormData(event.currentTarget as HTMLFormElement)
      const [address, name] = ['address', 'name'].map(key => String(values.get(key)).trim())
      void this.act('sign-in', () => this.#askForCode(address!, name!))
    }
    return html`<section class="card" aria-labelledby="title"><h2 id="title">${word('sign-in-title')}</h2>
      <form @submit=${onSubmit}>
        <label>${word('sign-in-address')}
          <input name="address" required autocomplete="username webauthn" autocapitalize="none" spellcheck="false"
            placeholder="you@example.org"></label>
        <label><span>${word('sign-in-name')} <span class="quiet">${word('sign-in-name-hint')}</span></span>
          <input name="name" maxlength="50" autocomplete="name" dir="auto"></label>
        <button class="main" ?disabled=${isWaiting}>${word('sign-in-send-code')}</button>
      </form>
      ${
        this.#canUsePasskeys
          ? html`<p class="quiet or">${word('sign-in-or')}</p>
            <button class="wide" ?disabled=${this.doing.has('passkey')}
              @click=${() => this.act('passkey', () => this.#begin(me => me.signInByPasskey()))}>${word('sign-in-passkey')}</button>`
          : nothing
      }
      ${this.outcomeView()}</section>`
  }

  #codeView({ sentTo, otpLength, error }: Question): TemplateResult {
    const isWaiting = this.doing.has('code')
    const secondsLeft = Math.ceil((this.#resendAtMs - Date.now()) / 1000)
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const otp = String(new FormData(event.currentTarget as HTMLFormElement).get('otp')).trim()
      void this.act('code', () => this.#turn(() => this.#answer(otp)))
    }
    const { developmentInbox } = this
    const fetchCode = async () => {
      const otp = await developmentInbox!(this.#address)
      await this.#turn(() => this.#answer(otp))
    }
    return html`<section class="card" aria-labelledby="title"><h2 id="title">${word('sign-in-code-title')}</h2>
      <p>${word('sign-in-code-sent', sentTo)}</p>
      ${
        developmentInbox === undefined
          ? sentCodesView(this.me)
          : html`<p class="row"><button class="main wide" ?disabled=${isWaiting}
              @click=${() => this.act('code', fetchCode)}>${word('sign-in-fetch-code')}</button></p>
            <p class="quiet or">${word('sign-in-or-type')}</p>`
      }
      <form @submit=${onSubmit}>
        <label>${word('sign-in-code')}
          <input name="otp" required inputmode="numeric" autocomplete="one-time-code" maxlength=${otpLength}
            pattern=${`[0-9]{${otpLength}}`} title=${word('sign-in-digits', otpLength)}
            aria-invalid=${error === undefined ? 'false' : 'true'} aria-describedby="code-error"></label>
        <p id="code-error" class="failure" role="alert">${error === undefined ? nothing : this.sentenceOf(error)}</p>
        <button class=${developmentInbox === undefined ? 'main' : ''} ?disabled=${isWaiting}>${word('sign-in-go')}</button>
      </form>
      <p class="row">
        <button class="plain" @click=${() => this.#giveUp(undefined)}>${word('sign-in-back')}</button>
        <button class="plain" ?disabled=${secondsLeft > 0}
          @click=${() => this.act('resend', () => this.#resend())}>${
            secondsLeft > 0 ? word('sign-in-another-in', secondsLeft) : word('sign-in-another')
          }</button>
      </p>
      ${this.outcomeView()}</section>`
  }

  /** The code was right; that the person is the account's owner, another device has to say. */
  #waitingView({ address, signInCode, until }: WaitingSignIn): TemplateResult {
    return html`<section class="card" aria-labelledby="title"><h2 id="title">${word('sign-in-waiting-title')}</h2>
      <p>${address === '' ? nothing : html`<strong dir="auto">${address}</strong>: `}${word('sign-in-waiting')}</p>
      <p class="digits" aria-label=${word('sign-in-waiting-code')} role="group">${signInCode}</p>
      <p>${word('sign-in-waiting-until')} ${timeView(until)}.</p>
      <p class="quiet">${word('sign-in-waiting-close')}</p>
      <button class="plain" @click=${() => this.act('leave', () => this.#leaveWait())}>${word('sign-in-other')}</button>
      ${this.outcomeView()}</section>`
  }

  #crowdedView(devices: readonly Device[], isRestricted: boolean): TemplateResult {
    return html`<section class="card" aria-labelledby="title"><h2 id="title">${word('sign-in-crowded-title')}</h2>
      <p>${word('sign-in-crowded')} ${isRestricted ? word('sign-in-crowded-restricted') : nothing}</p>
      ${deviceRows(devices, {
        nowMs: this.me!.nowMs(),
        isRestricted,
        isRemoving: this.doing.has('remove'),
        remove: device => this.act('remove', () => this.#makeRoom(device)),
      })}
      <button class="plain" @click=${() => this.act('leave', () => this.me!.signOut())}>${word('sign-in-other')}</button>
      ${this.outcomeView()}</section>`
  }

  async #start(me: Callsign): Promise<void> {
    this.#started = me
    this.#stage = { kind: 'starting' }
    await this.act('start', () => this.#begin(() => me.resume()))
    if (this.#stage.kind !== 'starting') return
    const waiting = await me.waitingSignIn().catch(() => undefined)
    if (waiting === undefined) this.#go({ kind: 'address' })
    else void this.#finish(waiting)
    this.#canUsePasskeys = (await readPasskeysHere(me)) === 'on'
    this.requestUpdate()
  }

  async #askForCode(address: string, displayName: string): Promise<void> {
    this.#address = address
    addresses.set(this.me!, address)
    this.#resendAtMs = 0
    const more = displayName === '' ? {} : { displayName }
    await this.#turn(() => {
      this.#begin(me => me.signIn(address, question => this.#ask(question), more)).then(
        () => this.#endTurn(),
        async error => {
          const waiting = hasCode(error, 'SIGN_IN_WAITING') ? await this.me!.waitingSignIn() : undefined
          if (waiting !== undefined) void this.#finish(waiting)
          else this.#go({ kind: 'address' })
          this.#endTurn(waiting === undefined ? error : undefined)
        },
      )
    })
  }

  /** Shows that the SDK asks for a code, and waits for it. */
  #ask(question: Question): Promise<string> {
    if (this.#resendAtMs === 0) this.#resendAtMs = Date.now() + question.resendIn * 1000
    this.#go({ kind: 'code', question })
    this.#endTurn()
    return new Promise((answer, giveUp) => {
      this.#answer = answer
      this.#giveUp = giveUp
    })
  }

  async #resend(): Promise<void> {
    if (this.#stage.kind !== 'code') return
    this.#resendAtMs = Date.now() + (await this.#stage.question.resend()) * 1000
    this.note(word('sign-in-another-sent'))
  }

  /** Waits for another device to approve the sign-in, also after a reload. */
  async #finish(waiting: WaitingSignIn): Promise<void> {
    const stage: Stage = { kind: 'waiting', waiting }
    this.#go(stage)
    try {
      await this.#begin(me => me.finishSignIn())
    } catch (error) {
      if (this.#stage === stage) this.#go({ kind: 'refused', sentence: this.sentenceOf(error) })
    }
  }

  /** The sign-in that waits goes on when the same address signs in again. */
  async #leaveWait(): Promise<void> {
    this.#go({ kind: 'address' })
    await this.me?.close()
  }

  /** Signs in, or goes on with a session. */
  async #begin(act: (me: Callsign) => Promise<User | string | undefined>): Promise<void> {
    const me = this.me!
    try {
      if ((await act(me)) === undefined) return
      this.#go({ kind: 'in' })
      this.say('signed-in', me.user)
    } catch (error) {
      if (hasCode(error, 'DEVICE_LIMIT')) return this.#askForRoom(me)
      // The kept session is of a device with other keys, and would be gone on with for ever.
      if (hasCode(error, 'SESSION_HAS_DEVICE')) await me.signOut()
      if (this.storage === undefined || !areKeysLost(error)) throw error
      await this.storage.put(String(error.members.key), null)
      this.note(word('sign-in-keys-lost'), 'bad')
      await this.#begin(() => me.resume())
    }
  }

  async #askForRoom(me: Callsign): Promise<void> {
    const { restriction } = await me.request('GET user', undefined)
    const { items } = await me.request('GET devices', undefined)
    this.#go({ kind: 'crowded', devices: items, isRestricted: restriction !== undefined })
  }

  async #makeRoom({ deviceId }: Device): Promise<void> {
    await this.me!.request('DELETE devices/{deviceId}', undefined, { deviceId }).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'DEVICE_NOT_FOUND')) throw error
    })
    await this.#begin(me => me.resume())
  }

  #turn(act: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#endTurn = error => (error === undefined ? resolve() : reject(error))
      act()
    })
  }

  #go(stage: Stage): void {
    const before = this.#stage.kind
    this.#stage = stage
    clearInterval(this.#clock)
    if (stage.kind === 'code') this.#clock = setInterval(() => this.requestUpdate(), 1_000)
    this.requestUpdate()
    if (before === 'starting' || stage.kind === 'in') return
    if (stage.kind === 'code') void this.focusOn('input[name=otp]')
    else if (before !== stage.kind) void this.focusOn(stage.kind === 'address' ? 'input[name=address]' : 'h2')
  }
}

function areKeysLost(error: unknown): error is CallsignError {
  if (hasCode(error, 'DEVICE_KEYS_LOST')) return true
  return hasCode(error, 'STORAGE_CORRUPT') && /^(keys|device)\./.test(String(error.members.key))
}

if (customElements.get('callsign-sign-in') === undefined)
  customElements.define('callsign-sign-in', CallsignSignIn)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-sign-in': CallsignSignIn
  }
}
