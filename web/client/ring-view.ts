/** The incoming call: spoken at once by screen readers, and on top of everything else. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { Call, CallPerson } from '../../src/app/app.ts'
import type { App } from './app.ts'
import type { RingRefusal, State } from './state.ts'
import { avatar, type View } from './view-parts.ts'

export function ringsView({ rings, refusals, call, doing }: State, app: App): TemplateResult {
  return html`<div class="rings" aria-live="assertive">
    ${repeat(
      rings,
      ({ callId }) => callId,
      ring => ringView(ring, refusals.get(ring.callId), call !== undefined, doing.has('answer'), app),
    )}
  </div>`
}

function ringView(
  ring: Call,
  refusal: RingRefusal | undefined,
  isInCall: boolean,
  isAnswering: boolean,
  app: App,
): TemplateResult {
  const { caller, isVideo, isOnGoing, isVerified } = ring
  const isRefused = isVerified === false && refusal?.isQuestion !== true
  const what = isOnGoing ? 'invites you into a call' : isVideo ? 'calls with video' : 'calls'
  return html`<section class="card ring">
    ${avatar(caller.name)}
    <div class="ring-text">
      <p class="caller"><strong dir="auto">${caller.name}</strong> ${what}</p>
      ${callerView(caller)}
      <p class="quiet ${isVerified === false ? 'bad' : ''}">${checkText(isVerified, refusal)}</p>
    </div>
    <p class="row">
      <button class="main" ?disabled=${isRefused || isAnswering}
        @click=${() => app.answer(ring)}>
        ${isInCall ? 'Leave yours and answer' : 'Answer'}</button>
      <button class="bad" @click=${() => app.act('decline', () => app.calls.decline(ring))}>Decline</button>
    </p>
  </section>`
}

/** A stranger may have chosen a contact's name. */
function callerView({ isContact, alias, displayName }: CallPerson): View {
  if (isContact === false)
    return html`<p class="stranger">Not one of your contacts: the name is their own choice.</p>`
  return alias === undefined
    ? nothing
    : html`<p class="quiet">Calls themselves <span dir="auto">${displayName}</span></p>`
}

function checkText(isVerified: boolean | undefined, refusal?: RingRefusal): string {
  if (isVerified === undefined) return 'Checking whose key it is …'
  if (isVerified) return 'The call’s key is theirs: the key log proves it.'
  return refusal?.isQuestion === true ? refusal.sentence : `Not to be answered. ${refusal?.sentence ?? ''}`
}
