/** The user's own devices, and the question before one is removed. Each keeps its elements when the list changes. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { Device } from '../../src/app/app.ts'
import type { App } from './app.ts'
import type { State } from './state.ts'
import { whenText } from './times.ts'
import { timeView, type View } from './view-parts.ts'

export function devicesView(state: State, app: App): View {
  if (state.devices.length === 0) return nothing
  return html`${newcomersView(state, app)} ${ownView(state, app)}`
}

/** In place of everything else, while no other device has put this one on the list. */
export function unapprovedView(state: State, app: App): TemplateResult {
  return html`${approvalView(state, app)} ${ownView(state, app)}`
}

function ownView(state: State, app: App): TemplateResult {
  return html`<section class="card"><h2>Your devices</h2>${listView(state, app)}</section>`
}

function approvalView({ listState, doing }: State, app: App): TemplateResult {
  const code = listState?.kind === 'waiting' ? listState.code : '…'
  return html`<section class="card attention" role="alert"><h2>Approve this device</h2>
      <p>You are signed in. Your contacts and calls come here once another device of yours has put this one on your list.
        Open Callsign there, and compare this code:</p>
      <p class="digits mono" aria-label="Code of this device">${code}</p>
      <details><summary>I have no other device any more</summary>
        <p>Start over with this device alone. Your contacts are told so, because somebody who had taken your account would do
          the same.</p>
        <p><button class="bad" ?disabled=${doing.has('start-over')}
          @click=${() => app.act('start-over', () => app.startOver())}>Start over</button></p></details></section>`
}

/** Devices that wait to be put on the list. */
function newcomersView({ listState, doing }: State, app: App): View {
  if (listState?.kind !== 'listed') return nothing
  return html`${repeat(
    listState.waiting,
    ({ deviceId }) => deviceId,
    device => html`<section class="card attention approval" role="alert"><h2>A new device of yours?</h2>
      <p><strong dir="auto">${device.name}</strong> has signed in as you. It can be called, and reads your calls, once you put it
        on your list. Do so only if it shows this code:</p>
      <p class="digits mono" aria-label=${`Code of ${device.name}`}>${device.code}</p>
      <button class="main" ?disabled=${doing.has('approve')}
        @click=${() => app.act('approve', () => app.approve(device))}>It shows this code: approve</button></section>`,
  )}`
}

/** In place of everything else, while there is no room for this device. */
export function crowdedView(state: State, app: App): TemplateResult {
  return html`<section class="card"><h2>You have as many devices as you may</h2>
    <p>This one takes the place of one that you remove. ${
      state.restriction === undefined
        ? nothing
        : html`Here that can be one that was not seen for 30 days; remove any other on a device of yours that is approved,
          and reload this page.`
    }</p>${listView(state, app)}</section>`
}

function listView(state: State, app: App): TemplateResult {
  return html`<ul class="list devices">${repeat(
    state.devices,
    ({ deviceId }) => deviceId,
    device => deviceView(device, state, app),
  )}</ul>`
}

function deviceView(device: Device, { doing, restriction }: State, app: App): TemplateResult {
  const { name, platform, current, createdAt, lastSeenAt } = device
  const isUnseen = app.nowMs - Date.parse(lastSeenAt) >= UNSEEN_MS
  const removal = restriction === undefined || isUnseen ? removalView(device, doing, app) : nothing
  return html`<li aria-current=${current ? 'true' : nothing}>
    <span class="grow"><span class="name" dir="auto">${name}</span>
      <span class="quiet facts"><span dir="auto">${platform}</span>, added ${timeView(createdAt)}${
        current ? nothing : html`, last seen ${timeView(lastSeenAt)}`
      }</span></span>
    ${current ? html`<span class="good">this device</span>` : removal}
  </li>`
}

/** Not modal: a call can be answered beside it. */
function removalView(device: Device, doing: ReadonlySet<string>, app: App): TemplateResult {
  const { name, createdAt } = device
  const show = ({ currentTarget }: Event) =>
    (currentTarget as HTMLElement).querySelector('.question')!.scrollIntoView({ block: 'nearest' })
  const keep = ({ currentTarget }: Event) => {
    const menu = (currentTarget as HTMLElement).closest('details')!
    menu.querySelector('summary')!.focus()
    menu.open = false
  }
  // Browsers of one kind have one name.
  const label = `Remove ${name}, added ${whenText(new Date(createdAt))}`
  return html`<details class="menu removal" @toggle=${show}><summary class="bad" aria-label=${label}>Remove</summary>
    <div class="question" role="group" aria-label=${`${label}?`}>
      <p><strong dir="auto">${name}</strong> is signed out at once, and no call rings there. Its key stays in the key
        log.</p>
      <p class="row">
        <button class="bad" ?disabled=${doing.has('remove-device')}
          @click=${() => app.act('remove-device', () => app.removeDevice(device))}>Remove it</button>
        <button @click=${keep}>Keep it</button>
      </p>
    </div>
  </details>`
}

/** The server lets an unapproved device remove one that was not seen for so long. */
const UNSEEN_MS = 30 * 86_400_000
