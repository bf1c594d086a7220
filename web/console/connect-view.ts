/** An app's needs to reach this server: addresses by where it runs, the log's keys, and code to begin with. */

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { encodeQR } from 'qr'
import type { ConsoleState } from '../../src/operations/console/events.ts'
import { command, copyButton, opening, section } from './parts.ts'
import { type Language, snippetFor, socketOf } from './snippets.ts'
import type { Page } from './state.ts'

type Addresses = ConsoleState['addresses']

export function connectView(page: Page): TemplateResult {
  const { server } = page.state
  if (server === undefined) return section('connect', 'Connect your app', nothing, nothing)
  const { addresses, log } = server
  return section(
    'connect',
    'Connect your app',
    nothing,
    html`<dl class="facts addresses">
        ${addressRow(page, 'Browser, iOS simulator', addresses.local)}
        ${addressRow(page, 'Android emulator', emulatorAddress(addresses))}
        ${addresses.phones === undefined ? nothing : addressRow(page, 'Phones on this network', addresses.phones)}
      </dl>
      ${addresses.phones === undefined ? forPhones(page) : qrCode(addresses.phones)}
      ${opening(page, 'connect keys', false, html`Keys to pin`, () => keys(page, log))}
      ${opening(page, 'connect code', false, html`Code to begin with`, () => code(page, server))}`,
  )
}

function addressRow(page: Page, where: string, address: string): TemplateResult {
  return html`<dt>${where}</dt><dd>${copyButton(page, `address ${where}`, address, html`<code>${address}</code>`, `Copy ${address}`)}</dd>`
}

/** The emulator's name for the machine that it runs on (developer.android.com, "Set up Android Emulator networking"). */
function emulatorAddress({ local }: Addresses): string {
  return local.replace(/\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?=:|$)/, '//10.0.2.2')
}

function forPhones(page: Page): TemplateResult {
  return html`<p class="soft">Phones on the same network: start the server with</p>${command(page, 'npm start -- --lan')}`
}

/** Black on white, so that a camera reads it in the dark as well. */
function qrCode(address: string): TemplateResult {
  const rows = encodeQR(address, 'raw', { border: 2 })
  const path = rows
    .flatMap((row, y) => row.map((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return html`<svg class="qr" role="img" aria-label="QR code of ${address}" shape-rendering="crispEdges"
    viewBox=${`0 0 ${rows.length} ${rows.length}`}>${svg`<path d=${path}></path>`}</svg>`
}

function keys(page: Page, { vkey, vrfPublicKey, index }: ConsoleState['log']): TemplateResult {
  return html`<p class="soft">vkey</p>${command(page, vkey)}<p class="soft">vrfPublicKey</p>${command(page, vrfPublicKey)}
    ${index === undefined ? nothing : html`<p class="soft">indexVkey</p>${command(page, index.vkey)}`}
    <p class="soft">They are this development server's own. <a href="/app/api/meta">meta</a> has them as well, under <code>log</code>.</p>`
}

function code(page: Page, { addresses, log }: ConsoleState): TemplateResult {
  const { connect } = page.state
  const { language, isOnPhone } = connect
  const usual = language === 'kotlin' ? emulatorAddress(addresses) : addresses.local
  const server = isOnPhone && addresses.phones !== undefined ? addresses.phones : usual
  const text = snippetFor(language, { ...log, server })
  const choose = (chosen: Language) => page.change(() => Object.assign(connect, { language: chosen }))
  const turn = () => page.change(() => Object.assign(connect, { isOnPhone: !isOnPhone }))
  return html`<div class="choices" role="group" aria-label="language">${LANGUAGES.map(
    ([
      name,
      label,
    ]) => html`<button type="button" class="small" aria-pressed=${name === language ? 'true' : 'false'}
        @click=${() => choose(name)}>${label}</button>`,
  )}${
    addresses.phones === undefined
      ? nothing
      : html`<label><input type="checkbox" .checked=${isOnPhone} @change=${turn}> on a phone</label>`
  }${copyButton(page, `code ${language} ${server}`, text, 'Copy', `Copy the code`)}</div>
    <pre tabindex="0" aria-label="code to begin with">${text}</pre>
    <p class="soft">STOMP is at <code>${socketOf(server)}</code>; <a href="/docs/api">the API</a> and
      <a href="/docs/events">the events</a> say the rest.</p>`
}

const LANGUAGES: readonly (readonly [Language, string])[] = [
  ['typescript', 'TypeScript'],
  ['swift', 'Swift'],
  ['kotlin', 'Kotlin'],
]
