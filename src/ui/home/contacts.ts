/**
 * `<callsign-contacts>`: the user's contacts with buttons that call them, requests, and ways to more contacts. Fires `call`
 * with `{ contacts, video }`.
 */

import { css, html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Callsign, CallsignEvents, Contact, FriendRequest } from '../../app/app.ts'
import type { View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { word } from '../words.ts'
import './add-contact.ts'
import { HOME_STYLE, HomeElement } from './home-element.ts'

/** The detail of `call`. */
export interface CallWish {
  readonly contacts: readonly Contact[]
  readonly video: boolean
}

/** Lies open below a contact. */
interface Open {
  readonly userId: string
  readonly kind: 'menu' | 'rename' | 'code' | 'remove'
  readonly code?: string
}

const STYLE = css`
  callsign-add-contact {
    margin-top: 1rem;
  }

  .contact .name {
    flex: 1 1 6rem;
    min-width: 0;
  }

  .own-name {
    display: block;
    font-size: 0.9em;
  }

  .more {
    flex-basis: 100%;
  }

  .buttons {
    display: flex;
    gap: 0.5rem;
  }
`

export class CallsignContacts extends HomeElement {
  static override properties = { page: { attribute: false } }
  static override styles = [SHARED_STYLE, HOME_STYLE, STYLE]

  /** As of `<callsign-add-contact>`. */
  declare page: string | undefined

  /** Undefined until they were read. */
  #contacts: readonly Contact[] | undefined
  #requests: readonly FriendRequest[] = []
  #asked: readonly FriendRequest[] = []
  #marked: ReadonlySet<string> = new Set()
  #open: Open | undefined
  #clock: ReturnType<typeof setInterval> | undefined

  override connectedCallback(): void {
    super.connectedCallback()
    // No event says that a contact has changed their device list.
    this.#clock = setInterval(() => void this.renewCodes(), RENEW_MS)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.#clock)
  }

  protected override get loadsAt(): readonly (keyof CallsignEvents)[] {
    return [
      'friend_request',
      'friend_request_cancelled',
      'contact_added',
      'contact_changed',
      'contact_removed',
    ]
  }

  protected override async load({ contacts: list }: Callsign): Promise<void> {
    const [contacts, requests, asked] = await Promise.all([
      list.all(),
      list.requests('incoming'),
      list.requests('outgoing'),
    ])
    this.#contacts = contacts
    this.#requests = requests.items
    this.#asked = asked.items
    const isContact = (id: string) => contacts.some(({ userId }) => userId === id)
    this.#marked = new Set([...this.#marked].filter(isContact))
  }

  protected override clear(): void {
    this.#contacts = undefined
    this.#requests = []
    this.#asked = []
    this.#marked = new Set()
    this.#open = undefined
  }

  protected override async renewCodes(): Promise<void> {
    await super.renewCodes()
    const open = this.#open
    if (open?.kind !== 'code') return
    const { userId } = open
    const code = await this.me?.contacts.comparisonCode(userId).catch(() => undefined)
    // One that can't be read is not to be compared.
    if (this.#open === open) this.#show(code === undefined ? { userId, kind: 'menu' } : { ...open, code })
  }

  protected override render(): View {
    const { me } = this
    const contacts = this.#contacts
    // A device that waits to be approved reads none.
    if (me?.userId === undefined || me.restriction !== undefined || contacts === undefined) return nothing
    return html`<div aria-live="polite">
        ${repeat(
          this.#requests,
          ({ requestId }) => requestId,
          request => this.#requestView(request),
        )}
        ${repeat(
          this.#asked,
          ({ requestId }) => requestId,
          request => this.#askedView(request),
        )}
      </div>
      <section class="card"><h2>${word('contacts-title')}</h2>
        ${
          contacts.length === 0
            ? html`<p class="quiet">${word('contacts-none')}</p>`
            : html`<ul class="list">${repeat(
                contacts,
                ({ userId }) => userId,
                contact => this.#contactView(me, contact, contacts.length > 1),
              )}</ul>`
        }
        ${this.#marked.size < 2 ? nothing : this.#severalView(contacts)}
        ${this.outcomeView()}</section>
      <callsign-add-contact .me=${me} .page=${this.page} @asked=${() => this.reload()}
        .first=${contacts.length + this.#requests.length + this.#asked.length === 0}></callsign-add-contact>`
  }

  #requestView({ user, message }: FriendRequest): TemplateResult {
    const isWaiting = this.doing.has('answer')
    const act = (verb: 'accept' | 'decline') =>
      this.act('answer', () => this.#change(this.me!.contacts[verb](user.userId)))
    return html`<section class="card attention request">
      <p><strong dir="auto">${user.displayName}</strong> ${word('contacts-wants')}</p>
      ${message === undefined ? nothing : html`<p dir="auto">${message}</p>`}
      <p class="row">
        <button class="main" ?disabled=${isWaiting} aria-label=${word('contacts-accept-label', user.displayName)}
          @click=${() => act('accept')}>${word('contacts-accept')}</button>
        <button ?disabled=${isWaiting} aria-label=${word('contacts-decline-label', user.displayName)}
          @click=${() => act('decline')}>${word('contacts-decline')}</button>
      </p></section>`
  }

  #askedView({ user }: FriendRequest): TemplateResult {
    return html`<section class="card row asked">
      <p class="grow"><strong dir="auto">${user.displayName}</strong> ${word('contacts-asked')}</p>
      <button class="plain" ?disabled=${this.doing.has('cancel')}
        @click=${() => this.act('cancel', () => this.#change(this.me!.contacts.cancel(user.userId)))}>${word('contacts-take-back')}</button>
    </section>`
  }

  #contactView(me: Callsign, contact: Contact, canMark: boolean): TemplateResult {
    const { userId, displayName, alias } = contact
    const name = me.contacts.nameOf(contact)
    const open = this.#open?.userId === userId ? this.#open : undefined
    return html`<li class="contact">
      ${
        canMark
          ? html`<input type="checkbox" aria-label=${word('contacts-mark', name)}
              .checked=${this.#marked.has(userId)} @change=${() => this.#mark(userId)}>`
          : nothing
      }
      <span class="name" dir="auto">${name}${
        alias === undefined ? nothing : html`<span class="quiet own-name" dir="auto">${displayName}</span>`
      }</span>
      <span class="buttons">${this.#callButtons([contact], name)}
        <button class="plain" aria-label=${word('contacts-more', name)} aria-expanded=${open !== undefined}
          @click=${() => this.#show(open === undefined ? { userId, kind: 'menu' } : undefined)}>⋯</button></span>
      ${open === undefined ? nothing : this.#moreView(me, contact, open)}
    </li>`
  }

  #moreView(me: Callsign, contact: Contact, open: Open): TemplateResult {
    const { userId } = contact
    const showCode = async () => {
      const code = await me.contacts.comparisonCode(userId)
      this.#show({ userId, kind: 'code', code })
    }
    return html`<div class="more">
      <p class="row">
        <button @click=${() => this.#show({ userId, kind: 'rename' })}>${word('contacts-rename')}</button>
        <button ?disabled=${this.doing.has('code')} @click=${() => this.act('code', showCode)}>${word('compare-a-code')}</button>
        <button class="plain bad" @click=${() => this.#show({ userId, kind: 'remove' })}>${word('contacts-remove')}</button>
      </p>
      ${this.#openView(me, contact, open)}
    </div>`
  }

  #openView(me: Callsign, contact: Contact, { kind, code }: Open): View {
    const { userId, displayName, alias = '' } = contact
    const name = me.contacts.nameOf(contact)
    const close = () => this.#show(undefined)
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const alias = String(new FormData(event.currentTarget as HTMLFormElement).get('name'))
      void this.act('rename', () => this.#change(me.contacts.rename(userId, alias)).then(close))
    }
    switch (kind) {
      case 'menu':
        return nothing
      case 'rename':
        return html`<form @submit=${onSubmit}>
          <label><span>${word('contacts-name-for')} <bdi>${displayName}</bdi></span>
            <input name="name" maxlength="200" dir="auto" .value=${alias} placeholder=${displayName}></label>
          <p class="row"><button class="main" ?disabled=${this.doing.has('rename')}>${word('contacts-save')}</button>
            <button type="button" class="plain" @click=${close}>${word('not-now')}</button></p></form>`
      case 'code':
        return html`<p class="quiet">${word('contacts-compare')}</p>
          <p class="digits" role="group" aria-label=${word('contacts-code-with', name)}>${code}</p>`
      case 'remove':
        return html`<div class="question" role="group" aria-label=${word('contacts-remove-ask', name)}>
          <p>${word('contacts-remove-ask', name)}</p>
          <p class="row"><button class="bad" ?disabled=${this.doing.has('remove')}
              @click=${() => this.act('remove', () => this.#remove(userId, name))}>${word('contacts-remove-yes')}</button>
            <button @click=${close}>${word('not-now')}</button></p></div>`
    }
  }

  #severalView(contacts: readonly Contact[]): TemplateResult {
    const marked = contacts.filter(({ userId }) => this.#marked.has(userId))
    return html`<p class="row several"><span class="quiet">${word('contacts-marked', marked.length)}</span>
      ${this.#callButtons(marked, word('contacts-marked', marked.length))}</p>`
  }

  #callButtons(contacts: readonly Contact[], name: string): TemplateResult {
    const isWaiting = this.me?.connection !== 'connected'
    const call = (video: boolean) => this.say<CallWish>('call', { contacts, video })
    return html`<button class="main" ?disabled=${isWaiting} aria-label=${word('contacts-video-label', name)}
        @click=${() => call(true)}>${word('contacts-video')}</button>
      <button ?disabled=${isWaiting} aria-label=${word('contacts-audio-label', name)}
        @click=${() => call(false)}>${word('contacts-audio')}</button>`
  }

  /** The focused button may be gone: the part that opens takes the keyboard. */
  #show(open: Open | undefined): void {
    this.#open = open
    this.requestUpdate()
    if (open?.kind === 'rename') void this.focusOn('.more input')
    if (open?.kind === 'remove') void this.focusOn('.more .question button')
  }

  #mark(userId: string): void {
    const marked = new Set(this.#marked)
    if (!marked.delete(userId)) marked.add(userId)
    this.#marked = marked
    this.requestUpdate()
  }

  async #remove(userId: string, name: string): Promise<void> {
    await this.#change(this.me!.contacts.remove(userId))
    this.#show(undefined)
    this.note(word('contacts-removed', name))
    await this.focusOn('h2')
  }

  async #change(done: Promise<unknown>): Promise<void> {
    try {
      await done
    } finally {
      // Also when it has been closed: then it is not to be shown any more.
      await this.reload()
    }
  }
}

const RENEW_MS = 30_000

if (customElements.get('callsign-contacts') === undefined)
  customElements.define('callsign-contacts', CallsignContacts)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-contacts': CallsignContacts
  }
}
