/**
 * `<callsign-lobby>`: a look at oneself before a call. Its event `start` has the `choice` for `new Media`; `cancel` has nothing.
 * Microphone and camera close when it leaves the page.
 */

import { css, html, nothing, type TemplateResult } from 'lit'
import { CallsignElement, type View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { Tone } from '../tone.ts'
import { type Word, word } from '../words.ts'
import './device-menus.ts'
import { type MediaChoice, OwnDevices } from './own-devices.ts'

export class CallsignLobby extends CallsignElement {
  static override properties = { ...CallsignElement.properties, video: { type: Boolean } }
  static override styles = [
    SHARED_STYLE,
    css`
      .lobby {
        display: grid;
        gap: 1rem;
        grid-template-columns: minmax(0, 1fr);
        max-width: 56rem;
        margin: 0 auto;
      }

      .preview {
        position: relative;
        display: grid;
        place-items: center;
        aspect-ratio: 4 / 3;
        max-height: 42vh;
        width: 100%;
        border-radius: var(--radius);
        overflow: hidden;
        background: #15181a;
        color: #e6e8e6;
      }

      video {
        position: absolute;
        inset: 0;
        width: 100%;
        height: 100%;
        object-fit: cover;
        transform: scaleX(-1);
      }

      .meter {
        height: 8px;
        border-radius: 4px;
        background: var(--line);
        overflow: hidden;
      }

      .meter > div {
        height: 100%;
        width: 100%;
        background: var(--good);
        transform: scaleX(0);
        transform-origin: left;
      }

      .meter.off > div {
        background: var(--soft);
      }

      .side {
        display: grid;
        gap: 0.8rem;
        align-content: start;
        min-width: 0;
      }

      .toggles {
        align-items: stretch;
      }

      .toggles button {
        flex: 1 1 7rem;
        padding: 0 0.4rem;
      }

      h2,
      p {
        margin: 0;
      }

      button[aria-pressed='true'] {
        border-color: var(--accent);
      }

      button[aria-pressed='false'] {
        color: var(--bad);
        border-color: var(--bad);
      }

      h2:focus {
        outline: none;
      }

      @media (min-width: 720px), (orientation: landscape) and (max-height: 500px) {
        .lobby {
          grid-template-columns: minmax(0, 1.2fr) minmax(0, 1fr);
        }

        .preview {
          max-height: 75vh;
        }
      }
    `,
  ]

  /** Whether the camera is on from the start: unless `false`. */
  declare video: boolean
  readonly #tone = new Tone()
  #own: OwnDevices | undefined
  #look: ReturnType<typeof setInterval> | undefined

  constructor() {
    super()
    this.video = true
  }

  protected override sources() {
    return [this.me, this.#own]
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.#look)
    this.#tone.stop()
    this.#own?.close()
    this.#own = undefined
  }

  protected override willUpdate(): void {
    if (this.isConnected && this.#own === undefined) {
      this.#own = new OwnDevices({ camera: this.video })
      void this.#own.open()
      this.#look = setInterval(() => this.#showLevel(), LOOK_MS)
    }
    super.willUpdate()
  }

  protected override firstUpdated(): void {
    // A screen reader says where it is.
    this.renderRoot.querySelector('h2')?.focus({ preventScroll: true })
  }

  protected override render(): View {
    const own = this.#own
    if (own === undefined) return nothing
    const { problem, isMuted, isCameraOff } = own
    return html`<section class="lobby" aria-labelledby="title">
      <div class="preview">
        ${
          own.track('camera') === undefined
            ? html`<p>${word('camera-is-off')}</p>`
            : html`<video .srcObject=${own.local ?? null} .muted=${true} autoplay playsinline
                aria-label=${word('your-camera')}></video>`
        }
      </div>
      <div class="side">
        <h2 id="title" tabindex="-1">${word('before-the-call')}</h2>
        ${problem === undefined ? nothing : html`<p class="bad" role="alert">${problem}</p>`}
        <div class="row toggles">
          ${toggleView('microphone-menu', !isMuted, () => own.mute(!isMuted))}
          ${toggleView('camera-menu', !isCameraOff, () => own.coverCamera(!isCameraOff))}
        </div>
        <div class="meter ${isMuted ? 'off' : ''}" role="meter" aria-label=${word('microphone-level')}
          aria-valuemin="0" aria-valuemax="100" aria-valuenow="0"><div></div></div>
        <p class="row">
          <button class="main" @click=${() => this.say('start', { choice: choiceOf(own) })}>${word('start-the-call')}</button>
          <button class="plain" @click=${() => this.say('cancel')}>${word('cancel')}</button>
        </p>
        <callsign-device-menus .media=${own}></callsign-device-menus>
        <p class="row"><button @click=${() => this.#tone.start('test', own.devices.chosen.speaker)}>${word('play-a-test-tone')}</button></p>
      </div>
    </section>`
  }

  #showLevel(): void {
    const level = Math.min(1, Math.sqrt(this.#own?.level ?? 0))
    const meter = this.renderRoot.querySelector<HTMLElement>('.meter')
    const bar = meter?.querySelector<HTMLElement>('div')
    if (!meter || !bar) return
    bar.style.transform = `scaleX(${level.toFixed(2)})`
    meter.setAttribute('aria-valuenow', String(Math.round(100 * level)))
  }
}

function toggleView(name: Word, isOn: boolean, act: () => unknown): TemplateResult {
  return html`<button aria-pressed=${isOn} @click=${act}>${word(name)} ${word(isOn ? 'is-on' : 'is-off')}</button>`
}

function choiceOf({ isMuted, isCameraOff, devices: { chosen } }: OwnDevices): MediaChoice {
  return {
    microphone: !isMuted && (chosen.microphone ?? true),
    camera: !isCameraOff && (chosen.camera ?? true),
    ...(chosen.speaker !== undefined && { speaker: chosen.speaker }),
  }
}

const LOOK_MS = 100

declare global {
  interface HTMLElementTagNameMap {
    'callsign-lobby': CallsignLobby
  }
}

if (customElements.get('callsign-lobby') === undefined) customElements.define('callsign-lobby', CallsignLobby)
