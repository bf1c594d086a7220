/**
 * `<callsign-call>`: the call that this device is in, from the first ring at the callees to its end. It fills the window, unless
 * the page's style gives it a place. Tiles, controls, people, the key's digits, and questions of devices for the key.
 */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import {
  type Call,
  type CallsignError,
  type Contact,
  type Device,
  hasCode,
  type KeyAsk,
} from '../../app/app.ts'
import { CallsignElement, type View } from '../element.ts'
import type { Media } from '../media/media.ts'
import { NO_MEDIA } from '../media/media-view.ts'
import { nameIn } from '../names.ts'
import { openQuestionsOf } from '../open-questions.ts'
import { Question } from '../question.ts'
import { sentenceOf } from '../sentence.ts'
import { SHARED_STYLE } from '../style.ts'
import { type Word, word } from '../words.ts'
import { CallNews } from './call-news.ts'
import { CALL_STYLE } from './call-style.ts'
import { controlsView, type Panel } from './controls.ts'
import { type Icon, iconView } from './icons.ts'
import { keyView } from './key-panel.ts'
import { CallKeyboard } from './keyboard.ts'
import { notesOf } from './notes.ts'
import { peopleView } from './people-panel.ts'
import { type Scene, sceneOf } from './scene.ts'
import { STAGE_STYLE } from './stage-style.ts'
import { playTiles, type Size, stageView } from './stage-view.ts'
import { durationText, statusOf, titleOf } from './status.ts'

export class CallsignCall extends CallsignElement {
  static override properties = {
    ...CallsignElement.properties,
    call: { attribute: false },
    media: { attribute: false },
  }
  static override styles = [SHARED_STYLE, STAGE_STYLE, CALL_STYLE]

  declare call: Call | undefined
  declare media: Media | undefined

  #open: Panel | undefined
  #isEndAsked = false
  #contacts: readonly Contact[] = []
  #devices: readonly Device[] | undefined
  #scene: Scene = { screens: [], people: [], floating: undefined }
  #stage: Size = { width: 0, height: 0 }
  #heard: Call | undefined
  #stops: readonly (() => void)[] = []
  #said = ''
  #clock: ReturnType<typeof setInterval> | undefined
  #focusedBefore: Element | null = null
  readonly #news = new CallNews()
  readonly #resized = new ResizeObserver(() => this.#measure())
  readonly #keyboard = new CallKeyboard({
    isMuted: () => this.media?.view.isMuted === true,
    mute: isMuted => this.media?.mute(isMuted),
    toggleMicrophone: () => this.media?.mute(!this.media.view.isMuted),
    toggleCamera: () => this.media?.coverCamera(!this.media.view.isCameraOff),
    closePanel: () => this.#close(),
    isAsking: () => this.#isEndAsked,
  })

  protected override sources() {
    return [this.me, this.call, this.media]
  }

  override connectedCallback(): void {
    super.connectedCallback()
    this.#focusedBefore = document.activeElement
    this.#keyboard.connect()
    addEventListener('pointerdown', this.#onPointer)
    // The duration is shown by the second.
    this.#clock = setInterval(() => this.call?.startedAtMs !== undefined && this.requestUpdate(), 1_000)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.#keyboard.disconnect()
    this.#resized.disconnect()
    removeEventListener('pointerdown', this.#onPointer)
    clearInterval(this.#clock)
    this.#hear(undefined)
    const before = this.#focusedBefore
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
  }

  protected override willUpdate(): void {
    super.willUpdate()
    const { call, me, media } = this
    if (this.isConnected) this.#hear(call)
    if (call === undefined) return
    const view = media?.view ?? NO_MEDIA
    this.#scene = sceneOf(call, view, me?.userId)
    const news = this.#news.of(call, view, me?.userId)
    if (news.length > 0) this.#said = news.join(' ')
    const hasOther = call.sealedFor.some(one => one.userId === me?.userId && one.deviceId !== me.deviceId)
    if (hasOther && this.#devices === undefined) void this.#loadDevices()
  }

  protected override render(): View {
    const { call, me } = this
    if (call === undefined || me === undefined) return nothing
    return html`<section class="call" aria-labelledby="title">
      <div class="page">
        ${this.#headView(call)}
        <div class="middle">
          ${stageView(this.#scene, this.#stage, this.media?.view.isSoundOn !== false)}
          <div class="notes">${this.#notesView(call)}</div>
        </div>
        <div class="foot">${controlsView(this.media, this.#controls(call))}</div>
      </div>
      <p class="hidden" role="log" aria-live="polite">${this.#said}</p>
      ${this.#endView(call)}
    </section>`
  }

  protected override updated(_: PropertyValues): void {
    const middle = this.renderRoot.querySelector('.middle')
    if (middle === null) return
    this.#resized.observe(middle)
    this.#measure()
    const dialog = this.renderRoot.querySelector('dialog')
    if (this.#isEndAsked && dialog?.open === false) dialog.showModal()
    playTiles(this.renderRoot, this.#scene, () => this.media?.playSound(false))
  }

  /** The grid goes by the stage's size, which is known once the page has one. */
  #measure(): void {
    const middle = this.renderRoot.querySelector('.middle')
    const [width, height] = [middle?.clientWidth ?? 0, middle?.clientHeight ?? 0]
    if (width === this.#stage.width && height === this.#stage.height) return
    this.#stage = { width, height }
    this.requestUpdate()
  }

  #hear(call: Call | undefined): void {
    if (call === this.#heard) return
    for (const stop of this.#stops) stop()
    this.#heard = call
    this.#open = undefined
    this.#isEndAsked = false
    this.#stops = []
    if (call === undefined) return
    const { refusal } = openQuestionsOf(call)
    this.#stops = [
      call.on('key-asked', () => this.requestUpdate()),
      call.on('error', error => this.#onError(call, error)),
      call.on('ended', ({ reason }) => this.say('left', { callId: call.callId, reason })),
    ]
    if (hasCode(refusal, 'OWN_DEVICE_IN_SET')) this.#onError(call, refusal)
    void this.updateComplete.then(() => this.#focusTitle())
  }

  #focusTitle(): void {
    this.renderRoot.querySelector<HTMLElement>('#title')?.focus({ preventScroll: true })
  }

  #putAway(call: Call, ask: KeyAsk): void {
    openQuestionsOf(call).putAway(ask)
    this.requestUpdate()
  }

  /** The next key is taken once the person knows the device. */
  #onError(call: Call, error: CallsignError): void {
    if (hasCode(error, 'OWN_DEVICE_IN_SET')) {
      const accept = () => call.acceptDevice(String(error.members.name))
      this.question = new Question(sentenceOf(error), () => this.act('accept-device', accept))
    } else if (!hasCode(error, 'OFFLINE')) this.failure = sentenceOf(error, id => nameIn(this.me, id))
    this.requestUpdate()
  }

  #headView(call: Call): TemplateResult {
    const { me } = this
    const present = call.participants.filter(({ state }) => state === 'joined').length
    const { startedAtMs } = call
    return html`<header class="head">
      <div class="grow">
        <h2 id="title" tabindex="-1" dir="auto">${titleOf(call, me?.userId)}</h2>
        <p class="status quiet"><span role="status">${statusOf(call, me?.userId)}</span>${
          startedAtMs === undefined || me === undefined || call.state !== 'active'
            ? nothing
            : html`<span role="timer" aria-live="off">, ${durationText((me.nowMs() - startedAtMs) / 1000)}</span>`
        }</p>
      </div>
      ${call.fingerprint === undefined ? nothing : this.#keyMenu(call, call.fingerprint)}
      ${this.#menuView(
        'people',
        'call-who-is-here',
        html`<span>${present} <span class="unit">${word(present === 1 ? 'call-person' : 'call-people')}</span></span>`,
        peopleView(call, this.#contacts, {
          userId: me?.userId,
          doing: this.doing,
          remove: userId => void this.act('remove', () => call.remove(userId)),
          invite: userId => void this.act('invite', () => call.invite([userId])),
        }),
      )}
    </header>`
  }

  #keyMenu(call: Call, fingerprint: string): View {
    const { me } = this
    if (me === undefined) return nothing
    const label = html`<span class="unit">${word('call-encrypted')}<span class="inline">: ${word('call-same-digits')}
      <b aria-hidden="true">${fingerprint}</b></span></span>`
    return this.#menuView('key', 'call-encrypted', label, keyView(call, me, this.#devices ?? []))
  }

  /** A button of the head, and what it opens. */
  #menuView(panel: Panel, title: Word, label: TemplateResult, content: TemplateResult): TemplateResult {
    const isOpen = this.#open === panel
    return html`<div class="menu">
      <button class="pill opener ${panel}" title=${word(title)} aria-expanded=${isOpen} aria-controls="panel-${panel}"
        @click=${() => this.#toggle(panel)}>${iconView(PANEL_ICONS[panel])} ${label}</button>
      <div class="panel high" id="panel-${panel}" role="group" aria-label=${word(title)} ?hidden=${!isOpen}>${content}</div>
    </div>`
  }

  #notesView(call: Call): TemplateResult {
    const isKeyless = call.state === 'keyless'
    const connection = this.me?.connection
    return html`<div class="pills" aria-live="polite">
        ${notesOf(this.media?.view ?? NO_MEDIA, connection).map(({ isBad, text }) => html`<p class="note ${isBad ? 'bad' : ''}">${text}</p>`)}
      </div>
      ${this.outcomeView()}
      ${repeat(
        openQuestionsOf(call).asks,
        ({ deviceId }) => deviceId,
        ask => this.#askView(call, ask),
      )}
      ${
        isKeyless
          ? html`<p class="card"><button class="main" ?disabled=${this.doing.has('rejoin')}
            @click=${() => this.act('rejoin', () => this.me?.join(call.callId))}>${word('call-ask-again')}</button></p>`
          : nothing
      }`
  }

  /** A device that asks for the key and had not joined: a server could have made it up. */
  #askView(call: Call, ask: KeyAsk): TemplateResult {
    const member = call.participants.find(one => one.userId === ask.userId)
    const isOwn = ask.userId === this.me?.userId
    const name = member?.name ?? ask.displayName
    const grant = async () => {
      this.#putAway(call, ask)
      await call.grantKey(ask)
      this.#said = word('call-key-given')
    }
    return html`<div class="card attention" role="alert">
      <p>${isOwn ? word('call-own-device-asks') : word('call-device-asks', name)}</p>
      <p class="row"><button class="main" ?disabled=${this.doing.has('grant')}
        @click=${() => this.act('grant', grant)}>${word('call-give-key')}</button>
        <button @click=${() => this.#putAway(call, ask)}>${word('call-refuse-key')}</button></p>
    </div>`
  }

  #controls(call: Call) {
    return {
      isRinging: call.state === 'ringing',
      isEnding: this.doing.has('end'),
      canEnd: call.state !== 'ringing' && (call.isHost || call.participants.length === 2),
      canRenewKey: call.isHost && call.state === 'active',
      open: this.#open,
      toggle: (panel: Panel) => this.#toggle(panel),
      shareScreen: (isOn: boolean) => void this.act('screen', () => this.media?.shareScreen(isOn)),
      leave: () => void this.act('end', () => call.leave()),
      cancel: () => void this.act('end', () => call.end()),
      askEnd: () => {
        this.#open = undefined
        this.#isEndAsked = true
        this.requestUpdate()
      },
      renewKey: () => {
        this.#close()
        void this.act('new-key', () => call.renewKey())
      },
    }
  }

  #endView(call: Call): View {
    if (!this.#isEndAsked) return nothing
    const stay = () => this.renderRoot.querySelector('dialog')?.close()
    const end = () => {
      stay()
      void this.act('end', () => call.end())
    }
    const onClose = () => {
      this.#isEndAsked = false
      this.requestUpdate()
      this.#openerOf('more')?.focus()
    }
    return html`<dialog class="card" aria-labelledby="end-title" @close=${onClose}>
      <h3 id="end-title">${word('call-end-question')}</h3>
      <p class="quiet">${word('call-end-explained')}</p>
      <p class="row"><button class="out" @click=${end}>${word('call-end-for-all')}</button>
        <button autofocus @click=${stay}>${word('call-stay-in-call')}</button></p>
    </dialog>`
  }

  #toggle(panel: Panel): void {
    this.#open = this.#open === panel ? undefined : panel
    if (this.#open === 'people') void this.#loadContacts()
    this.requestUpdate()
  }

  /** A keyboard user inside is not to be sent to the top of the page. */
  #close(): void {
    const panel = this.#open
    if (panel === undefined) return
    const focused = this.renderRoot instanceof ShadowRoot ? this.renderRoot.activeElement : null
    const isInside = focused?.closest('.panel') !== null
    this.#open = undefined
    this.requestUpdate()
    if (isInside) this.#openerOf(panel)?.focus()
  }

  #openerOf(panel: Panel): HTMLElement | null {
    return this.renderRoot.querySelector(`.opener[aria-controls="panel-${panel}"]`)
  }

  /** A panel lies over the stage: it closes as menus do. */
  readonly #onPointer = (event: PointerEvent): void => {
    const isInMenu = event.composedPath().some(one => one instanceof Element && one.matches('.menu'))
    if (!isInMenu) this.#close()
  }

  async #loadContacts(): Promise<void> {
    await this.act('contacts', async () => {
      this.#contacts = (await this.me?.contacts.all()) ?? []
    })
  }

  async #loadDevices(): Promise<void> {
    this.#devices = []
    // The digits hold without the names.
    const { items } = (await this.me?.devices.list().catch(() => undefined)) ?? { items: [] }
    this.#devices = items
    this.requestUpdate()
  }
}

const PANEL_ICONS: Readonly<Record<Panel, Icon>> = {
  key: 'shield',
  people: 'people',
  devices: 'devices',
  more: 'more',
}

declare global {
  interface HTMLElementTagNameMap {
    'callsign-call': CallsignCall
  }
}

if (customElements.get('callsign-call') === undefined) customElements.define('callsign-call', CallsignCall)
