/** The base of the elements around a call: reads what it shows from the server, at events that change it. */

import { css, html, nothing } from 'lit'
import { type Callsign, type CallsignError, type CallsignEvents, hasCode } from '../../app/app.ts'
import { DEVELOPMENT_ORIGIN } from '../../log/development-origin.ts'
import { CallsignElement, type View } from '../element.ts'
import { nameIn } from '../names.ts'
import { sentenceOf } from '../sentence.ts'
import { word } from '../words.ts'

/** By which address people have signed in on this page: the server names addresses to an approved device alone. */
export const addresses = new WeakMap<Callsign, string>()

/** A sentence of an element for the page: `<callsign-notices>` shows it. */
export interface Notice {
  readonly kind: 'good' | 'bad'
  readonly text: string
}

export abstract class HomeElement extends CallsignElement {
  #followed: Callsign | undefined
  #stops: readonly (() => void)[] = []
  /** The user whose data was read, and this device's restriction then. */
  #reader: string | undefined
  /** Was signed in last. */
  #user: string | undefined
  #loading: Promise<void> | undefined
  #isStale = false

  /** Events after which `load` runs. It runs after each connection, too. */
  protected get loadsAt(): readonly (keyof CallsignEvents)[] {
    return []
  }

  /** Reads what the element shows. */
  protected async load(_me: Callsign): Promise<void> {}

  /** Listens to more events. Returns the functions that end it. */
  protected listen(_me: Callsign): readonly (() => void)[] {
    return []
  }

  /** Another user is signed in: what the last one was told or asked is not theirs. */
  protected forget(): void {
    this.failure = undefined
    this.question = undefined
  }

  /** Another user, or none, is signed in. */
  protected clear(): void {}

  protected override willUpdate(): void {
    super.willUpdate()
    this.#follow(this.isConnected ? this.me : undefined)
    const { me } = this
    const reader = me?.userId === undefined ? undefined : `${me.userId} ${me.restriction}`
    if (reader === this.#reader) return
    if (reader?.split(' ')[0] !== this.#reader?.split(' ')[0]) this.clear()
    const userId = me?.userId
    if (userId !== undefined && userId !== this.#user) {
      if (this.#user !== undefined) this.forget()
      this.#user = userId
    }
    this.#reader = reader
    if (reader !== undefined) void this.reload()
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.#follow(undefined)
    this.#reader = undefined
  }

  /** Reads once more, also where a read is under way. The page says failures of the network. */
  protected reload(): Promise<void> {
    this.#isStale = true
    this.#loading ??= this.#loadAll().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  protected sentenceOf(error: unknown): string {
    return sentenceOf(error, userId => nameIn(this.me, userId))
  }

  protected note(text: string, kind: Notice['kind'] = 'good'): void {
    this.say<Notice>('callsign-notice', { kind, text })
  }

  /** Moves the keyboard to an element of this one, once it is drawn. */
  protected async focusOn(selector: string): Promise<void> {
    await this.updateComplete
    const found = this.renderRoot.querySelector<HTMLElement>(selector)
    if (found?.matches('h2, h3')) found.tabIndex = -1
    found?.focus()
  }

  async #loadAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      const { me } = this
      if (me?.userId === undefined) return
      await this.load(me).catch((error: CallsignError) => {
        if (hasCode(error, 'DEVICE_NOT_LISTED', 'SIGNED_OUT', 'NO_ANSWER', 'OFFLINE')) return
        this.failure = this.sentenceOf(error)
      })
      this.requestUpdate()
    }
  }

  #follow(me: Callsign | undefined): void {
    if (me === this.#followed) return
    for (const stop of this.#stops) stop()
    this.#followed = me
    if (me === undefined) {
      this.#stops = []
      return
    }
    const reload = () => void this.reload()
    const onConnection = () => {
      if (me.connection === 'connected') reload()
    }
    this.#stops = [
      me.on('connection', onConnection),
      ...this.loadsAt.map(name => me.on(name, reload)),
      ...this.listen(me),
    ]
  }
}

/** Where a development server shows the codes that it sends. */
export function sentCodesView(me: Callsign | undefined): View {
  if (me === undefined || !isDevelopment(me)) return nothing
  const { href } = new URL('/dev', me.server)
  return html`<p class="quiet">${word('sign-in-code-shown')} <a href=${href} target="_blank">${href}</a></p>`
}

/** By the pins, which no server says: one in production can't pass for one in development. */
export function isDevelopment(me: Callsign | undefined): boolean {
  return me !== undefined && 'vkey' in me.pins && me.pins.vkey.startsWith(`${DEVELOPMENT_ORIGIN}+`)
}

/** The element that has the keyboard, within all shadow roots. */
export function focusedElement(): HTMLElement | undefined {
  let { activeElement } = document
  while (activeElement?.shadowRoot?.activeElement) activeElement = activeElement.shadowRoot.activeElement
  return activeElement instanceof HTMLElement ? activeElement : undefined
}

export const HOME_STYLE = css`
  form,
  label {
    display: grid;
    gap: 0.5rem;
    min-width: 0;
  }

  label {
    gap: 0.25rem;
  }

  input:not([type="checkbox"]) {
    width: 100%;
    min-width: 0;
  }

  input[type="checkbox"] {
    flex: none;
    width: 44px;
    margin: 0;
    accent-color: var(--accent);
  }

  .wide {
    width: 100%;
  }

  .or {
    margin-top: 0.75rem;
  }

  button.bad:not(.plain) {
    background: var(--bad);
    border-color: var(--bad);
    color: var(--ground);
  }

  button.plain {
    color: var(--accent);
  }

  button.plain.bad {
    color: var(--bad);
  }

  summary {
    display: flex;
    align-items: center;
    width: fit-content;
    min-width: 44px;
  }

  summary.bad {
    color: var(--bad);
  }

  summary:not(.button, .bad)::before {
    content: "▸";
    margin-inline-end: 0.5rem;
    color: var(--soft);
  }

  [open] > summary:not(.button, .bad)::before {
    content: "▾";
  }

  summary::-webkit-details-marker {
    display: none;
  }

  .name,
  strong,
  h2,
  h3 {
    overflow-wrap: anywhere;
  }

  .facts {
    display: block;
    font-size: 0.9em;
    overflow-wrap: anywhere;
  }

  h3 {
    margin-top: 1.25rem;
  }

  div:has(> .card) ~ .card {
    margin-top: 1rem;
  }

  .digits {
    font-size: 1.3em;
    padding: 0.5rem 0;
  }

  .list > li {
    border-top: 1px solid var(--line);
  }

  .list > li:first-child {
    border-top: 0;
  }

  details {
    min-width: 0;
  }

  .question {
    padding: 0.25rem 0 0.5rem;
  }
`
