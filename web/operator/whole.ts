/** The whole page, as a function of what it holds. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { auditView } from './audit-view.ts'
import { callsView, callView } from './calls-view.ts'
import type { Page } from './page.ts'
import { peopleView } from './people-view.ts'
import { personView } from './person-view.ts'
import { reportView } from './report-view.ts'
import { reportsView } from './reports-view.ts'
import { minutesLeft } from './session.ts'
import { signInView } from './sign-in-view.ts'

/** The views by the name in the address, each with the scope that its key needs; the first ones are in the menu. */
const VIEWS: Readonly<Record<string, View>> = {
  reports: { title: 'Reports', scope: 'reports', menu: 'reports', show: reportsView },
  people: { title: 'People', scope: 'users', menu: 'people', show: peopleView },
  calls: { title: 'Calls', scope: 'calls', menu: 'calls', show: callsView },
  audit: { title: 'Audit', scope: 'audit', menu: 'audit', show: auditView },
  report: { title: 'Report', scope: 'reports', menu: 'reports', show: reportView },
  person: { title: 'Person', scope: 'users', menu: 'people', show: personView },
  call: { title: 'Call', scope: 'calls', menu: 'calls', show: callView },
}
const MENU = ['reports', 'people', 'calls', 'audit'] as const

interface View {
  readonly title: string
  readonly scope: string
  readonly menu: string
  readonly show: (page: Page, id: string) => TemplateResult
}

export function whole(page: Page): TemplateResult {
  if (page.session === undefined) return html`${head(page, undefined)}${spoken(page)}${signInView(page)}`
  const view = viewOf(page)
  return html`${head(page, view)}${spoken(page)}
    ${view === undefined ? NOTHING : page.may(view.scope) ? view.show(page, page.place.id) : closed(view)}`
}

/** The page's title. The browser remembers it, so it has no names. */
export function titleOf(page: Page): string {
  const title = page.session === undefined ? 'Sign in' : (viewOf(page)?.title ?? 'Nothing to see')
  return `${title} · Callsign operators`
}

/** The view that the address names, else the first of the menu that the key opens. */
function viewOf(page: Page): View | undefined {
  const name = MENU.find(each => page.may(VIEWS[each]!.scope))
  return VIEWS[page.place.view] ?? (name && VIEWS[name])
}

function head(page: Page, view: View | undefined): TemplateResult {
  const { session } = page
  return html`<header class="top">
    <p class="name"><img src="/operator/pages/icon.svg" alt="" width="26" height="26"> Callsign <span>operators</span></p>
    ${
      session === undefined
        ? nothing
        : html`<nav aria-label="Views">${MENU.filter(name => page.may(VIEWS[name]!.scope)).map(
            name =>
              html`<a href="#${name}" aria-current=${view?.menu === name ? 'page' : nothing}>${VIEWS[name]!.title}</a>`,
          )}</nav>
          <p class="who"><span>${session.person ?? 'Signed in'}</span> <span class=${minutesLeft(session) > 2 ? 'soft' : 'busy'}>${minutesLeft(session)} min left</span>
            <button type="button" class="small" @click=${() => page.leave(undefined)}>Sign out</button></p>`
    }
  </header>`
}

function spoken({ said }: Page): TemplateResult {
  return html`<div role="status" aria-live="polite">${
    said === undefined ? nothing : html`<p class="notice ${said.isBad ? 'bad' : 'good'}">${said.words}</p>`
  }</div>`
}

function closed({ title, scope }: View): TemplateResult {
  return html`<section><h1 tabindex="-1">${title}</h1>
    <p>Your key does not open this: it would need the scope <code>${scope}</code>. The operator can make one that has it.</p></section>`
}

const NOTHING = html`<section><h1 tabindex="-1">Nothing to see</h1>
  <p>Your key has the scope <code>console</code> alone. It needs at least one of <code>reports</code>, <code>users</code>,
  <code>calls</code> and <code>audit</code> beside it.</p></section>`
