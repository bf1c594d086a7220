/** The user's passkeys, their data, and the dialog that asks who they are. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { LoginMethod } from '../../src/app/app.ts'
import type { App } from './app.ts'
import type { ProofAsked, State } from './state.ts'
import { whenText } from './times.ts'
import { timeView, type View } from './view-parts.ts'

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

/** Not modal: a call can be answered beside it. */
export function proofView({ proof, doing }: State, app: App): View {
  if (proof === undefined) return nothing
  const { needed, sentence } = proof
  const hasCode = needed.ways.includes('code')
  const isWaiting = doing.has('proof')
  const onKey = ({ key }: KeyboardEvent) => {
    if (key === 'Escape') app.account.refuse(needed)
  }
  return html`<dialog class="card attention proof" aria-labelledby="proof-title" @keydown=${onKey}>
    <h2 id="proof-title">Is it you?</h2>
    <p>Whoever holds this device for a minute must not take your account. Confirm who you are, and it goes on.</p>
    ${sentence === undefined ? nothing : html`<p class="bad" role="alert">${sentence}</p>`}
    ${
      needed.ways.includes('passkey')
        ? html`<button class="main wide" ?disabled=${isWaiting}
            @click=${() => app.act('proof', () => app.account.byPasskey(needed))}>Use a passkey</button>`
        : nothing
    }
    ${hasCode ? codeView(proof, isWaiting, app) : nothing}
    ${hasCode || needed.ways.includes('passkey') ? nothing : html`<p>You sign in by a provider, which this page can’t ask.</p>`}
    <p class="row">
      <button class="plain" @click=${() => app.account.refuse(needed)}>Not now</button>
      ${
        hasCode
          ? html`<button class="plain" ?disabled=${isWaiting}
              @click=${() => app.act('proof', () => app.account.sendCode(needed))}>${
                needed.sentTo === undefined ? 'Send me a code' : 'Another code'
              }</button>`
          : nothing
      }
    </p>
  </dialog>`
}

function codeView({ needed, address }: ProofAsked, isWaiting: boolean, app: App): View {
  if (needed.sentTo === undefined) return nothing
  const confirm = (otp: string) => app.confirmProof(needed, otp)
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const otp = String(new FormData(event.currentTarget as HTMLFormElement).get('otp')).trim()
    void app.act('proof', () => confirm(otp))
  }
  const onFetch = (to: string) => app.act('proof', async () => confirm(await app.fetchCode(to)))
  return html`<form class="code" @submit=${onSubmit}>
      <label><span>Code <span class="quiet">sent to ${needed.sentTo}</span></span>
        <input name="otp" required inputmode="numeric" autocomplete="one-time-code" maxlength="6" pattern="[0-9]{6}"
          title="6 digits" autofocus>
      </label>
      <p class="row"><button class="main" ?disabled=${isWaiting}>Confirm</button>
        ${
          address === undefined
            ? nothing
            : html`<button type="button" ?disabled=${isWaiting}
                @click=${() => onFetch(address)}>Fetch the code and confirm</button>`
        }</p>
    </form>`
}
