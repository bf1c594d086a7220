/** The page as it is drawn from the state: which parts there are, and in which order. */

import '../../src/ui/call/call-element.ts'
import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import '../../src/ui/media/ring.ts'
import '../../src/ui/home/devices.ts'
import '../../src/ui/home/proof.ts'
import { avatarView } from '../../src/ui/avatar.ts'
import { accountView } from './account-view.ts'
import type { App } from './app.ts'
import { historyView } from './history-view.ts'
import { keyView } from './key-view.ts'
import { addView, contactsView, requestsView } from './people-view.ts'
import { sessionsView } from './sessions-view.ts'
import { crowdedView, signInView } from './sign-in-view.ts'
import type { NoticeAction, State } from './state.ts'
import { CONNECTIONS, type View } from './view-parts.ts'

export function titleOf({ user, call }: State): string {
  if (user === undefined) return 'Callsign client'
  return `${call === undefined ? '' : '● '}${user.displayName} · Callsign`
}

export function pageView(state: State, app: App): TemplateResult {
  return html`${headerView(state, app)} ${noticesView(state, app)} ${questionView(state, app)} ${bodyView(state, app)}
    ${
      state.stage === 'signed-in' || state.stage === 'crowded'
        ? html`<callsign-proof .me=${app.me} .address=${app.identifier}
            .developmentInbox=${(to: string) => app.fetchCode(to)}></callsign-proof>`
        : nothing
    }
    <footer class="foot quiet"><a href="/dev" target="_blank">Console</a><a href="/docs" target="_blank">Documents</a>
      <a href="/docs/api" target="_blank">API</a>
      <a href="/docs/events" target="_blank">Events</a></footer>`
}

function bodyView(state: State, app: App): View {
  switch (state.stage) {
    case 'starting':
      return html`<p class="quiet centred">One moment …</p>`
    case 'unusable':
      return html`<section class="card"><h2>Not from here</h2>
        <p>Browsers encrypt only for pages by HTTPS or from the computer itself. Open this page as
        <code>http://127.0.0.1:${location.port}${location.pathname}</code> on the computer that the server runs on.</p></section>`
    case 'forgetful':
      return html`<section class="card"><h2>Nothing can be kept here</h2>
        <p>This browser lets the page keep nothing, and a device has to keep its key. Allow cookies for this address, and
        reload.</p></section>`
    case 'signed-out':
    case 'code':
    case 'waiting':
      return signInView(state, app)
    case 'crowded':
      return crowdedView(state, app)
    case 'signed-in':
      return homeView(state, app)
  }
}

function homeView(state: State, app: App): View {
  const { call } = state
  // A call has the window to itself; a second call may ring beside it.
  if (call !== undefined)
    return html`${ringsView(state, app)}
      <callsign-call .me=${app.me} .call=${call} .media=${app.calls.media}></callsign-call>`
  const banners = html`${elsewhereView(state, app)} ${troubleView(state)}`
  const devices = html`<callsign-devices .me=${app.me}></callsign-devices>`
  if (state.restriction !== undefined) return html`${banners} ${devices}`
  return html`${banners} ${ringsView(state, app)}
    <div class="home">
      <div class="column">${requestsView(state, app)} ${contactsView(state, app)} ${addView(state, app)}</div>
      <div class="column">${historyView(state, app)} ${keyView(state)} ${devices}
        ${sessionsView(state, app)} ${accountView(state, app)}</div>
    </div>`
}

function headerView({ user, connection }: State, app: App): TemplateResult {
  return html`<header class="bar">
    <h1>Callsign</h1>
    ${
      user === undefined
        ? nothing
        : html`<p class="connection ${connection}" role="status">${CONNECTIONS[connection]}</p>
          <p class="who">${avatarView(user.displayName)}<span class="name" dir="auto">${user.displayName}</span></p>
          <button class="plain" @click=${() => app.act('sign-out', () => app.signOut())}>Sign out</button>`
    }
  </header>`
}

function ringsView({ rings }: State, app: App): TemplateResult {
  return html`<div class="rings">
    ${repeat(
      rings,
      ({ callId }) => callId,
      ring => html`<callsign-ring .me=${app.me} .call=${ring}
        @declined=${() => app.act('load', () => app.calls.loadHistory())}></callsign-ring>`,
    )}
  </div>`
}

function elsewhereView({ connection }: State, app: App): View {
  if (connection !== 'elsewhere') return nothing
  return html`<section class="card attention">
    <p>You are connected in another tab or window as the same person. Calls ring there.</p>
    <button class="main" @click=${() => app.connectHere()}>Connect here instead</button>
  </section>`
}

/** Why there is no connection, once it has failed for a while. */
function troubleView({ connection }: State): View {
  if (connection === 'unanswered') {
    return html`<section class="card attention" role="alert">
      <p><strong>The server does not answer.</strong> Is it still running? This page goes on by itself when it is there.</p>
    </section>`
  }
  if (connection !== 'blocked') return nothing
  return html`<section class="card attention" role="alert">
    <p><strong>The server answers, but its WebSocket can’t be reached,</strong> so nobody can call or be called here. A
      proxy, a virus scanner or an extension of the browser may block it: let <code>${`${location.origin.replace('http', 'ws')}/ws`}</code> through, or
      try another browser. This page goes on by itself when it is open.</p>
  </section>`
}

function questionView({ question, codes, doing }: State, app: App): View {
  if (question === undefined) return nothing
  const { sentence, userId } = question
  const code = userId === undefined ? undefined : codes.get(userId)
  return html`<section class="card attention" role="alert">
    <p>${sentence}</p>
    ${code === undefined ? nothing : html`<p class="digits mono" aria-label="Code to compare">${code}</p>`}
    <p class="row">
      <button class="main" ?disabled=${doing.has('go-on')}
        @click=${() => app.act('go-on', () => app.goOn(question))}>Go on</button>
      ${
        userId === undefined
          ? nothing
          : html`<button ?disabled=${doing.has('show-code')}
        @click=${() => app.act('show-code', () => app.contacts.showCode({ userId }))}>Compare a code</button>`
      }
      <button class="plain" @click=${() => app.putQuestionAway()}>Not now</button>
    </p>
  </section>`
}

function noticesView({ notices }: State, app: App): TemplateResult {
  return html`<div class="notices" aria-live="polite">
    ${repeat(
      notices,
      ({ id }) => id,
      ({
        id,
        kind,
        text,
        action,
      }) => html`<p class="notice ${kind}"><span>${text}${actionView(id, action, app)}</span>
        <button class="plain" aria-label="Close" @click=${() => app.dismiss(id)}>×</button></p>`,
    )}
  </div>`
}

function actionView(id: number, action: NoticeAction | undefined, app: App): View {
  if (action === undefined) return nothing
  const run = async () => {
    await action.run()
    app.dismiss(id)
  }
  return html` <button @click=${() => app.act(`notice-${id}`, run)}>${action.label}</button>`
}
