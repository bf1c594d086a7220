/**
 * `<callsign-notices>`: events that the user has not asked for: errors, news of keys, new contacts and devices, ends of
 * calls. Shows what other elements of the page say, too, and what the app gives to `tell`.
 */

import { css, html, nothing } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Call, CallEnding, Callsign, CallsignError } from '../../app/app.ts'
import { hasCode } from '../../app/app.ts'
import type { View } from '../element.ts'
import { nameIn, programName, shownName } from '../names.ts'
import { questionFor } from '../question.ts'
import { endingOf, isOfAnotherLog, ringEndingOf } from '../sentence.ts'
import { SHARED_STYLE } from '../style.ts'
import { whenText } from '../when.ts'
import { word } from '../words.ts'
import { HOME_STYLE, HomeElement, isDevelopment, type Notice } from './home-element.ts'
import { newsOf } from './news.ts'

interface Shown extends Notice {
  readonly id: number
  readonly action?:
    | {
        readonly label: string
        readonly run: () => Promise<unknown>
        /** The session that the notice is about. */
        readonly sessionId?: string
      }
    | undefined
}

const STYLE = css`
  :host {
    position: sticky;
    inset-block-start: 0.5rem;
    z-index: 20;
  }

  .notice {
    display: flex;
    align-items: center;
    gap: 0.5rem;
    padding: 0.25rem 0.25rem 0.25rem 0.9rem;
    margin: 0 0 0.5rem;
    background: var(--raised);
    border: 1px solid var(--line);
    border-inline-start: 4px solid var(--good);
    border-radius: 8px;
    color: var(--ink);
  }

  .notice.bad {
    border-inline-start-color: var(--bad);
  }

  .text {
    padding: 0.4rem 0;
    overflow-wrap: anywhere;
  }

  .text button {
    margin-top: 0.4rem;
  }
`

export class CallsignNotices extends HomeElement {
  static override styles = [SHARED_STYLE, HOME_STYLE, STYLE]

  #notices: readonly Shown[] = []
  #count = 0
  /** The calls that are listened to, and how that ends. */
  readonly #heard = new Map<Call, () => void>()
  /** Ids of the user's devices that wait to be approved. */
  #waiting: readonly string[] = []
  readonly #onNotice = (event: Event) => {
    const { kind, text } = (event as CustomEvent<Notice>).detail
    this.show(kind, text)
  }

  override connectedCallback(): void {
    super.connectedCallback()
    document.addEventListener('callsign-notice', this.#onNotice)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    document.removeEventListener('callsign-notice', this.#onNotice)
  }

  /** Shows a sentence of the app. Good ones go by themselves, the newest four stay. */
  show(kind: Notice['kind'], text: string, action?: Shown['action']): void {
    this.#count += 1
    const id = this.#count
    const others = this.#notices.filter(notice => notice.text !== text)
    this.#notices = [...others, { id, kind, text, action }].slice(-NOTICES_MAX)
    this.requestUpdate()
    if (kind === 'good') setTimeout(() => this.#dismiss(id), GOOD_NOTICE_MS)
  }

  /** Says why something failed. Questions of the SDK are put to the user, who may go on: then `again` runs. */
  tell(error: unknown, again: () => Promise<void> = async () => {}): void {
    const retry = () => again().catch(reason => this.tell(reason, again))
    this.question = questionFor(error, this.me, retry)
    if (this.question !== undefined) return this.requestUpdate()
    const text = this.sentenceOf(error)
    // Only a developer's page deletes keys by a click. Apps in a shell are pages of localhost, too.
    if (!isDevelopment(this.me)) return this.show('bad', text)
    if (isOfAnotherLog(error)) return this.show('bad', `${text} ${word('notice-new-pins')}`)
    if (!hasCode(error, 'DEVICE_KEYS_LOST', 'STORAGE_CORRUPT')) return this.show('bad', text)
    this.show('bad', text, { label: word('notice-forget'), run: forgetEverything })
  }

  protected override listen(me: Callsign): readonly (() => void)[] {
    const names = (userId: string) => nameIn(me, userId)
    this.#hearCalls(me)
    return [
      () => this.#hearNoCall(),
      me.on('changed', () => {
        this.#hearCalls(me)
        void this.#hearDevices(me)
      }),
      me.on('error', error => this.#onError(error)),
      me.on('signed-out', error => this.tell(error)),
      me.on('keys', event => {
        const news = newsOf(event, me.userId, names)
        if (news !== undefined) this.show('bad', news)
      }),
      me.on('contact_added', ({ displayName }) => this.show('good', word('add-are-contacts', displayName))),
      me.on('device_removed', ({ name }) =>
        this.show('good', word('notice-device-removed', shownName(name))),
      ),
      me.on('device_push_lost', ({ name }) => this.show('bad', word('notice-push-lost', shownName(name)))),
      me.on('session_started', ({ sessionId, userAgent, network }) => {
        const run = () => me.sessions.end(sessionId)
        const place = network === undefined ? '' : ` (${network})`
        const text = word('notice-session', programName(userAgent) + place)
        this.show('bad', text, { label: word('notice-session-end'), run, sessionId })
      }),
      me.on('session_ending', ({ endsAt }) =>
        this.show('bad', word('notice-session-ends', whenText(new Date(endsAt)))),
      ),
      me.on('sign_in_ended', ({ outcome }) => {
        if (outcome === 'replaced') return
        this.show(outcome === 'approved' ? 'good' : 'bad', word(`notice-sign-in-${outcome}`))
      }),
      me.on('login_method_lost', ({ value }) => this.show('bad', word('notice-method-lost', value))),
    ]
  }

  protected override forget(): void {
    super.forget()
    this.#notices = []
    this.#waiting = []
  }

  protected override render(): View {
    return html`<div role="status" aria-live="polite">${repeat(
      this.#notices,
      ({ id }) => id,
      ({ id, kind, text, action }) => html`<div class="notice ${kind}">
        <span class="grow text">${text}${
          action === undefined
            ? nothing
            : html`<br><button ?disabled=${this.doing.has(`${id}`)}
                @click=${() => this.act(`${id}`, () => action.run().then(() => this.#dismiss(id)))}>${action.label}</button>`
        }</span>
        <button class="plain" aria-label=${word('notice-close')} @click=${() => this.#dismiss(id)}>×</button></div>`,
    )}</div>${this.outcomeView()}`
  }

  /** The page says by other means that there is no connection, and that this device may do little. */
  #onError(error: CallsignError): void {
    if (!hasCode(error, 'DEVICE_NOT_LISTED', 'NO_ANSWER', 'OFFLINE')) this.tell(error)
  }

  #hearCalls(me: Callsign): void {
    for (const call of me.calls) {
      if (!this.#heard.has(call))
        this.#heard.set(
          call,
          call.on('ended', ({ reason }) => this.#onEnded(call, reason)),
        )
    }
  }

  #hearNoCall(): void {
    for (const stop of this.#heard.values()) stop()
    this.#heard.clear()
  }

  /** A device that is approved or removed has answered whether its sign-in was the user's. */
  async #hearDevices(me: Callsign): Promise<void> {
    if (me.userId === undefined) return
    const { listState } = me.devices
    const before = this.#waiting
    this.#waiting = listState?.kind === 'listed' ? listState.waiting.map(({ deviceId }) => deviceId) : []
    const answered = before.filter(deviceId => !this.#waiting.includes(deviceId))
    // A device that was started over is listed no more: then an intruder may have done so, and the notice stays.
    if (answered.length === 0 || listState?.kind !== 'listed') return
    const sessions = await me.sessions.list().catch(() => undefined)
    if (sessions === undefined) return
    for (const { id, action } of this.#notices) {
      if (action?.sessionId === undefined) continue
      const session = sessions.find(one => one.id === action.sessionId)
      if (session === undefined || answered.includes(session.device?.deviceId ?? '')) this.#dismiss(id)
    }
  }

  #onEnded(call: Call, reason: CallEnding): void {
    this.#heard.get(call)?.()
    this.#heard.delete(call)
    // A call that only rang here has no host yet.
    const hasRung = call.hostUserId === undefined
    const text = hasRung ? ringEndingOf(reason, call.caller.name) : endingOf(reason)
    if (text !== undefined) this.show('good', text)
  }

  #dismiss(id: number): void {
    this.#notices = this.#notices.filter(notice => notice.id !== id)
    this.requestUpdate()
  }
}

/** Deletes what this origin keeps, and begins anew: the device's keys are of no use without its server. */
async function forgetEverything(): Promise<void> {
  for (const storage of [localStorage, sessionStorage]) storage.clear()
  const databases = await indexedDB.databases()
  await Promise.all(databases.map(({ name = '' }) => deleted(name)))
  location.reload()
}

function deleted(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
  })
}

const NOTICES_MAX = 4
const GOOD_NOTICE_MS = 8_000

if (customElements.get('callsign-notices') === undefined)
  customElements.define('callsign-notices', CallsignNotices)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-notices': CallsignNotices
  }
}
