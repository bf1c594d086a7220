/** Where the user is signed in. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import { programName, shownName } from '../../src/ui/names.ts'
import { timeView, whenText } from '../../src/ui/when.ts'
import type { App } from './app.ts'
import type { State, UserSession } from './state.ts'
import type { View } from './view-parts.ts'

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
