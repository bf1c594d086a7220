/** Codes and messages as they leave. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { LetterFact } from '../../src/operations/console/events.ts'
import { manyOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { type Content, command, copyButton, empty, opening, section, shownOf } from './parts.ts'
import type { At, Page } from './state.ts'

const list = new KeyedList<At<LetterFact>>('ol', 'rows codes', ({ sequence }) => sequence)

export function codesView(page: Page): TemplateResult {
  const { letters } = page.state
  const { shown, more } = shownOf(page, 'codes', letters, SHOWN)
  const content =
    letters.length === 0
      ? emptyCodes(page)
      : html`${list.show(shown, letter => letterRow(page, letter))}${more}`
  return section('codes', 'Codes and messages', simulated(page), content)
}

function simulated({ state }: Page): Content {
  if (state.simulatedLetters === 0) return nothing
  return html`<span class="soft">and ${manyOf(state.simulatedLetters, 'code')} for simulated people</span>`
}

function letterRow(page: Page, letter: At<LetterFact>): TemplateResult {
  const { sequence, atMs, channel, to, text, otp } = letter
  const about = html`<span class="to">${to}</span><span class="soft">${channel === 'sms' ? 'SMS' : 'mail'} · ${timeOf(atMs)}</span>`
  const message = () => html`<pre class="message">${text.trim()}</pre>`
  if (otp === undefined) return opening(page, `letter ${sequence}`, true, about, message)
  return html`<div class="code">
      ${copyButton(page, `code ${sequence}`, otp, html`<strong>${otp}</strong>`, `Copy code ${otp} for ${to}`)}
    </div>
    ${opening(page, `letter ${sequence}`, false, about, message)}`
}

function emptyCodes(page: Page): TemplateResult {
  const login = `curl -s ${location.origin}/app/api/login -H 'content-type: application/json' -d '{"email":"ann@example.org"}'`
  return empty(html`<p>No code yet. Sign in with the <a href="/dev/client">browser client</a>, with your app, or with</p>
    ${command(page, login)}`)
}

const SHOWN = 4
