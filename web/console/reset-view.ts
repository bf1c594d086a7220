/** "Reset everything": a button, and the question that it asks first. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { ResetRequest } from '../../src/operations/console/events.ts'
import { tellServer } from './feed.ts'
import type { Page } from './state.ts'

export function resetButton(page: Page): TemplateResult {
  const { server, reset } = page.state
  const ask = () => page.change(state => Object.assign(state.reset, { isAsked: true, problem: undefined }))
  return html`<button type="button" class="small" ?disabled=${server === undefined || server.resetRefusal !== undefined}
    title=${server?.resetRefusal ?? nothing} aria-expanded=${reset.isAsked ? 'true' : 'false'} @click=${ask}>Reset everything</button>`
}

export function resetQuestion(page: Page): TemplateResult | typeof nothing {
  const { isAsked, isSending, problem } = page.state.reset
  if (!isAsked) return nothing
  const keep = () => page.change(state => Object.assign(state.reset, { isAsked: false }))
  return html`<div class="notice" role="alertdialog" aria-labelledby="reset-question">
    <p id="reset-question">Delete every account, call and log entry of this server? It starts again with a new log and new
      keys: apps have to pin those, and everybody signs up anew. Nothing can bring the old ones back.</p>
    <p class="bad" role="alert">${problem ?? nothing}</p>
    <button type="button" ?disabled=${isSending} @click=${() => send(page)}>Delete everything</button>
    <button type="button" class="quiet" ?disabled=${isSending} @click=${keep}>Keep it</button>
  </div>`
}

async function send(page: Page): Promise<void> {
  page.change(({ reset }) => Object.assign(reset, { isSending: true, problem: undefined }))
  const problem = await tellServer('/dev/reset', REQUEST)
  page.change(({ reset }) =>
    Object.assign(reset, { isSending: false, isAsked: problem !== undefined, problem }),
  )
}

const REQUEST: ResetRequest = { confirm: 'reset everything' }
