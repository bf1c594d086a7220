/**
 * `<callsign-devices>`: the user's devices, those that wait to be approved, this one while it waits, and sign-ins that ask to
 * be let in.
 */

import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import {
  type Callsign,
  type CallsignEvents,
  type Device,
  hasCode,
  type ListWaitingSignInsReply,
  type OwnListState,
  type WaitingDevice,
} from '../../app/app.ts'
import type { View } from '../element.ts'
import { programName, shownName } from '../names.ts'
import { SHARED_STYLE } from '../style.ts'
import { timeView } from '../when.ts'
import { type Word, word } from '../words.ts'
import { deviceRows, ROWS_STYLE } from './device-rows.ts'
import { HOME_STYLE, HomeElement } from './home-element.ts'

type AskingSignIn = ListWaitingSignInsReply['items'][number]

export class CallsignDevices extends HomeElement {
  static override styles = [SHARED_STYLE, HOME_STYLE, ROWS_STYLE]

  #devices: readonly Device[] = []
  #asking: readonly AskingSignIn[] = []

  protected override get loadsAt(): readonly (keyof CallsignEvents)[] {
    return [
      'device_added',
      'device_removed',
      'device_list_changed',
      'device_list_reset',
      'sign_in_waiting',
      'sign_in_ended',
    ]
  }

  protected override async load(me: Callsign): Promise<void> {
    this.#devices = (await me.devices.list()).items
    this.#asking = me.restriction === undefined ? await me.sessions.waiting() : []
  }

  protected override clear(): void {
    this.#devices = []
    this.#asking = []
  }

  protected override render(): View {
    const { me } = this
    if (me?.userId === undefined) return nothing
    const { listState } = me.devices
    return html`<div aria-live="polite">
        ${repeat(
          this.#asking,
          ({ id }) => id,
          signIn => this.#askingView(signIn),
        )}
        ${this.#ownView(me, listState)}
        ${listState?.kind === 'listed' ? this.#waitingView(listState.waiting) : nothing}
      </div>
      ${this.outcomeView()}
      ${
        this.#devices.length === 0
          ? nothing
          : html`<section class="card"><h2>${word('devices-title')}</h2>
              ${deviceRows(this.#devices, {
                nowMs: me.nowMs(),
                isRestricted: me.restriction !== undefined,
                isRemoving: this.doing.has('remove'),
                remove: device => this.act('remove', () => this.#remove(device)),
              })}</section>`
      }`
  }

  /** This device, while it may do little. */
  #ownView(me: Callsign, listState: OwnListState | undefined): View {
    const isWaiting = listState?.kind === 'waiting'
    if (!isWaiting && listState?.kind !== 'none' && me.restriction === undefined) return nothing
    return html`<section class="card attention"><h2>${word('devices-approve-title')}</h2>
      ${
        isWaiting
          ? html`<p>${word('devices-approve-where')}</p>
            <p class="digits" role="group" aria-label=${word('devices-own-code')}>${listState.code}</p>`
          : html`<p>${word(listState === undefined ? 'devices-reading' : 'devices-no-list')}</p>`
      }
      <details class="start-over"><summary class="button">${word('devices-only-this')}</summary>
        <div class="question" role="group" aria-label=${word('devices-only-this-ask')}>
          <p><strong>${word('devices-only-this-ask')}</strong></p>
          <p>${word('devices-only-this-means')}</p>
          <p class="row"><button class="bad" ?disabled=${this.doing.has('start-over')}
              @click=${() => this.act('start-over', () => this.#startOver(me))}>${word('devices-only-this-yes')}</button>
            <button @click=${closeDetails}>${word('not-now')}</button></p>
        </div></details></section>`
  }

  #waitingView(waiting: readonly WaitingDevice[]): TemplateResult {
    return html`${repeat(
      waiting,
      ({ deviceId }) => deviceId,
      device => {
        const name = shownName(device.name)
        return html`<section class="card attention approval"><h2>${word('devices-new-title')}</h2>
          <p><strong dir="auto">${name}</strong> ${word('devices-new')}</p>
          <p class="digits" role="group" aria-label=${word('devices-code-of', name)}>${device.code}</p>
          <p class="row"><button class="main" ?disabled=${this.doing.has('approve')}
              @click=${() => this.act('approve', () => this.#approve(device))}>${word('devices-approve')}</button>
            <button class="bad" ?disabled=${this.doing.has('remove')}
              @click=${() => this.act('remove', () => this.#remove(device))}>${word('devices-not-me')}</button></p></section>`
      },
    )}`
  }

  /** As for devices that wait: the digits are compared before anything is let in. */
  #askingView({ id, signInCode, method, userAgent, network, until }: AskingSignIn): TemplateResult {
    const isAnswering = this.doing.has('answer')
    const answer = (approve: boolean) => this.act('answer', () => this.#answer(id, approve))
    return html`<section class="card attention"><h2>${word('devices-sign-in-title')}</h2>
      <p><strong dir="auto">${programName(userAgent)}</strong>${
        network === undefined
          ? nothing
          : html` ${word('devices-sign-in-from')} <span class="mono">${network}</span>`
      } ${word(PROOFS[method])}</p>
      <p class="digits" role="group" aria-label=${word('devices-sign-in-code')}>${signInCode}</p>
      <p class="quiet">${word('devices-sign-in-until')} ${timeView(until)}.</p>
      <p class="row">
        <button class="main" ?disabled=${isAnswering} @click=${() => answer(true)}>${word('devices-sign-in-yes')}</button>
        <button class="bad" ?disabled=${isAnswering} @click=${() => answer(false)}>${word('devices-sign-in-no')}</button>
      </p></section>`
  }

  async #approve(device: WaitingDevice): Promise<void> {
    await this.me!.devices.approve(device)
    this.note(word('devices-approved', shownName(device.name)))
    await this.focusOn('h2')
  }

  async #startOver(me: Callsign): Promise<void> {
    await me.devices.startOver()
    this.note(word('devices-started-over'))
  }

  async #remove({ deviceId }: Pick<Device, 'deviceId'>): Promise<void> {
    await this.me!.devices.remove(deviceId).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'DEVICE_NOT_FOUND')) throw error
    })
    await this.reload()
    await this.focusOn('.card:last-of-type h2')
  }

  async #answer(id: string, approve: boolean): Promise<void> {
    await this.me!.sessions.answer(id, approve)
    if (approve) this.note(word('notice-sign-in-approved'))
    else this.note(word('notice-sign-in-refused'), 'bad')
    await this.reload()
    await this.focusOn('h2')
  }
}

function closeDetails({ currentTarget }: Event): void {
  const details = (currentTarget as HTMLElement).closest('details')!
  details.querySelector('summary')!.focus()
  details.open = false
}

/** The proof that a waiting sign-in has given. */
const PROOFS: Readonly<Record<AskingSignIn['method'], Word>> = {
  email: 'devices-proof-email',
  phone: 'devices-proof-phone',
  server: 'devices-proof-server',
}

if (customElements.get('callsign-devices') === undefined)
  customElements.define('callsign-devices', CallsignDevices)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-devices': CallsignDevices
  }
}
