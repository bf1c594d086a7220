/** A moderator's key is traded for a session. */

import { html, type TemplateResult } from 'lit-html'
import type { Page } from './page.ts'
import { textIn } from './parts.ts'
import { startSession } from './session.ts'

export function signInView(page: Page): TemplateResult {
  return html`<section class="sign-in"><h1 tabindex="-1">Sign in</h1>
    <form @submit=${(event: SubmitEvent) => signIn(page, event)}>
      <label>Your key
        <input type="password" name="key" autocomplete="off" spellcheck="false" required placeholder="csk_…" aria-describedby="about-keys">
      </label>
      <button class="main" ?disabled=${page.isBusy}>Sign in</button>
    </form>
    <p class="soft" id="about-keys">The operator makes a key for each moderator, with the scope <code>console</code> and their name. This page
      trades it for a session of fifteen minutes in this tab and does not keep it. What you change is on record under your name.</p>
  </section>`
}

async function signIn(page: Page, event: SubmitEvent): Promise<void> {
  event.preventDefault()
  const form = event.target as HTMLFormElement
  const key = textIn(form, 'key')
  page.change(() => Object.assign(page, { isBusy: true, said: undefined }))
  try {
    if (!KEY_FORM.test(key)) throw new Error('not a key')
    const session = await startSession(key)
    form.reset()
    page.change(() => Object.assign(page, { session }))
  } catch (error) {
    const { code = '' } = error as { readonly code?: string }
    page.change(() => {
      page.said = { words: WORDS[code] ?? 'That is no key of this server.', isBad: true }
    })
  } finally {
    page.change(() => Object.assign(page, { isBusy: false }))
  }
}

const KEY_FORM = /^csk_[0-9a-f]{12}_[0-9a-f]{64}$/
const WORDS: Readonly<Record<string, string>> = {
  SCOPE_MISSING: 'That key is for a program. Moderators need one with the scope console, which names them.',
  SERVER_KEY_REVOKED: 'That key was revoked. Ask the operator for another.',
  SERVER_KEY_EXPIRED: 'That key has expired. Ask the operator for another.',
  RATE_LIMITED: 'That was too often. Wait a minute, and try again.',
  NO_ANSWER: 'The server does not answer. Look whether it runs, and try again.',
}
