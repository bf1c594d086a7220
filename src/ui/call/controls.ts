/** The row of a call's round buttons, which stands beside the stage where the page is low. */

import { html, nothing, type TemplateResult } from 'lit'
import type { View } from '../element.ts'
import '../media/device-menus.ts'
import type { Media } from '../media/media.ts'
import { type Word, word } from '../words.ts'
import { type Icon, iconView } from './icons.ts'

/** What is open over the stage: one at a time. */
export type Panel = 'key' | 'people' | 'devices' | 'more'

export interface ControlActions {
  readonly isRinging: boolean
  readonly isEnding: boolean
  readonly canEnd: boolean
  readonly canRenewKey: boolean
  readonly open: Panel | undefined
  toggle(panel: Panel): void
  shareScreen(isOn: boolean): void
  leave(): void
  cancel(): void
  askEnd(): void
  renewKey(): void
}

export function controlsView(media: Media | undefined, actions: ControlActions): TemplateResult {
  const { isRinging, isEnding, leave, cancel } = actions
  return html`<div class="controls" role="toolbar" aria-label=${word('call-controls')}>
    ${media === undefined ? nothing : mediaView(media, actions)} ${moreView(media, actions)}
    ${
      isRinging
        ? outView('call-cancel-call', 'call-cancel', isEnding, cancel)
        : outView('call-leave', 'call-leave', isEnding, leave)
    }
  </div>`
}

function mediaView(media: Media, actions: ControlActions): View {
  const { hasMicrophone, hasCamera, isMuted, isCameraOff, canShareScreen, screen } = media.view
  return html`${
    hasMicrophone
      ? toggleView(['call-microphone', 'microphone', 'call-microphone', 'M'], !isMuted, () =>
          media.mute(!isMuted),
        )
      : nothing
  }
  ${
    hasCamera
      ? toggleView(['call-camera', 'camera', 'call-camera', 'V'], !isCameraOff, () =>
          media.coverCamera(!isCameraOff),
        )
      : nothing
  }
  ${canShareScreen ? screenView(screen !== undefined, actions) : nothing} ${wideView(media, actions)}`
}

/** A narrow page has these among `More`. */
function wideView(media: Media, { open, toggle }: ControlActions): TemplateResult {
  const { microphones, cameras, speakers } = media.devices
  // Without leave of the browser they have no ids, and nothing is to be chosen.
  const canChoose = [...microphones, ...cameras, ...speakers].some(({ id }) => id !== '')
  return html`${media.view.peers.length === 0 ? nothing : html`<div class="wide">${soundView(media)}</div>`}
    ${
      canChoose
        ? html`<div class="wide menu">
          ${roundView('call-devices', 'devices', open === 'devices', () => toggle('devices'))}
          <div class="panel low" id="panel-devices" role="group" aria-label=${word('call-devices')} ?hidden=${open !== 'devices'}>
            ${open === 'devices' ? html`<callsign-device-menus .media=${media}></callsign-device-menus>` : nothing}
          </div>
        </div>`
        : nothing
    }`
}

function soundView(media: Media): TemplateResult {
  const { isSoundOn } = media.view
  return toggleView(['call-sound', 'sound', 'call-sound'], isSoundOn, () => media.playSound(!isSoundOn))
}

function soundItem(media: Media): View {
  const { isSoundOn, peers } = media.view
  if (peers.length === 0) return nothing
  return html`<button class="item narrow" aria-pressed=${isSoundOn} @click=${() => media.playSound(!isSoundOn)}>
    ${iconView('sound', !isSoundOn)} ${word('call-sound')}</button>`
}

function moreView(media: Media | undefined, actions: ControlActions): View {
  const { open, toggle, canEnd, canRenewKey, renewKey, askEnd } = actions
  return html`<div class="menu">
    ${roundView('call-more', 'more', open === 'more', () => toggle('more'))}
    <div class="panel low" id="panel-more" role="group" aria-label=${word('call-more')} ?hidden=${open !== 'more'}>
      ${
        media === undefined
          ? nothing
          : html`${soundItem(media)}
        ${open === 'more' ? html`<callsign-device-menus class="narrow" .media=${media}></callsign-device-menus>` : nothing}`
      }
      ${canRenewKey ? html`<button class="item" @click=${renewKey}>${iconView('key')} ${word('call-new-key')}</button>` : nothing}
      ${canEnd ? html`<button class="item bad" @click=${askEnd}>${iconView('hangUp')} ${word('call-end-for-all')}</button>` : nothing}
    </div>
  </div>`
}

type Shown = readonly [name: Word, icon: Icon, caption: Word, key?: string]

function toggleView([name, icon, caption, key]: Shown, isOn: boolean, act: () => void): TemplateResult {
  const title = word(isOn ? 'call-turn-off' : 'call-turn-on', word(name))
  return html`<button class="round" aria-pressed=${isOn} aria-label=${word(name)} aria-keyshortcuts=${key ?? nothing}
    title=${key === undefined ? title : `${title} (${key})`} @click=${act}>
    <span class="disc">${iconView(icon, !isOn)}</span><span class="caption" aria-hidden="true">${word(caption)}</span></button>`
}

/** Off is the usual state. */
function screenView(isOn: boolean, { shareScreen }: ControlActions): TemplateResult {
  return html`<button class="round quiet-off" aria-pressed=${isOn} aria-label=${word('call-share-screen')}
    title=${word(isOn ? 'call-stop-sharing' : 'call-share-screen')} @click=${() => shareScreen(!isOn)}>
    <span class="disc">${iconView('screen')}</span><span class="caption" aria-hidden="true">${word('call-screen')}</span></button>`
}

function roundView(name: Word, icon: Icon, isOpen: boolean, act: () => void): TemplateResult {
  return html`<button class="round opener" aria-expanded=${isOpen} aria-controls="panel-${icon}" aria-label=${word(name)}
    title=${word(name)} @click=${act}>
    <span class="disc">${iconView(icon)}</span><span class="caption" aria-hidden="true">${word(name)}</span></button>`
}

function outView(name: Word, caption: Word, isWaiting: boolean, act: () => void): TemplateResult {
  return html`<button class="round out" aria-label=${word(name)} title=${word(name)} ?disabled=${isWaiting} @click=${act}>
    <span class="disc">${iconView('hangUp')}</span><span class="caption" aria-hidden="true">${word(caption)}</span></button>`
}
