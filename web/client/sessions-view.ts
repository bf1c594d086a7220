/** Where the user is signed in, and who asks to be let in. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from './app.ts'
import { programName, shownName } from './names.ts'
import type { AskingSignIn, State, UserSession } from './state.ts'
import { whenText } from './times.ts'
import { timeView, type View } from './view-parts.ts'

export function sessionsView({ sessions, doing }: State, app: App): View {
  if (sessions.length === 0) return nothing
  return html`<section class="card"><h2>Where you are signed in</h2>
    <ul class="list sessions">${repeat(
      sessions,
      ({ id }) => id,
      session => sessionView(session, doing, app),
    )}</ul>
    ${sessions.length < 2 ? nothing : othersView(doing, app)}</section>`
}

function sessionView(session: UserSession, doing: ReadonlySet<string>, app: App): TemplateResult {
  const { id, network, createdAt, lastUsedAt, isCurrent } = session
  const name = nameOf(session)
  const from = network === undefined ? nothing : html`from <span class="mono">${network}</span>, `
  return html`<li aria-current=${isCurrent ? 'true' : nothing}>
    <span class="grow"><span class="name" dir="auto">${name}</span>
      <span class="quiet facts">${from}since ${timeView(createdAt)}, used ${timeView(lastUsedAt)}</span></span>
    ${
      isCurrent
        ? html`<span class="good">this one</span>`
        : html`<button class="plain bad" ?disabled=${doing.has('end-session')}
          aria-label=${`End the session of ${name}, since ${whenText(new Date(createdAt))}`}
          @click=${() => app.act('end-session', () => app.sessions.end(id))}>End</button>`
    }
  </li>`
}

function othersView(doing: ReadonlySet<string>, app: App): TemplateResult {
  return html`<details><summary class="bad">End all others</summary>
    <p>Everybody but this tab is signed out of your account at once, your own other devices too.</p>
    <p><button class="bad" ?disabled=${doing.has('end-others')}
      @click=${() => app.act('end-others', () => app.sessions.endOthers())}>End them</button></p></details>`
}

function nameOf({ device, userAgent }: UserSession): string {
  return device === undefined ? programName(userAgent) : shownName(device.name)
}

/** As for devices that wait: the digits are compared before anything is let in. */
export function askingView({ asking, doing }: State, app: App): TemplateResult {
  return html`${repeat(
    asking,
    ({ id }) => id,
    signIn => askerView(signIn, doing.has('answer-sign-in'), app),
  )}`
}

function askerView(signIn: AskingSignIn, isAnswering: boolean, app: App): TemplateResult {
  const { id, signInCode, method, userAgent, network, until } = signIn
  const answer = (approve: boolean) => app.act('answer-sign-in', () => app.sessions.answer(id, approve))
  const from = network === undefined ? nothing : html` at <span class="mono">${network}</span>`
  return html`<section class="card attention" role="alert"><h2>Are you signing in elsewhere?</h2>
    <p><strong dir="auto">${programName(userAgent)}</strong>${from} has ${PROOFS[method]}, and waits. Approve only if its screen shows these digits:</p>
    <p class="digits mono" aria-label="Code of the sign-in">${signInCode}</p>
    <p class="quiet">Without an answer by ${timeView(until)}, it gets in.</p>
    <p class="row">
      <button class="main" ?disabled=${isAnswering} @click=${() => answer(true)}>It shows these: approve</button>
      <button class="bad" ?disabled=${isAnswering} @click=${() => answer(false)}>It is not me: refuse</button>
    </p></section>`
}

/** The proof that a waiting sign-in has given. */
const PROOFS: Readonly<Record<AskingSignIn['method'], string>> = {
  email: 'the code that went to your email address',
  phone: 'the code that went to your phone',
  server: 'a sign-in token of this app’s own service',
}
