/** The queue of reports, longest waiting first, and the closed ones. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { ageOf } from '../shared/figures.ts'
import type { Page, ReplyOf } from './page.ts'
import { type Content, listed } from './parts.ts'

type Report = ReplyOf<'GET reports'>['items'][number]

export function reportsView(page: Page, id: string): TemplateResult {
  const state = STATES.find(([name]) => name === id)?.[0] ?? 'open'
  return html`<section><header><h1 tabindex="-1">Reports</h1>
      <button type="button" class="small" @click=${() => page.refresh()}>Refresh</button></header>
    <nav class="tabs" aria-label="By state">${STATES.map(
      ([name, title]) =>
        html`<a href="#reports/${name}" aria-current=${name === state ? 'true' : nothing}>${title}</a>`,
    )}</nav>
    ${listed(page, 'GET reports', { state }, items => reportList(items, 'whom', EMPTY[state]!))}
  </section>`
}

/** Each with whom it is about, or with its state where that is plain. */
export function reportList(reports: readonly Report[], also: 'whom' | 'state', empty: string): Content {
  if (reports.length === 0) return html`<p class="soft">${empty}</p>`
  return html`<ol class="rows">${reports.map(
    ({ reportId, reason, reported, state, createdAt }) => html`<li><a class="row" href="#report/${reportId}">
      <span class="what">${REASONS[reason]}</span>
      ${also === 'whom' ? html`<span>${reported.displayName}</span>` : html`<span class="badge ${state}">${STATE_WORDS[state]}</span>`}
      <span class="soft">${ageOf(Date.parse(createdAt), Date.now())} ago</span>
    </a></li>`,
  )}</ol>`
}

export const REASONS: Readonly<Record<Report['reason'], string>> = {
  harassment: 'Bullying or harassment',
  threat: 'Threats or violence',
  hate: 'Hate',
  sexual: 'Unwanted sexual content',
  'child-safety': 'A child is in danger',
  'self-harm': 'Suicide or self-harm',
  impersonation: 'Pretends to be another person',
  fraud: 'Fraud or scam',
  spam: 'Spam or advertising',
  other: 'Something else',
}
const STATES = [
  ['open', 'Open'],
  ['in-review', 'In review'],
  ['resolved', 'Resolved'],
  ['dismissed', 'Dismissed'],
] as const
export const STATE_WORDS: Readonly<Record<Report['state'], string>> = Object.fromEntries(
  STATES.map(([name, title]) => [name, title.toLowerCase()]),
) as Record<Report['state'], string>
const EMPTY: Readonly<Record<Report['state'], string>> = {
  open: 'No report waits.',
  'in-review': 'No report is in review.',
  resolved: 'No report was resolved lately.',
  dismissed: 'No report was dismissed lately.',
}
