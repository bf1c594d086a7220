/** The whole page, as a function of its state. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { ageOf, countOf } from '../shared/figures.ts'
import { actorsView } from './actors-view.ts'
import { callsView } from './calls-view.ts'
import { codesView } from './codes-view.ts'
import { connectView } from './connect-view.ts'
import { devicesView } from './devices-view.ts'
import { logView } from './log-view.ts'
import { pushesView } from './pushes-view.ts'
import { requestsView } from './requests-view.ts'
import { resetButton, resetQuestion } from './reset-view.ts'
import { simulatorView } from './simulator-view.ts'
import type { Page } from './state.ts'

/** `width` is the window's, in pixels. */
export function pageView(page: Page, width: number): TemplateResult {
  const { announcement, missed } = page.state
  const drawingWidth = Math.max(DRAWING_MIN, Math.min(DRAWING_MAX, width - 2 * EDGE))
  return html`${banner(page)}
    <p class="unseen" role="status" aria-live="polite">${announcement}</p>
    ${resetQuestion(page)}
    ${page.state.link === 'lost' ? LOST : nothing}
    ${missed > 0 ? html`<p class="notice">${countOf(missed)} events went by faster than this page could ask for them.</p>` : nothing}
    <div class="columns">
      <div class="column">${codesView(page)}${requestsView(page)}${callsView(page)}${simulatorView(page)}</div>
      <div class="column">${connectView(page)}${logView(page, drawingWidth)}${pushesView(page)}${devicesView(page)}${actorsView(page)}</div>
    </div>`
}

function banner(page: Page): TemplateResult {
  const { state } = page
  const hold = () => page.change(() => Object.assign(state, { isHeld: !state.isHeld }))
  return html`<header class="top">
    <h1><img src="/dev/pages/icon.svg" alt="" width="28" height="28"> Callsign <span>console</span></h1>
    <p class="link"><span class="dot ${state.isHeld ? 'held' : state.link}"></span> ${linkWords(page)}
      <button type="button" class="small" aria-pressed=${state.isHeld ? 'true' : 'false'} @click=${hold}>${state.isHeld ? 'Go on' : 'Hold'}</button>
      ${resetButton(page)}</p>
    <nav aria-label="Elsewhere"><a href="/dev/client">Browser client</a><a href="/docs">Documents</a><a href="/docs/api">API</a><a href="/docs/events">Events</a></nav>
    ${sections(page)}
  </header>`
}

function linkWords({ state }: Page): string {
  const { server, link, nowMs } = state
  if (server === undefined) return 'no answer'
  if (link === 'lost') return 'the server is away'
  return `${state.isHeld ? 'held' : 'live'} · ${server.version} · up ${ageOf(server.startedAtMs, nowMs)}`
}

/** Jumps to each section, with how much there is in it. */
function sections({ state }: Page): TemplateResult {
  const { server } = state
  const places: readonly (readonly [string, string, number | undefined])[] = [
    ['codes', 'Codes', state.letters.length],
    ['requests', 'Requests', state.requests.rows.length],
    ['calls', 'Calls', state.calls.length],
    ['simulator', 'Simulator', server?.simulator?.people.length],
    ['connect', 'Connect', undefined],
    ['log', 'Log', server?.log.treeSize],
    ['pushes', 'Pushes', state.pushes.length],
    ['devices', 'Devices', server?.deviceCount ?? server?.devices.length],
    ['actors', 'Actors', undefined],
  ]
  return html`<nav class="places" aria-label="On this page">${places.map(
    ([id, name, count]) =>
      html`<a href="#${id}">${name}${count === undefined ? nothing : html` <span class="soft">${countOf(count)}</span>`}</a>`,
  )}</nav>`
}

const LOST = html`<p class="notice bad" role="alert">The server does not answer. Start it with <code>npm start</code>; this page
  goes on by itself.</p>`
const DRAWING_MIN = 200
const DRAWING_MAX = 520
/** Space left and right of the drawing in a narrow window. */
const EDGE = 30
