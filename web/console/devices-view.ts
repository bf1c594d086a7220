/** The devices that are connected. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { ConsoleState } from '../../src/operations/console/events.ts'
import { ageOf, manyOf, tailOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { empty, section, shownOf } from './parts.ts'
import { nameOf, type Page } from './state.ts'

type Device = ConsoleState['devices'][number]

const rows = new KeyedList<Device>('tbody', '', ({ userId, deviceId }) => `${userId}_${deviceId}`)

export function devicesView(page: Page): TemplateResult {
  const devices = (page.state.server?.devices ?? []).toSorted((a, b) => b.connectedAtMs - a.connectedAtMs)
  const { shown, more } = shownOf(page, 'devices', devices, SHOWN)
  const table = html`<div class="scroll" tabindex="0" role="region" aria-label="table of connected devices"><table class="figures">
    <thead><tr><th scope="col">user</th><th scope="col">device</th><th scope="col" class="number">for</th>
      <th scope="col" class="number">waiting</th></tr></thead>
    ${rows.show(shown, device => deviceRow(page, device))}
  </table></div>${more}`
  const aside = html`<span class="soft">${devices.length === 0 ? nothing : manyOf(page.state.server?.deviceCount ?? devices.length, 'device')}</span>`
  return section(
    'devices',
    'Connected devices',
    aside,
    html`${devices.length === 0 ? EMPTY : table}${comings(page)}`,
  )
}

function deviceRow({ state }: Page, device: Device): TemplateResult {
  const { userId, deviceId, displayName, connectedAtMs, waiting } = device
  return html`<td>${displayName} <span class="soft mono">${tailOf(userId)}</span></td>
    <td class="mono" title=${deviceId}>${deviceId}</td>
    <td class="number">${ageOf(connectedAtMs, state.nowMs)}</td>
    <td class="number ${waiting > 0 ? 'busy' : ''}">${waiting}</td>`
}

/** The latest comings and goings. */
function comings({ state }: Page): TemplateResult | typeof nothing {
  if (state.comings.length === 0) return nothing
  return html`<ol class="comings" aria-label="who came and went">${state.comings.slice(0, COMINGS).map(
    ({ atMs, isOnline, userId, deviceId }) =>
      html`<li><span class=${isOnline ? 'good' : 'soft'}>${isOnline ? '+' : '–'}</span> ${nameOf(state, userId)}
        <span class="soft mono">${tailOf(deviceId)}</span> ${isOnline ? 'connected' : 'left'}
        <span class="soft">${timeOf(atMs)}</span></li>`,
  )}</ol>`
}

const EMPTY = empty(html`<p>No device is connected. The <a href="/dev/client">browser client</a> connects one;
  <a href="/docs/events">the events</a> say how an app does.</p>`)
const SHOWN = 8
const COMINGS = 3
