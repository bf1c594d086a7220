/** `<callsign-device-menus>`: microphone, camera and speaker, in a call (`Media`) or before it. */

import { css, html, nothing, type TemplateResult } from 'lit'
import { CallsignElement, type View } from '../element.ts'
import { SHARED_STYLE } from '../style.ts'
import { type Word, word } from '../words.ts'
import type { MediaDevice, MediaDeviceList } from './device-list.ts'

/** Has the devices, as `Media` does. */
export interface DeviceHolder {
  readonly devices: MediaDeviceList
  on(name: 'changed', listener: () => void): () => void
  useMicrophone(id: string): Promise<void>
  useCamera(id: string): Promise<void>
  useSpeaker(id: string): Promise<void>
}

export class CallsignDeviceMenus extends CallsignElement {
  static override properties = { ...CallsignElement.properties, media: { attribute: false } }
  static override styles = [
    SHARED_STYLE,
    css`
      .menus {
        display: grid;
        gap: 0.6rem;
      }

      label {
        display: block;
        color: var(--soft);
        font-size: 0.9em;
      }

      select {
        width: 100%;
        min-width: 0;
        text-overflow: ellipsis;
      }
    `,
  ]

  declare media: DeviceHolder | undefined

  protected override sources() {
    return [this.me, this.media]
  }

  protected override render(): View {
    const { media } = this
    if (media === undefined) return nothing
    const { microphones, cameras, speakers, chosen } = media.devices
    return html`<div class="menus">
      ${this.#menuView('microphone-menu', microphones, chosen.microphone, id => media.useMicrophone(id))}
      ${this.#menuView('camera-menu', cameras, chosen.camera, id => media.useCamera(id))}
      ${this.#menuView('speaker-menu', speakers, chosen.speaker, id => media.useSpeaker(id))}
    </div>
    ${this.outcomeView()}`
  }

  /** Without leave of the browser the devices have no ids: there is nothing to choose then. */
  #menuView(
    label: Word,
    devices: readonly MediaDevice[],
    chosen: string | undefined,
    use: (id: string) => Promise<void>,
  ): View {
    const named = devices.filter(({ id }) => id !== '')
    if (named.length === 0) return nothing
    const present =
      named.find(({ id }) => id === chosen) ?? named.find(({ id }) => id === 'default') ?? named[0]
    const optionView = ({ id, label: name }: MediaDevice, at: number): TemplateResult =>
      html`<option value=${id} .selected=${id === present?.id}>${name || `${word(label)} ${at + 1}`}</option>`
    const choose = ({ target }: Event) => this.act(label, () => use((target as HTMLSelectElement).value))
    return html`<div><label for=${label}>${word(label)}</label>
      <select id=${label} @change=${choose}>${named.map(optionView)}</select></div>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'callsign-device-menus': CallsignDeviceMenus
  }
}

if (customElements.get('callsign-device-menus') === undefined)
  customElements.define('callsign-device-menus', CallsignDeviceMenus)
