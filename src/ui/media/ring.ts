/**
 * `<callsign-ring>`: a call that comes in, with its tone. Its event `answer` has the `call` and the `choice`, which `new Media` of the
 * call takes by itself; `declined` has the `call`. It shows nothing once the call rings no more.
 */

import { css, html, nothing, type TemplateResult } from 'lit'
import { type Call, type CallPerson, type CallsignError, hasCode } from '../../app/app.ts'
import { avatarView } from '../avatar.ts'
import { CallsignElement, type View } from '../element.ts'
import { nameIn } from '../names.ts'
import { openQuestionsOf } from '../open-questions.ts'
import { questionOfAnswer } from '../question.ts'
import { sentenceOf } from '../sentence.ts'
import { SHARED_STYLE } from '../style.ts'
import { word } from '../words.ts'
import { type MediaChoice, rememberChoice } from './own-devices.ts'
import { startRinging, stopRinging } from './ringing.ts'

export class CallsignRing extends CallsignElement {
  static override properties = { ...CallsignElement.properties, call: { attribute: false } }
  static override styles = [
    SHARED_STYLE,
    css`
      .ring {
        display: grid;
        gap: 0.7rem;
        border: 2px solid var(--accent);
        box-shadow: 0 6px 24px rgb(0 0 0 / 0.18);
      }

      .who {
        display: flex;
        gap: 0.7rem;
        align-items: center;
      }

      .who > div {
        min-width: 0;
        overflow-wrap: anywhere;
      }

      .avatar {
        flex: none;
        display: grid;
        place-items: center;
        width: 3rem;
        height: 3rem;
        border-radius: 50%;
        background: var(--accent);
        color: var(--ground);
        font-size: 1.3rem;
      }

      .caller {
        font-size: 1.1rem;
      }

      p {
        margin: 0;
      }

      .row {
        align-items: stretch;
      }

      .ring > div:empty {
        margin-top: -0.7rem;
      }

      .row button {
        flex: 1 1 auto;
        white-space: nowrap;
      }

      button.end {
        color: var(--bad);
        border-color: var(--bad);
      }

      @media (orientation: landscape) and (max-height: 500px) {
        .ring {
          grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);
          align-items: center;
        }

        .row {
          grid-column: 1 / -1;
        }
      }
    `,
  ]

  declare call: Call | undefined
  #heard: Call | undefined
  #stopHearing: (() => void) | undefined

  protected override sources() {
    return [this.me, this.call]
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.#stopHearing?.()
    this.#heard = undefined
    this.#settle(undefined)
  }

  protected override willUpdate(): void {
    super.willUpdate()
    const { call } = this
    if (call === this.#heard || !this.isConnected) return
    this.#stopHearing?.()
    this.#heard = call
    if (call !== undefined) openQuestionsOf(call)
    this.#stopHearing = call?.on('error', () => this.requestUpdate())
  }

  protected override updated(): void {
    const { call } = this
    this.#settle(this.isConnected && call?.isIncoming && call.state === 'ringing' ? call : undefined)
  }

  protected override render(): View {
    const { call } = this
    if (!call?.isIncoming || (call.state !== 'ringing' && call.state !== 'joining')) return nothing
    const { caller, isVideo, isOnGoing, isVerified } = call
    const what = isOnGoing ? 'invites-you' : isVideo ? 'calls-with-video' : 'calls-you'
    const isAnswering = this.doing.has('answer') || call.state === 'joining'
    const { refusal } = openQuestionsOf(call)
    const isRefused = isVerified === false && refusal !== undefined && !isQuestion(refusal)
    const answer = (choice: MediaChoice) => () => this.#answer(call, choice)
    return html`<section class="card ring" aria-label=${word('incoming-call')} part="ring">
      <div class="who" role="alert">
        ${avatarView(caller.name)}
        <div>
          <p class="caller"><strong dir="auto">${caller.name}</strong> ${word(what)}</p>
          ${callerView(caller)}
        </div>
      </div>
      <p class=${isVerified === false ? 'bad' : 'quiet'} role="status">${this.#checkText(isVerified, refusal)}</p>
      <p class="row">
        <button class="main" ?disabled=${isAnswering || isRefused} @click=${answer({ camera: isVideo })}>
          ${word(this.#isInCall ? 'leave-and-answer' : isAnswering ? 'answering' : 'answer')}</button>
        ${
          isVideo
            ? html`<button ?disabled=${isAnswering || isRefused} @click=${answer({ camera: false })}>${word('without-camera')}</button>`
            : nothing
        }
        <button class="end" ?disabled=${this.doing.has('decline')}
          @click=${() => this.#decline(call)}>${word('decline')}</button>
      </p>
      ${this.outcomeView()}
    </section>`
  }

  get #isInCall(): boolean {
    const isMine = (one: Call) => one !== this.call && one.state !== 'ended'
    return this.me?.calls.some(one => isMine(one) && !(one.isIncoming && one.state === 'ringing')) ?? false
  }

  /** `refusal`: why the caller does not verify. */
  #checkText(isVerified: boolean | undefined, refusal: CallsignError | undefined): string {
    if (isVerified === undefined) return word('checking-the-caller')
    if (isVerified) return word('caller-verified')
    const sentence =
      refusal === undefined || hasCode(refusal, 'KEYS_REFUSED')
        ? word('caller-not-verified')
        : sentenceOf(refusal, id => nameIn(this.me, id))
    return refusal === undefined || isQuestion(refusal) ? sentence : `${word('do-not-answer')} ${sentence}`
  }

  #answer(call: Call, choice: MediaChoice, evenIfOld = false): Promise<void> {
    rememberChoice(call, choice)
    this.say('answer', { call, choice })
    return this.act('answer', async () => {
      try {
        await call.answer({ evenIfOld })
      } catch (error) {
        const again = (isOld: boolean) => this.#answer(call, choice, isOld)
        const question = questionOfAnswer(error, call, again)
        if (question === undefined) throw error
        this.question = question
      }
    })
  }

  #decline(call: Call): Promise<void> {
    return this.act('decline', async () => {
      await call.decline()
      this.say('declined', { call })
    })
  }

  /** Tone and title while it rings; neither a moment longer. */
  #settle(ringing: Call | undefined): void {
    if (ringing === undefined) return stopRinging(this)
    const { name, isContact } = ringing.caller
    const title = word(isContact === false ? 'title-of-a-strangers-ring' : 'title-of-a-ring', name)
    startRinging(this, title, this.#isInCall ? 'waiting' : 'ring')
  }
}

/** The person may answer all the same. */
function isQuestion(refusal: CallsignError): boolean {
  return hasCode(refusal, 'KEYS_RESET', 'INVITATION_OLD', 'OWN_DEVICE_IN_SET')
}

/** A stranger may have chosen a contact's name. */
function callerView({ isContact, alias, displayName }: CallPerson): TemplateResult | typeof nothing {
  if (isContact === false) return html`<p class="stranger bad">${word('not-a-contact')}</p>`
  return alias === undefined
    ? nothing
    : html`<p class="quiet">${word('calls-themselves')} <span dir="auto">${displayName}</span></p>`
}

declare global {
  interface HTMLElementTagNameMap {
    'callsign-ring': CallsignRing
  }
}

if (customElements.get('callsign-ring') === undefined) customElements.define('callsign-ring', CallsignRing)
