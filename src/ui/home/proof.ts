/** `<callsign-proof>`: asks who the user is when the server wants to know it once more, and the refused action goes on. */

import { css, html, nothing, type TemplateResult } from 'lit'
import type { Callsign, ProofNeeded } from '../../app/app.ts'
import type { View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { word } from '../words.ts'
import { addresses, focusedElement, HOME_STYLE, HomeElement, sentCodesView } from './home-element.ts'

const STYLE = css`
  dialog {
    position: fixed;
    inset: auto 0 0;
    z-index: 30;
    width: min(26rem, calc(100vw - 2rem));
    max-height: calc(100vh - 2rem);
    overflow-y: auto;
    margin: 0 auto 1rem;
    color: var(--ink);
    box-shadow: 0 8px 32px rgb(0 0 0 / 0.35);
  }
`

export class CallsignProof extends HomeElement {
  static override properties = { developmentInbox: { attribute: false }, address: { attribute: false } }
  static override styles = [SHARED_STYLE, HOME_STYLE, STYLE]

  /** As of `<callsign-sign-in>`. */
  declare developmentInbox: ((address: string) => Promise<string>) | undefined
  /** By which the user signed in, where it was not by `<callsign-sign-in>`. */
  declare address: string | undefined

  #proof: ProofNeeded | undefined
  /** Had the keyboard before. */
  #before: HTMLElement | undefined

  protected override listen(me: Callsign): readonly (() => void)[] {
    return [
      me.on('proof-needed', proof => {
        this.failure = undefined
        this.#proof = proof
        this.#before = focusedElement()
        this.requestUpdate()
      }),
    ]
  }

  protected override clear(): void {
    this.#proof = undefined
  }

  /** Not modal: a call can be answered beside it. */
  protected override render(): View {
    const proof = this.#proof
    if (proof === undefined) return nothing
    const [hasCode, hasPasskey] = [proof.ways.includes('code'), proof.ways.includes('passkey')]
    const isWaiting = this.doing.has('proof')
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === 'Escape') this.#refuse(proof)
    }
    return html`<dialog class="card attention" aria-labelledby="title" @keydown=${onKey}>
      <h2 id="title">${word('proof-title')}</h2>
      <p>${word('proof-why')}</p>
      <p class="failure" role="alert" id="why-not">${this.failure ?? nothing}</p>
      ${
        hasPasskey
          ? html`<p><button class="main wide" ?disabled=${isWaiting}
              @click=${() => this.#prove(() => proof.byPasskey())}>${word('proof-passkey')}</button></p>`
          : nothing
      }
      ${hasCode && proof.sentTo !== undefined ? this.#codeView(proof, proof.sentTo) : nothing}
      ${hasCode || hasPasskey ? nothing : html`<p>${word('proof-no-way')}</p>`}
      <p class="row">
        <button class="plain" @click=${() => this.#refuse(proof)}>${word('not-now')}</button>
        ${
          hasCode
            ? html`<button class=${proof.sentTo === undefined && !hasPasskey ? 'main' : 'plain'} ?disabled=${isWaiting}
                @click=${() => this.act('proof', () => this.#send(proof))}>${word(
                  proof.sentTo === undefined ? 'proof-send-code' : 'sign-in-another',
                )}</button>`
            : nothing
        }
      </p>
    </dialog>`
  }

  #codeView(proof: ProofNeeded, sentTo: string): TemplateResult {
    const isWaiting = this.doing.has('proof')
    const onSubmit = (event: SubmitEvent) => {
      event.preventDefault()
      const otp = String(new FormData(event.currentTarget as HTMLFormElement).get('otp')).trim()
      void this.#prove(() => proof.confirm(otp))
    }
    const { developmentInbox } = this
    const primary = this.me?.user?.loginMethods?.find(({ primary }) => primary)
    const address = primary?.value ?? this.address ?? addresses.get(this.me!)
    const fetchCode = async () => proof.confirm(await developmentInbox!(address!))
    return html`<form @submit=${onSubmit}>
      <label><span>${word('sign-in-code')} <span class="quiet">${word('sign-in-code-sent', sentTo)}</span></span>
        <input name="otp" required inputmode="numeric" autocomplete="one-time-code" maxlength="6" pattern="[0-9]{6}"
          title=${word('sign-in-digits', 6)} aria-invalid=${this.failure === undefined ? 'false' : 'true'}
          aria-describedby="why-not"></label>
      ${developmentInbox === undefined ? sentCodesView(this.me) : nothing}
      <p class="row"><button class="main" ?disabled=${isWaiting}>${word('proof-confirm')}</button>
        ${
          developmentInbox === undefined || address === undefined
            ? nothing
            : html`<button type="button" ?disabled=${isWaiting}
                @click=${() => this.#prove(fetchCode)}>${word('proof-fetch-code')}</button>`
        }</p>
    </form>`
  }

  protected override updated(): void {
    const dialog = this.renderRoot.querySelector('dialog')
    if (dialog === null || dialog.open) return
    dialog.show()
    dialog.querySelector<HTMLElement>('input, button')?.focus()
  }

  #prove(give: () => Promise<void>): Promise<void> {
    return this.act('proof', async () => {
      await give()
      this.#end()
    })
  }

  async #send(proof: ProofNeeded): Promise<void> {
    await proof.sendCode()
    this.requestUpdate()
    await this.focusOn('input')
  }

  #refuse(proof: ProofNeeded): void {
    proof.refuse()
    this.failure = undefined
    this.#end()
  }

  #end(): void {
    this.#proof = undefined
    this.requestUpdate()
    this.#before?.focus()
  }
}

if (customElements.get('callsign-proof') === undefined) customElements.define('callsign-proof', CallsignProof)

declare global {
  interface HTMLElementTagNameMap {
    'callsign-proof': CallsignProof
  }
}
