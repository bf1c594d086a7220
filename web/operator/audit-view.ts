/** Changes by the server API: who, what, to whom. */

import { html, type TemplateResult } from 'lit-html'
import { whenOf } from '../shared/figures.ts'
import type { Page, ReplyOf } from './page.ts'
import { type Content, listed } from './parts.ts'

type Row = ReplyOf<'GET audit'>['items'][number]

export function auditView(page: Page): TemplateResult {
  return html`<section><header><h1 tabindex="-1">Audit</h1>
      <button type="button" class="small" @click=${() => page.refresh()}>Refresh</button></header>
    <p class="soft">Each change by a server key, a moderator or the operator’s command, newest first.</p>
    ${listed(page, 'GET audit', {}, rows => rowList(page, rows))}</section>`
}

function rowList(page: Page, rows: readonly Row[]): Content {
  if (rows.length === 0) return html`<p class="soft">Nothing was changed yet.</p>`
  return html`<ol class="rows">${rows.map(
    ({ at, person, keyId, operation, target }) => html`<li class="row">
      <span class="what">${person ?? html`<span class="mono">${keyId}</span>`}</span>
      <span>${wordsOf(operation)}</span>
      <span class="mono">${linked(page, target)}</span>
      <span class="soft">${whenOf(at)}</span></li>`,
  )}</ol>`
}

/** `changeReport`: change report. */
function wordsOf(operation: string): string {
  return operation.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}

function linked(page: Page, target: string): Content {
  const [kind = '', id = ''] = target.split(':')
  const [view, scope] = TARGETS[kind] ?? []
  if (view === undefined || scope === undefined || !page.may(scope) || !/^[0-9]+$/.test(id)) return target
  return html`<a href="#${view}/${id}">${target}</a>`
}

const TARGETS: Readonly<Record<string, readonly [view: string, scope: string]>> = {
  id: ['person', 'users'],
  report: ['report', 'reports'],
  call: ['call', 'calls'],
}
