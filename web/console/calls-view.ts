/** Calls as time lines: what each device said to the room, and what devices were told of it. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { lapseOf, manyOf, spanOf, tailOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { type Content, empty, opening, section, shownOf } from './parts.ts'
import { isOver, nameOf, type Page, type WatchedCall } from './state.ts'
import { type Moment, timeLineOf } from './time-line.ts'

const list = new KeyedList<WatchedCall>('ol', 'rows calls', ({ callId }) => callId)

export function callsView(page: Page): TemplateResult {
  const calls = allCalls(page)
  const { server } = page.state
  const liveCount = server?.callCount ?? server?.calls.length ?? 0
  const { shown, more } = shownOf(page, 'calls', calls, SHOWN)
  const aside = html`<span class="soft">${manyOf(liveCount, 'live call')}</span>`
  const content =
    calls.length === 0
      ? EMPTY
      : html`${list.show(shown, call => callRow(page, call, shown.indexOf(call) < OPEN))}${more}`
  return section('calls', 'Calls', aside, content)
}

/** Those seen in the feed, and behind them those that began before the server's feed does. */
function allCalls({ state }: Page): readonly WatchedCall[] {
  const seen = new Set(state.calls.map(({ callId }) => callId))
  const others = (state.server?.calls ?? []).filter(({ callId }) => !seen.has(callId)).slice(0, UNSEEN_MAX)
  return [...state.calls, ...others.map(call => ({ ...call, messages: [] }))]
}

function callRow(page: Page, call: WatchedCall, usually: boolean): TemplateResult {
  const { callId, status, participants, messages } = call
  const [first, last] = [messages[0], messages.at(-1)]
  const time =
    first === undefined
      ? nothing
      : html`${timeOf(first.atMs)}${isOver(status) ? ` · ${spanOf(last!.atMs - first.atMs)}` : nothing}`
  const summary = html`<span class="badge ${isOver(status) ? 'over' : status}">${status}</span>
    <span class="people">${participants.map(
      ({ displayName, status: state }) =>
        html`<span class="person">${displayName} <span class="state">${state}</span></span>`,
    )}</span>
    <span class="soft">${time} · <span class="mono">${tailOf(callId)}</span></span>`
  return html`<article class=${isOver(status) ? 'over' : nothing} aria-label="call ${callId}, ${status}">
    ${opening(page, `call ${callId}`, usually, summary, () => diagram(page, call))}
  </article>`
}

function diagram({ state }: Page, call: WatchedCall): Content {
  const { lanes, moments } = timeLineOf(call)
  const startMs = moments[0]?.atMs
  if (startMs === undefined)
    return html`<p class="soft">It began before this page looked; what comes shows here.</p>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label="time line of call ${call.callId}">
    <table class="time-line">
      <thead><tr><th scope="col" class="lapse">time</th><th scope="col">room</th>${lanes.map(
        ({ userId, deviceId }) =>
          html`<th scope="col">${nameOf(state, userId)}<span class="soft mono">${deviceId === undefined ? 'no device yet' : tailOf(deviceId)}</span></th>`,
      )}</tr></thead>
      <tbody>${moments.map(moment => momentRow(moment, lanes.length, startMs))}</tbody>
    </table>
  </div>`
}

function momentRow(moment: Moment, lanes: number, startMs: number): TemplateResult {
  const { atMs, command, becomes, from, watchersTold, others } = moment
  const cells = Array.from({ length: lanes }, (_, at) => laneCell(moment, at + 1))
  return html`<tr>
    <td class="lapse mono">${lapseOf(startMs, atMs)}</td>
    <td class="lane room ${moment.reach > 0 ? 'right' : ''}">
      <span class="what mono">${from === undefined ? html`<span class="timer" title="the room's own timer">◷</span> ` : nothing}${command}</span>
      ${becomes === undefined ? nothing : html`<span class="badge ${isOver(becomes) ? 'over' : becomes}">${becomes}</span>`}
      ${watchersTold.map(type => html`<span class="what topic mono" title="to those who watch the call">${breakable(type)}</span>`)}
      ${others > 0 ? html`<span class="what topic">and ${others} more told</span>` : nothing}
    </td>
    ${cells}
  </tr>`
}

function laneCell({ from, told, reach }: Moment, lane: number): TemplateResult {
  const types = told.get(lane) ?? []
  const line = lane < reach ? 'through' : lane === reach ? 'left' : ''
  const mark = lane === from ? 'from' : types.length > 0 ? 'told' : ''
  return html`<td class="lane ${line} ${mark}">${types.map(type => html`<span class="what mono">${breakable(type)}</span>`)}</td>`
}

/** Long names may break behind an underscore. */
function breakable(type: string): readonly TemplateResult[] {
  return type.split(/(?<=_)/).map(part => html`${part}<wbr>`)
}

const EMPTY =
  empty(html`<p>No call yet. Open the <a href="/dev/client">browser client</a> in two tabs and call from one
  to the other, or let <a href="#simulator">fake people</a> call you.</p>`)
const SHOWN = 6
/** How many of the first are open unless the reader closes them. */
const OPEN = 3
const UNSEEN_MAX = 20
