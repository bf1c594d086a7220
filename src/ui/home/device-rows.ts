/** The rows of a user's devices, each with the question before it is removed. */

import { css, html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Device } from '../../app/app.ts'
import { shownName } from '../names.ts'
import { timeView, whenText } from '../when.ts'
import { word } from '../words.ts'

export interface RowActions {
  readonly nowMs: number
  /** This device is not approved: it may remove only those that were not seen for long. */
  readonly isRestricted: boolean
  readonly isRemoving: boolean
  readonly remove: (device: Device) => unknown
}

/** This device comes first, then the one that was seen last. */
export function deviceRows(devices: readonly Device[], actions: RowActions): TemplateResult {
  const rank = ({ current, lastSeenAt }: Device) =>
    current ? Number.POSITIVE_INFINITY : Date.parse(lastSeenAt)
  const sorted = [...devices].sort((one, other) => rank(other) - rank(one))
  return html`<ul class="list devices">${repeat(
    sorted,
    ({ deviceId }) => deviceId,
    device => deviceRow(device, actions),
  )}</ul>`
}

function deviceRow(device: Device, actions: RowActions): TemplateResult {
  const { platform, current, createdAt, lastSeenAt } = device
  const isUnseen = actions.nowMs - Date.parse(lastSeenAt) >= UNSEEN_MS
  const mayRemove = !current && (!actions.isRestricted || isUnseen)
  return html`<li aria-current=${current ? 'true' : nothing}>
    <span class="grow"><span class="name" dir="auto">${shownName(device.name)}</span>
      <span class="quiet facts"><span dir="auto">${platform}</span>, ${word('devices-added')} ${timeView(createdAt)}${
        current ? nothing : html`, ${word('devices-seen')} ${timeView(lastSeenAt)}`
      }</span></span>
    ${current ? html`<span class="good">${word('devices-this')}</span>` : nothing}
    ${mayRemove ? removalView(device, actions) : nothing}
  </li>`
}

function removalView(device: Device, { isRemoving, remove }: RowActions): TemplateResult {
  const name = shownName(device.name)
  const keep = ({ currentTarget }: Event) => {
    const menu = (currentTarget as HTMLElement).closest('details')!
    menu.querySelector('summary')!.focus()
    menu.open = false
  }
  // Browsers of one kind have one name.
  const label = word('devices-remove-label', name, whenText(new Date(device.createdAt)))
  return html`<details class="removal"><summary class="bad" aria-label=${label}>${word('devices-remove')}</summary>
    <div class="question" role="group" aria-label=${`${label}?`}>
      <p><strong dir="auto">${name}</strong> ${word('devices-remove-means')}</p>
      <p class="row">
        <button class="bad" ?disabled=${isRemoving} @click=${() => remove(device)}>${word('devices-remove-it')}</button>
        <button @click=${keep}>${word('devices-keep-it')}</button>
      </p>
    </div>
  </details>`
}

export const ROWS_STYLE = css`
  .removal[open] {
    flex-basis: 100%;
  }
`

/** The server lets an unapproved device remove one that was not seen for so long. */
const UNSEEN_MS = 30 * 86_400_000
