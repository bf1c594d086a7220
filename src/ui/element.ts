/**
 * The base of the elements of `@callsign/sdk/ui`: follows a `Callsign`, runs a button's action once at a time, shows why it
 * failed, and asks the questions that the SDK leaves to the person.
 */

import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { Callsign } from '../app/app.ts'
import { nameIn } from './names.ts'
import { type Question, questionFor } from './question.ts'
import { sentenceOf } from './sentence.ts'
import { word } from './words.ts'

export type View = TemplateResult | typeof nothing

/** `me` and `call` of the SDK, as far as elements follow them. */
interface Changing {
  on(name: 'changed', listener: () => void): () => void
}

export abstract class CallsignElement extends LitElement {
  static override properties: PropertyDeclarations = { me: { attribute: false } }

  /** The app sets it before the element enters the page. */
  declare me: Callsign | undefined

  /** Actions under way, by the name of their button: it waits. */
  protected readonly doing = new Set<string>()
  /** Why the last action failed. */
  protected failure: string | undefined
  protected question: Question | undefined
  readonly #stops = new Map<Changing, () => void>()
  /** Changes with the user's device list. */
  #listState: unknown

  /** The objects that the element draws. */
  protected sources(): readonly (Changing | undefined)[] {
    return [this.me]
  }

  override connectedCallback(): void {
    super.connectedCallback()
    this.requestUpdate()
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    for (const stop of this.#stops.values()) stop()
    this.#stops.clear()
  }

  protected override willUpdate(): void {
    const sources = new Set(this.sources().filter(one => one !== undefined))
    for (const [source, stop] of this.#stops) {
      if (sources.has(source)) continue
      stop()
      this.#stops.delete(source)
    }
    for (const source of this.isConnected ? sources : [])
      if (!this.#stops.has(source)) this.#stops.set(source, this.#follow(source))
    const { me } = this
    const listState = me?.userId === undefined ? undefined : me.devices.listState
    if (this.#listState !== undefined && listState !== this.#listState) void this.renewCodes()
    this.#listState = listState
  }

  /** A code to compare names the device lists of both people: another list gives another code. */
  protected async renewCodes(): Promise<void> {
    await this.question?.renew()
    this.requestUpdate()
  }

  #follow(source: Changing): () => void {
    const stopChanges = source.on('changed', () => this.requestUpdate())
    const stopKeys = source === this.me ? this.me.on('keys', () => this.renewCodes()) : () => {}
    return () => {
      stopChanges()
      stopKeys()
    }
  }

  /** Runs a button's action: the button waits, a failure is shown, and a question of the SDK is put to the person. */
  protected async act(name: string, action: () => unknown): Promise<void> {
    if (this.doing.has(name)) return
    this.doing.add(name)
    this.failure = undefined
    this.question = undefined
    this.requestUpdate()
    try {
      await action()
    } catch (error) {
      this.question = questionFor(error, this.me, () => this.act(name, action))
      if (this.question === undefined) this.failure = sentenceOf(error, userId => nameIn(this.me, userId))
    } finally {
      this.doing.delete(name)
      this.requestUpdate()
    }
  }

  /** The failure and the question, where the element wants them. */
  protected outcomeView(): View {
    const { failure, question } = this
    // Without a space between, it is empty to a style sheet.
    return html`<div aria-live="polite">${
      failure === undefined ? nothing : html`<p class="failure">${failure}</p>`
    }${question === undefined ? nothing : this.#questionView(question)}</div>`
  }

  #questionView(question: Question): TemplateResult {
    const put = () => {
      this.question = undefined
      this.requestUpdate()
    }
    return html`<section class="card attention" role="alert">
      <p>${question.sentence}</p>
      ${question.code === undefined ? nothing : html`<p class="digits" aria-label=${word('code-to-compare')}>${question.code}</p>`}
      <p class="row">
        <button class="main" ?disabled=${this.doing.has('go-on')}
          @click=${() => this.act('go-on', () => question.goOn())}>${word('go-on')}</button>
        ${
          question.compare === undefined
            ? nothing
            : html`<button @click=${() => question.compare?.().then(() => this.requestUpdate())}>${word('compare-a-code')}</button>`
        }
        <button class="plain" @click=${put}>${word('not-now')}</button>
      </p>
    </section>`
  }

  /** Dispatches an event that the page hears through all shadow roots. */
  protected say<Detail>(type: string, detail?: Detail): void {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }))
  }
}
