/**
 * `<callsign-add-contact>`: the user's own link, to copy, to share and as a QR code; and other people's, opened with the
 * page, pasted or scanned. A person is shown before they are asked.
 */

import { css, html, nothing, type TemplateResult } from 'lit'
import { type Callsign, hasCode, type Opened } from '../../app/app.ts'
import type { View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { type Word, word } from '../words.ts'
import { HOME_STYLE, HomeElement } from './home-element.ts'
import { qrView } from './qr.ts'
import { CameraScan, readPicture } from './scanner.ts'

const STYLE = css`
  .qr {
    display: block;
    width: min(16rem, 100%);
    margin: 0.5rem auto;
    background: #fff;
    border-radius: 8px;
  }

  .link {
    font-family: ui-monospace, Menlo, Consolas, monospace;
    font-size: 0.85em;
    margin-bottom: 0.5rem;
  }

  video {
    width: 100%;
    border-radius: 8px;
    background: #000;
  }

  label.button {
    display: inline-flex;
    align-items: center;
    position: relative;
  }

  label.button:focus-within {
    outline: 2px solid var(--accent);
    outline-offset: 2px;
  }

  label.button input {
    position: absolute;
    inset: 0;
    opacity: 0;
    padding: 0;
    cursor: pointer;
  }
`

export class CallsignAddContact extends HomeElement {
  static override properties = { page: { attribute: false }, first: { attribute: false } }
  static override styles = [SHARED_STYLE, HOME_STYLE, STYLE]

  /** Where links of this user lead; left out: this page. `server`: the server's own page, which phones open in their app. */
  declare page: string | undefined
  /** The user has no contact yet: the link is made and shown at once. */
  declare first: boolean | undefined

  #link: string | undefined
  #opened: Opened | undefined
  #scan: CameraScan | undefined
  #listState: unknown
  readonly #onHashChange = () => void this.#openPage()

  override connectedCallback(): void {
    super.connectedCallback()
    addEventListener('hashchange', this.#onHashChange)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    removeEventListener('hashchange', this.#onHashChange)
    this.#scan?.close()
  }

  protected override async load(): Promise<void> {
    await this.#openPage()
  }

  protected override clear(): void {
    this.#link = undefined
    this.#opened = undefined
    this.#scan?.close()
  }

  protected override willUpdate(): void {
    super.willUpdate()
    const { me } = this
    if (me?.userId === undefined || me.user === undefined || me.restriction !== undefined) return
    if (this.first === true && this.#link === undefined) void this.act('link', () => this.#makeLink(me))
    // The link names the device list.
    const { listState } = me.devices
    if (this.#link !== undefined && listState !== this.#listState) void this.#makeLink(me).catch(() => {})
    this.#listState = listState
  }

  protected override render(): View {
    const link = this.#link
    return html`<div aria-live="polite">${this.#opened === undefined ? nothing : this.#openedView(this.#opened)}</div>
      <section class="card"><h2>${word('add-title')}</h2>
        ${
          link === undefined
            ? html`<p><button ?disabled=${this.doing.has('link')}
                @click=${() => this.act('link', () => this.#makeLink(this.me!))}>${word('add-make-link')}</button></p>`
            : this.#linkView(link)
        }
        <details><summary>${word('add-others')}</summary>${this.#othersView()}</details>
        ${this.outcomeView()}</section>`
  }

  #linkView(link: string): TemplateResult {
    const copy = async () => {
      await navigator.clipboard.writeText(link)
      this.note(word('add-copied'))
    }
    const share = () =>
      navigator.share({ url: link }).catch(error => {
        // The person has put it away.
        if (error.name !== 'AbortError') throw error
      })
    return html`<p>${word('add-link-means')}</p>
      <label>${word('add-link')}
        <input class="link" readonly dir="ltr" .value=${link} @focus=${selectAll}></label>
      <p class="row">
        <button class="main" @click=${() => this.act('copy', copy)}>${word('add-copy')}</button>
        ${
          'share' in navigator
            ? html`<button @click=${() => this.act('share', share)}>${word('add-share')}</button>`
            : nothing
        }
      </p>
      <details><summary>${word('add-qr')}</summary>${qrView(link, word('add-qr-label'))}</details>`
  }

  /** The ways to open what another person has shared: by the camera, from a picture, or as text. */
  #othersView(): TemplateResult {
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const form = event.currentTarget as HTMLFormElement
      const text = String(new FormData(form).get('link'))
      void this.act('open', async () => {
        await this.#open(text)
        form.reset()
      })
    }
    const onPicture = ({ currentTarget }: Event) => {
      const input = currentTarget as HTMLInputElement
      const [file] = input.files ?? []
      if (file !== undefined) void this.act('picture', () => this.#readPicture(file))
      // The same picture may be chosen again.
      input.value = ''
    }
    const scan = this.#scan
    return html`<p class="row">
        ${
          scan === undefined
            ? html`<button ?disabled=${this.doing.has('scan')}
                @click=${() => this.act('scan', () => this.#scanCode())}>${word('add-scan')}</button>`
            : html`<button @click=${() => scan.close()}>${word('add-scan-stop')}</button>`
        }
        <label class="button">${word('add-picture')}<input type="file" accept="image/*" @change=${onPicture}></label>
      </p>
      ${scan === undefined ? nothing : html`<p class="quiet">${word('add-scan-how')}</p>${scan.video}`}
      <form @submit=${onSubmit}>
        <label>${word('add-text')}
          <input name="link" required dir="ltr" autocapitalize="none" spellcheck="false" placeholder="https://…"></label>
        <button ?disabled=${this.doing.has('open')}>${word('add-open')}</button>
      </form>`
  }

  #openedView(opened: Opened): TemplateResult {
    const name = opened.kind === 'link' ? opened.displayName : opened.userId
    const relation = opened.kind === 'link' ? (opened.relation ?? 'none') : 'user'
    return html`<section class="card attention opened">
      <h2 dir="auto">${name}</h2>
      <p>${word(RELATIONS[relation] ?? 'add-relation-none')}</p>
      <p class="row">
        ${
          relation === 'outgoing'
            ? nothing
            : html`<button class="main" ?disabled=${this.doing.has('ask')}
                @click=${() => this.act('ask', () => this.#ask(opened))}>${word(
                  relation === 'incoming' ? 'add-accept' : 'add-ask',
                  name,
                )}</button>`
        }
        <button class="plain" @click=${() => this.#show(undefined)}>${word(relation === 'outgoing' ? 'add-close' : 'not-now')}</button>
      </p></section>`
  }

  /** A link of before is kept while it is good for a minute yet. */
  async #makeLink(me: Callsign): Promise<void> {
    const key = `callsign.share.${me.userId}`
    const kept = keptLink(key)
    const isGood = Date.parse(kept?.expiresAt ?? '') > me.nowMs() + 60_000
    const made = isGood && kept !== undefined ? kept : await me.request('POST share-token', {})
    if (made !== kept) keepLink(key, made)
    const page = this.page ?? location.origin + location.pathname
    const url = page === 'server' ? made.url : `${page}#c=${made.token}`
    // The SDK says it where the list does not hold.
    const link = await me.contacts.renewLink(url).catch(() => url)
    this.#link = link.replace(/(#.*)#/, '$1&')
    this.requestUpdate()
  }

  /** Opens the link that this page was opened with, once. */
  async #openPage(): Promise<void> {
    const { me } = this
    const { href, pathname, origin } = location
    if (me?.userId === undefined || me.restriction !== undefined || !IS_LINK.test(href)) return
    let isOffline = false
    await this.act('open', () =>
      this.#open(href).catch(error => {
        isOffline = hasCode(error, 'OFFLINE', 'NO_ANSWER')
        throw error
      }),
    )
    // After the next connection it is opened. Another may have come meanwhile.
    if (isOffline || location.href !== href) return
    // Else it would be asked again with each reload.
    history.replaceState(history.state, '', PATH_LINK.test(pathname) ? origin : pathname)
  }

  /** Shows whom a text leads to. Asks nothing of them. */
  async #open(text: string): Promise<void> {
    const me = this.me!
    const opened = await me.contacts.open(text).catch(error => {
      throw hasCode(error, 'SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED')
        ? new Error(word('add-link-old'))
        : error
    })
    const isOwn = opened.kind === 'link' ? opened.relation === 'self' : opened.userId === me.userId
    if (isOwn) throw new Error(word('add-own-link'))
    if (opened.kind === 'link' && opened.relation === 'contact')
      return this.note(word('add-is-contact', opened.displayName))
    this.#show(opened)
    await this.focusOn('.opened h2')
  }

  async #ask(opened: Opened): Promise<void> {
    const reply = await opened.request().catch(error => {
      throw hasCode(error, 'KEYS_REFUSED') ? new Error(word('add-other-person')) : error
    })
    this.#show(undefined)
    const { displayName } = reply.user
    this.note(word(reply.status === 'accepted' ? 'add-are-contacts' : 'add-asked', displayName))
    this.say('asked')
  }

  #show(opened: Opened | undefined): void {
    this.#opened = opened
    this.requestUpdate()
  }

  /** Looks for a code by the camera until there is one, and opens it. */
  async #scanCode(): Promise<void> {
    const scan = await CameraScan.open().catch(() => {
      throw new Error(word('add-no-camera'))
    })
    this.#scan = scan
    this.requestUpdate()
    await this.updateComplete
    const text = await scan.read().finally(() => {
      this.#scan = undefined
      this.requestUpdate()
    })
    if (text !== undefined) await this.#open(text)
  }

  async #readPicture(file: Blob): Promise<void> {
    const text = await readPicture(file).catch(() => undefined)
    if (text === undefined) throw new Error(word('add-no-code'))
    await this.#open(text)
  }
}

interface KeptLink {
  readonly token: string
  readonly url: string
  readonly expiresAt: string
}

function keptLink(key: string): KeptLink | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? '{}')
    return typeof kept.url === 'string' ? kept : undefined
  } catch {
    return undefined
  }
}

function keepLink(key: string, { token, url, expiresAt }: KeptLink): void {
  try {
    localStorage.setItem(key, JSON.stringify({ token, url, expiresAt }))
  } catch {
    // The next visit makes another.
  }
}

function selectAll({ currentTarget }: Event): void {
  ;(currentTarget as HTMLInputElement).select()
}

/** How a link's owner is known. */
const RELATIONS: Readonly<Record<string, Word>> = {
  incoming: 'add-relation-incoming',
  outgoing: 'add-relation-outgoing',
  user: 'add-relation-user',
}
/** The token is in `#c=`, `?c=`, `#share=`, `?share=`, or the path. */
const IS_LINK = /(?:[#?&](?:c|share)=|\/c\/)c_/
const PATH_LINK = /\/c\/c_/

if (customElements.get('callsign-add-contact') === undefined)
  customElements.define('callsign-add-contact', CallsignAddContact)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-add-contact': CallsignAddContact
  }
}
