/** One report: its words, its people, and the moderator's decision. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { whenOf } from '../shared/figures.ts'
import type { Page, ReplyOf } from './page.ts'
import { facts, personLink, section, textIn, thing } from './parts.ts'
import { REASONS, STATE_WORDS } from './reports-view.ts'

type Report = ReplyOf<'GET reports/{reportId}'>

export function reportView(page: Page, reportId: string): TemplateResult {
  const answer = page.reply('GET reports/{reportId}', { reportId })
  return thing(
    html`<a href="#reports">All reports</a>`,
    'Report',
    answer,
    report => html`${account(page, report)}${handling(page, report)}`,
  )
}

function account(page: Page, report: Report): TemplateResult {
  const { reported, reporter, text, callId, isCallKnown, state, createdAt, stateSince } = report
  return html`<section><header><h1 tabindex="-1">${REASONS[report.reason]}</h1>
      <span class="badge ${state}">${STATE_WORDS[state]}</span></header>
    ${facts([
      ['Reported', name(page, reported)],
      ['By', reporter === undefined ? 'a person whose account is erased' : name(page, reporter)],
      ['When', whenOf(createdAt)],
      ['In this state', state === 'open' ? undefined : `since ${whenOf(stateSince)}`],
      ['Last handled by', report.handledBy],
      ['Call', callId === undefined ? undefined : call(page, callId, isCallKnown)],
    ])}
    ${text === undefined ? html`<p class="soft">Without words of their own.</p>` : html`<blockquote dir="auto">${text}</blockquote>`}
    <p class="soft">The reported person is not told, neither that there is a report nor by whom. Keep it so.</p>
  </section>`
}

function name(page: Page, person: { readonly userId: string; readonly displayName: string }) {
  return page.may('users') ? personLink(person) : person.displayName
}

function call(page: Page, callId: string, isKnown: boolean): TemplateResult {
  const known = isKnown
    ? 'The server knows that both were in it.'
    : 'The server does not know that both were in it: it was too long ago, or is not so.'
  return html`${page.may('calls') ? html`<a href="#call/${callId}">${callId}</a>` : callId}. ${known}`
}

function handling(page: Page, { reportId, state, note = '' }: Report): TemplateResult {
  const change = (to: Report['state'] | undefined, done: string) => (event: Event) => {
    event.preventDefault()
    const form = (event.currentTarget as HTMLElement).closest('form')
    const body = { note: textIn(form, 'note'), ...(to !== undefined && { state: to }) }
    void page.act(done, link => link.ask('PATCH reports/{reportId}', { params: { reportId }, body }))
  }
  const button = (to: Report['state'], label: string, done: string) =>
    to === state
      ? nothing
      : html`<button type="button" ?disabled=${page.isBusy} @click=${change(to, done)}>${label}</button>`
  return section(
    'Decide',
    html`<form class="decide" @submit=${change(undefined, 'The note is kept.')}>
      <label>Note <span class="soft">for moderators alone; it is kept with each button</span>
        <textarea name="note" rows="3" maxlength="2000" .value=${note}></textarea></label>
      <p class="buttons">${button('in-review', 'Take into review', 'The report is in review.')}
        ${button('resolved', 'Resolve', 'The report is resolved.')}
        ${button('dismissed', 'Dismiss', 'The report is dismissed.')}
        ${button('open', 'Open again', 'The report is open again.')}
        <button ?disabled=${page.isBusy}>Keep the note</button></p>
      <p class="soft">Resolve a report that you have acted on, dismiss one that needs no act. To act on the person, open them above.</p>
    </form>`,
  )
}
