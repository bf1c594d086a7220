/** Requests as they are answered: the outcome of each, and behind it both bodies, without the secrets. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { RequestDetail, RequestRow } from '../../src/operations/console/events.ts'
import { manyOf, tailOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { type Content, command, empty, opening, section, shownOf } from './parts.ts'
import { nameOf, type Page } from './state.ts'

const list = new KeyedList<RequestRow>('ol', 'rows requests', ({ sequence }) => sequence)

export function requestsView(page: Page): TemplateResult {
  const { requests } = page.state
  const { isRefusedOnly } = requests
  const rows = isRefusedOnly ? requests.rows.filter(isRefused) : requests.rows
  const { shown, more } = shownOf(page, 'requests', rows, SHOWN)
  const content =
    requests.rows.length === 0
      ? emptyRequests(page)
      : rows.length === 0
        ? empty(html`<p>None of the last ${manyOf(requests.rows.length, 'request')} was refused.</p>`)
        : html`${list.show(shown, row => requestRow(page, row))}${more}`
  return section('requests', 'Requests', requests.rows.length === 0 ? nothing : filter(page), content)
}

function filter(page: Page): TemplateResult {
  const { requests } = page.state
  const turn = () => page.change(() => Object.assign(requests, { isRefusedOnly: !requests.isRefusedOnly }))
  const refused = requests.rows.filter(isRefused).length
  return html`<button type="button" class="small" aria-pressed=${requests.isRefusedOnly ? 'true' : 'false'}
    @click=${turn}>${refused} refused</button>`
}

function isRefused({ status, code }: RequestRow): boolean {
  return status >= 400 || code !== undefined
}

function requestRow(page: Page, row: RequestRow): TemplateResult {
  const { sequence, atMs, method, path, status, code, pointer, ms, unknownFields = [] } = row
  const summary = html`<span class="line"><span class="status ${classOf(row)}">${status}</span>
      <span class="method mono">${method}</span> <span class="path mono">${path}</span></span>
    <span class="line about">${code === undefined ? nothing : html`<span class="bad mono">${code}</span>`}
      ${pointer === undefined ? nothing : html`<span class="mono">${pointer || 'the body'}</span>`}
      ${unknownFields.length === 0 ? nothing : html`<span class="busy">unknown: <span class="mono">${unknownFields.join(', ')}</span></span>`}
      <span class="soft">${ms} ms · ${timeOf(atMs)}${sender(page, row)}</span></span>`
  return opening(
    page,
    `request ${sequence}`,
    false,
    summary,
    () => detail(page, row),
    () => load(page, sequence),
  )
}

function classOf(row: RequestRow): string {
  return row.status >= 500 ? 'bad' : isRefused(row) ? 'busy' : 'good'
}

function sender({ state }: Page, { userId, deviceId }: RequestRow): Content {
  if (userId === undefined) return nothing
  return html` · ${nameOf(state, userId)}${deviceId === undefined ? nothing : html` <span class="mono">${tailOf(deviceId)}</span>`}`
}

function detail({ state }: Page, { sequence }: RequestRow): Content {
  const known = state.requests.details.get(sequence)
  if (known === undefined) return html`<p class="soft">…</p>`
  if (typeof known === 'string') return html`<p class="soft">${known}</p>`
  const { route, requestId, userId, deviceId } = known
  return html`<dl class="facts">
      <dt>route</dt><dd class="mono">${route}</dd>
      <dt>request id</dt><dd class="mono">${requestId}</dd>
      ${userId === undefined ? nothing : html`<dt>user, device</dt><dd class="mono">${userId}${deviceId === undefined ? nothing : `_${deviceId}`}</dd>`}
    </dl>
    ${body('sent', known.request)}${body('answered', known.answer)}`
}

function body(what: string, text: string): TemplateResult {
  if (text === '') return html`<p class="soft">Nothing was ${what}.</p>`
  return html`<p class="soft">${what}</p><pre tabindex="0" aria-label="what was ${what}">${text}</pre>`
}

async function load(page: Page, sequence: number): Promise<void> {
  const { details } = page.state.requests
  if (typeof details.get(sequence) === 'object') return
  const found = await fetch(`/dev/requests/${sequence}`)
    .then(async answer => (answer.ok ? ((await answer.json()) as RequestDetail) : GONE))
    .catch(() => 'The server does not answer.')
  page.change(() => {
    details.set(sequence, found)
    if (details.size > DETAILS_MAX) details.delete(details.keys().next().value!)
  })
}

function emptyRequests(page: Page): TemplateResult {
  return empty(html`<p>No request yet. Each request of your app shows here, with the code and the element at fault where it
    is refused. To see one:</p>
    ${command(page, `curl -s ${location.origin}/app/api/login -H 'content-type: application/json' -d '{"emial":"ann@example.org"}'`)}`)
}

const GONE = 'The server no longer keeps this request.'
const SHOWN = 8
const DETAILS_MAX = 100
