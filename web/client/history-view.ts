/** Calls that were, those that one missed among them, and the way back into one that goes on. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { PastCall } from '../../src/app/app.ts'
import { durationText } from '../../src/ui/call/status.ts'
import { whenText } from '../../src/ui/when.ts'
import type { App } from './app.ts'
import { personName } from './names.ts'
import type { State } from './state.ts'
import { namesText, type View } from './view-parts.ts'

export function historyView(state: State, app: App): View {
  const { history, missedCalls, call } = state
  const past = history.filter(({ callId }) => callId !== call?.callId)
  if (past.length === 0) return nothing
  return html`<section class="card">
    <h2>Calls ${missedCalls > 0 ? html`<span class="badge">${missedCalls} missed</span>` : nothing}</h2>
    <ul class="list history">${past.map(one => pastCallView(state, one, app))}</ul>
    ${
      missedCalls > 0
        ? html`<button class="plain" @click=${() => app.act('seen', () => app.markSeen())}>I have seen them</button>`
        : nothing
    }
  </section>`
}

function pastCallView({ doing, call, connection }: State, past: PastCall, app: App): TemplateResult {
  const { callId, direction, status, isVideo, peers, createdAt, durationIn } = past
  const isMissed = status === 'missed' && direction === 'incoming'
  const facts = [
    direction === 'outgoing' ? 'outgoing' : 'incoming',
    isVideo ? 'video' : 'audio',
    STATUSES[status],
    ...(durationIn > 0 ? [durationText(durationIn)] : []),
  ]
  return html`<li>
    <span class="arrow" aria-hidden="true">${direction === 'outgoing' ? '↗' : '↙'}</span>
    <span class="grow"><span class="name ${isMissed ? 'bad' : ''}">${namesText(peers.map(personName))}</span>
      <span class="quiet facts">${facts.filter(fact => fact !== '').join(', ')}</span></span>
    <time class="quiet" datetime=${createdAt}>${whenText(new Date(createdAt))}</time>
    ${
      status === 'active' && call === undefined
        ? html`<button ?disabled=${doing.has('rejoin') || connection !== 'connected'}
          @click=${() => app.act('rejoin', () => app.calls.rejoin(callId))}>Come back</button>`
        : nothing
    }
  </li>`
}

const STATUSES: Readonly<Record<PastCall['status'], string>> = {
  active: 'goes on',
  ended: '',
  missed: 'missed',
  declined: 'declined',
  cancelled: 'given up',
  failed: 'failed',
}
