/** The user's passkeys, and their data. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { LoginMethod } from '../../src/app/app.ts'
import { timeView, whenText } from '../../src/ui/when.ts'
import type { App } from './app.ts'
import type { State } from './state.ts'
import type { View } from './view-parts.ts'

export function accountView(state: State, app: App): TemplateResult {
  return html`${closedRingsView(state, app)} ${passkeysView(state, app)} ${dataView(state, app)}`
}

function closedRingsView({ closedRings, doing }: State, app: App): View {
  if (closedRings === 'unsupported') return nothing
  const isOn = closedRings === 'on'
  const onClick = (event: Event) => {
    // It changes once the browser has agreed.
    event.preventDefault()
    void app.act('closed-rings', () => app.closedRings.turn(!isOn))
  }
  return html`<section class="card"><h2>Calls when this page is closed</h2>
    <label class="switch"><input type="checkbox" role="switch" .checked=${isOn} ?disabled=${doing.has('closed-rings')}
      @click=${onClick}> Ring me when this page is closed</label>
    <p class="quiet">You stay signed in in this browser, and it shows who calls.</p></section>`
}

function passkeysView({ passkeys, passkeysHere, doing }: State, app: App): View {
  if (passkeysHere === 'off') return nothing
  return html`<section class="card"><h2>Passkeys</h2>
    ${
      passkeys.length === 0
        ? html`<p class="quiet">With one you sign in by fingerprint, face or PIN, in place of a code.</p>`
        : html`<ul class="list passkeys">${repeat(
            passkeys,
            ({ id }) => id,
            passkey => passkeyView(passkey, doing, app),
          )}</ul>`
    }
    ${
      passkeysHere === 'elsewhere'
        ? html`<p class="quiet">Passkeys belong to a domain: open this page at
            <a href=${`http://localhost:${location.port}${location.pathname}`}>localhost</a> to add one.</p>`
        : html`<button ?disabled=${doing.has('add-passkey')}
            @click=${() => app.act('add-passkey', () => app.account.addPasskey())}>Add a passkey</button>`
    }</section>`
}

function passkeyView(passkey: LoginMethod, doing: ReadonlySet<string>, app: App): TemplateResult {
  const { label = 'Passkey', backedUp, addedAt, lastUsedAt } = passkey
  return html`<li>
    <span class="grow"><span class="name" dir="auto">${label}</span>
      <span class="quiet facts">${backedUp ? 'synced, ' : nothing}added ${timeView(addedAt)}, used ${timeView(lastUsedAt)}</span></span>
    <button class="plain bad" ?disabled=${doing.has('remove-passkey')}
      aria-label=${`Remove the passkey ${label}, added ${whenText(new Date(addedAt))}`}
      @click=${() => app.act('remove-passkey', () => app.account.removePasskey(passkey))}>Remove</button>
  </li>`
}

function dataView({ doing }: State, app: App): TemplateResult {
  return html`<section class="card"><h2>Your account</h2>
    <button ?disabled=${doing.has('export')}
      @click=${() => app.act('export', () => app.account.save())}>Save what the server has of it</button>
    <details><summary class="bad">End the account</summary>
      <p>You are signed out everywhere at once. After seven days your name, addresses, contacts and calls are erased; signing in
        before then keeps the account.</p>
      <p><button class="bad" ?disabled=${doing.has('delete')}
        @click=${() => app.act('delete', () => app.endAccount())}>End it</button></p></details></section>`
}
