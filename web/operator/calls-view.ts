/** Calls that go on or ended lately, one call as a time line with why it ended so, and the calls that a person remembers. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { ageOf, lapseOf, spanOf, whenOf } from '../shared/figures.ts'
import { type CallView, MOMENT_WORDS, type Moment, STATUS_WORDS, whyOf } from './call-words.ts'
import type { Page, ReplyOf } from './page.ts'
import { asking, type Content, facts, listed, section, textIn, thing } from './parts.ts'

type Listed = ReplyOf<'GET calls'>['items'][number]
type Remembered = ReplyOf<'GET users/{ref}/calls'>['items'][number]

export function callsView(page: Page, id: string): TemplateResult {
  const live = id !== 'ended'
  const open = (event: SubmitEvent) => {
    event.preventDefault()
    location.hash = `#call/${textIn(event.target, 'callId')}`
  }
  return html`<section><header><h1 tabindex="-1">Calls</h1>
      <button type="button" class="small" @click=${() => page.refresh()}>Refresh</button></header>
    <nav class="tabs" aria-label="Which"><a href="#calls" aria-current=${live ? 'true' : nothing}>Live</a>
      <a href="#calls/ended" aria-current=${live ? nothing : 'true'}>Ended in the last day</a></nav>
    ${listed(page, 'GET calls', { live }, items => callList(items, live))}
    <form class="search" @submit=${open}><label>A call by its id
      <input name="callId" inputmode="numeric" pattern="[0-9]{1,20}" required autocomplete="off"></label><button>Open</button></form>
  </section>`
}

function callList(calls: readonly Listed[], live: boolean): Content {
  if (calls.length === 0)
    return html`<p class="soft">${live ? 'No live calls.' : 'No call has ended in the last day.'}</p>`
  return html`<ol class="rows">${calls.map(
    ({ callId, status, participants, createdAt }) => html`<li><a class="row" href="#call/${callId}">
      <span class="what">${participants.map(({ displayName }) => displayName).join(', ')}</span>
      <span class="badge ${status}">${STATUS_WORDS[status]}</span>
      <span class="soft">${ageOf(Date.parse(createdAt), Date.now())} ago</span></a></li>`,
  )}</ol>`
}

/** Calls as a person remembers them; the server has the time line of a call for a day. */
export function historyList(page: Page, calls: readonly Remembered[]): Content {
  if (calls.length === 0) return html`<p class="soft">The server remembers no call of theirs.</p>`
  return html`<ol class="rows">${calls.map(call => {
    const { callId, direction, status, peers, createdAt } = call
    const line = html`<span class="what">${direction === 'outgoing' ? 'to' : 'from'} ${peers.map(({ displayName }) => displayName).join(', ')}</span>
      <span class="badge ${status}">${status}</span><span class="soft">${whenOf(createdAt)}</span>`
    return page.may('calls')
      ? html`<li><a class="row" href="#call/${callId}">${line}</a></li>`
      : html`<li class="row">${line}</li>`
  })}</ol>`
}

export function callView(page: Page, callId: string): TemplateResult {
  const answer = page.reply('GET calls/{callId}', { callId })
  return thing(
    html`<a href="#calls">All calls</a>`,
    'Call',
    answer,
    call => html`${about(page, call)}${people(page, call)}${section('What happened', timeLine(call))}`,
  )
}

function about(page: Page, call: CallView): TemplateResult {
  const { callId, status, startedAt, endedAt, createdAt, isVideo } = call
  const end = () =>
    page.act('The call is ended for everybody.', link =>
      link.ask('POST calls/{callId}/end', { params: { callId } }),
    )
  const why = whyOf(call)
  return html`<section><header><h1 tabindex="-1">${isVideo ? 'Video call' : 'Call'}</h1>
      <span class="badge ${status}">${STATUS_WORDS[status]}</span></header>
    ${why === undefined ? nothing : html`<p class="why">${why}</p>`}
    ${facts([
      ['Call id', html`<span class="mono">${callId}</span>`],
      ['Began', whenOf(createdAt)],
      ['Answered', startedAt === undefined ? undefined : `after ${spanBetween(createdAt, startedAt)}`],
      ['Talked', startedAt && endedAt ? spanBetween(startedAt, endedAt) : undefined],
    ])}
    ${endedAt === undefined ? html`<p class="buttons">${asking(page, 'End the call', 'End it for everybody?', end)}</p>` : nothing}
    </section>`
}

function people(page: Page, { callId, participants, endedAt }: CallView): TemplateResult {
  const remove = (userId: string, displayName: string) => () =>
    page.act(`${displayName} is out of the call.`, link =>
      link.ask('POST calls/{callId}/remove', { params: { callId }, body: { ref: `id:${userId}` } }),
    )
  return section(
    'People',
    html`<ol class="rows">${participants.map(
      ({ userId, displayName, state, isHost, talkedIn }) => html`<li class="participant">
        <span class="what">${page.may('users') ? html`<a href="#person/${userId}">${displayName}</a>` : displayName}</span>
        <span class="badge">${state}</span>
        <span class="soft">${[isHost ? 'host' : '', talkedIn > 0 ? `${spanOf(talkedIn * 1000)} in it` : ''].filter(Boolean).join(' · ')}</span>
        ${endedAt === undefined && IN_CALL.has(state) ? asking(page, 'Remove', `Remove ${displayName} from the call?`, remove(userId, displayName)) : nothing}
      </li>`,
    )}</ol>`,
  )
}

/** Each person has a lane, and what happened runs down; in a narrow window it is a list. */
function timeLine({ timeLine, participants, createdAt }: CallView): Content {
  if (timeLine.length === 0) return html`<p class="soft">Nothing is known of it any more.</p>`
  const nameOf = (userId: string) =>
    participants.find(person => person.userId === userId)?.displayName ?? userId
  const lapse = ({ at }: Moment) => lapseOf(Date.parse(createdAt), Date.parse(at))
  return html`<div class="scroll wide" tabindex="0" role="region" aria-label="Time line of the call">
    <table class="time-line">
      <thead><tr><th scope="col">Time</th>${participants.map(({ displayName }) => html`<th scope="col">${displayName}</th>`)}</tr></thead>
      <tbody>${timeLine.map(
        moment => html`<tr><th scope="row" class="mono">${lapse(moment)}</th>
          ${cells(moment, participants, wordsOf(moment, nameOf))}</tr>`,
      )}</tbody>
    </table></div>
    <ol class="narrow" aria-label="Time line of the call">${timeLine.map(
      moment => html`<li class="moment"><span class="mono soft">${lapse(moment)}</span>
        <span class=${moment.event}>${[moment.userIds.map(nameOf).join(', '), wordsOf(moment, nameOf)].filter(Boolean).join(' ')}</span></li>`,
    )}</ol>`
}

function wordsOf({ event, userIds, byUserId }: Moment, nameOf: (userId: string) => string): string {
  if (event === 'ended' && byUserId !== undefined) return `${nameOf(byUserId)} ends the call`
  const isByOther = byUserId !== undefined && !userIds.includes(byUserId)
  return `${MOMENT_WORDS[event]}${isByOther ? ` by ${nameOf(byUserId)}` : ''}`
}

function cells({ event, userIds }: Moment, participants: CallView['participants'], words: string): Content {
  if (userIds.length === 0) return html`<td class="all" colspan=${participants.length}>${words}</td>`
  return participants.map(({ userId }) =>
    userIds.includes(userId) ? html`<td class=${event}>${words}</td>` : html`<td></td>`,
  )
}

function spanBetween(from: string, to: string): string {
  return spanOf(Date.parse(to) - Date.parse(from))
}

/** States of people who can still be taken out. */
const IN_CALL: ReadonlySet<string> = new Set(['joined', 'invited', 'ringing', 'lost'])
