/** Pushes as they leave, each with its size against what its provider takes. */

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import type { PushFact } from '../../src/operations/console/events.ts'
import { bytesOf, tailOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { empty, opening, section, shownOf } from './parts.ts'
import { type At, nameOf, type Page } from './state.ts'

const list = new KeyedList<At<PushFact>>('ol', 'rows pushes', ({ sequence }) => sequence)

export function pushesView(page: Page): TemplateResult {
  const { pushes } = page.state
  const { shown, more } = shownOf(page, 'pushes', pushes, SHOWN)
  const content = pushes.length === 0 ? EMPTY : html`${list.show(shown, push => pushRow(page, push))}${more}`
  return section('pushes', 'Pushes', nothing, content)
}

function pushRow(page: Page, push: At<PushFact>): TemplateResult {
  const { sequence, atMs, kind, provider, userId, deviceId, bytes, bytesMax } = push
  const summary = html`<span class="kind mono">${kind}</span>
    <span class="who">${nameOf(page.state, userId)} <span class="soft">${tailOf(deviceId)}</span></span>
    <span class="soft">${provider} · ${timeOf(atMs)}</span>
    <span class="size">${sizeBar(bytes, bytesMax)}
      <span class="mono">${bytesOf(bytes)} / ${bytesOf(bytesMax)}</span></span>`
  return opening(page, `push ${sequence}`, false, summary, () => pushDetail(push))
}

/** How much of what the provider takes it fills. */
function sizeBar(bytes: number, bytesMax: number): TemplateResult {
  const share = Math.min(100, (bytes / bytesMax) * 100)
  return html`<svg class="bar ${share > TIGHT ? 'tight' : ''}" role="img" aria-label="${bytes} of ${bytesMax} bytes"
    viewBox="0 0 100 6" preserveAspectRatio="none">${svg`<rect width="100" height="6"></rect>
    <rect class="filled" width=${share} height="6"></rect>`}</svg>`
}

function pushDetail({ headers, payload, userId, deviceId }: PushFact): TemplateResult {
  return html`<dl class="facts">
      <dt>user, device</dt><dd class="mono">${userId}_${deviceId}</dd>
      ${Object.entries(headers).map(([name, value]) => html`<dt>${name}</dt><dd class="mono">${value}</dd>`)}
    </dl>
    <pre tabindex="0" aria-label="payload">${JSON.stringify(payload, null, 2)}</pre>`
}

const EMPTY =
  empty(html`<p>No push yet. A device that is registered with a push token gets one for each contact request
  and call; the browser client has none. Follow <a href="/docs/api">register_device</a>.</p>`)
const SHOWN = 6
/** Per cent. */
const TIGHT = 90
