/** The incoming call: spoken at once by screen readers, and on top of everything else. */

import { html, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from './app.ts'
import type { Ring, State } from './state.ts'
import { avatar } from './view-parts.ts'

export function ringsView({ rings, call, doing }: State, app: App): TemplateResult {
  return html`<div class="rings" aria-live="assertive">
    ${repeat(
      rings,
      ({ callId }) => callId,
      ring => ringView(ring, call !== undefined, doing.has('answer'), app),
    )}
  </div>`
}

function ringView(ring: Ring, isInCall: boolean, isAnswering: boolean, app: App): TemplateResult {
  const { callId, callerName, isVideo, isOnGoing, check } = ring
  const isRefused = typeof check === 'object'
  const what = isOnGoing ? 'invites you into a call' : isVideo ? 'calls with video' : 'calls'
  return html`<section class="card ring">
    ${avatar({ displayName: callerName })}
    <div class="ring-text">
      <p class="caller"><strong dir="auto">${callerName}</strong> ${what}</p>
      <p class="quiet ${isRefused ? 'bad' : ''}">${checkText(check)}</p>
    </div>
    <p class="row">
      <button class="main" ?disabled=${isRefused || isAnswering}
        @click=${() => app.act('answer', () => app.calls.answer(callId))}>
        ${isInCall ? 'Leave yours and answer' : 'Answer'}</button>
      <button class="bad" @click=${() => app.act('decline', () => app.calls.decline(callId))}>Decline</button>
    </p>
  </section>`
}

function checkText(check: Ring['check']): string {
  if (check === 'checking') return 'Checking whose key it is …'
  if (check === 'verified') return 'The call’s key is theirs: the key log proves it.'
  return `Not to be answered. ${check.refusal}`
}
