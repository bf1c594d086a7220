/** The actors' work so far, by kind. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { ConsoleState } from '../../src/operations/console/events.ts'
import { countOf } from '../shared/figures.ts'
import { section } from './parts.ts'
import type { Page } from './state.ts'

type Figures = ConsoleState['actors'][number]

export function actorsView({ state }: Page): TemplateResult {
  const actors = state.server?.actors ?? []
  const table = html`<div class="scroll" tabindex="0" role="region" aria-label="table of actors"><table class="figures">
    <thead><tr><th scope="col">kind</th><th scope="col" class="number">live</th><th scope="col" class="number">turns</th>
      <th scope="col" class="number">per turn</th><th scope="col" class="number">deepest mailbox</th>
      <th scope="col" class="number">restarts</th></tr></thead>
    <tbody>${actors.map(figuresRow)}</tbody>
  </table></div>`
  const none = html`<p class="soft">No actor has run yet.</p>`
  return section('actors', 'Actors', nothing, actors.length === 0 ? none : table)
}

function figuresRow({ kind, live, turns, handlingMs, mailboxDepthMax, restarts }: Figures): TemplateResult {
  return html`<tr><td class="mono">${kind}</td><td class="number">${countOf(live)}</td>
    <td class="number">${countOf(turns)}</td><td class="number">${perTurn(handlingMs, turns)}</td>
    <td class="number">${countOf(mailboxDepthMax)}</td>
    <td class="number ${restarts > 0 ? 'bad' : ''}">${countOf(restarts)}</td></tr>`
}

function perTurn(handlingMs: number, turns: number): string {
  if (turns === 0) return '–'
  const micros = (handlingMs / turns) * 1000
  return micros < 1000 ? `${micros.toFixed(0)} µs` : `${(micros / 1000).toFixed(1)} ms`
}
