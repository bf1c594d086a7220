/** Signing in: an address, then the code that went to it. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { deviceRows } from '../../src/ui/home/device-rows.ts'
import { timeView } from '../../src/ui/when.ts'
import type { App } from './app.ts'
import type { Challenge, State } from './state.ts'

export function signInView(state: State, app: App): TemplateResult {
  if (state.stage === 'waiting') return waitingView(state, app)
  return html`<section class="card sign-in">
    ${state.challenge === undefined ? addressView(state, app) : codeView(state, state.challenge, app)}
  </section>
  ${state.challenge === undefined ? stepsView() : nothing}`
}

function addressView({ doing, namesTaken, passkeysHere }: State, app: App): TemplateResult {
  const isWaiting = doing.has('login')
  const ask = (identifier: string, name: string) => app.act('login', () => app.askForCode(identifier, name))
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const values = new FormData(event.currentTarget as HTMLFormElement)
    void ask(String(values.get('identifier')).trim(), String(values.get('name')).trim())
  }
  return html`<h2>Who is at this tab?</h2>
    <div class="people" role="group" aria-label="People to try it with">
      ${peopleFor(namesTaken).map(
        (name, at) => html`<button class=${at === 0 ? 'main' : ''} ?disabled=${isWaiting}
          @click=${() => ask(`${name.toLowerCase()}@example.org`, name)}>Be ${name}</button>`,
      )}
    </div>
    <p class="quiet or">or be yourself</p>
    <form @submit=${onSubmit}>
      <label>Email or phone
        <input name="identifier" required autocomplete="username" placeholder="you@example.org or +1 202 555 0142">
      </label>
      <label><span>Name <span class="quiet">if you are new here</span></span>
        <input name="name" maxlength="50" autocomplete="name">
      </label>
      <button ?disabled=${isWaiting}>Send me a code</button>
    </form>
    ${
      passkeysHere === 'on'
        ? html`<p class="quiet or">or without a code</p>
          <button class="wide" ?disabled=${doing.has('passkey')}
            @click=${() => app.act('passkey', () => app.signInByPasskey())}>Sign in with a passkey</button>`
        : nothing
    }`
}

function codeView(
  { doing }: State,
  { identifier, sentTo, otpLength, resendAtMs }: Challenge,
  app: App,
): TemplateResult {
  const isWaiting = doing.has('sign-in')
  const secondsLeft = Math.ceil((resendAtMs - Date.now()) / 1000)
  const signIn = (otp: string) => app.act('sign-in', () => app.signIn(otp))
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    void signIn(String(new FormData(event.currentTarget as HTMLFormElement).get('otp')).trim())
  }
  const onFetch = () => app.act('sign-in', async () => app.signIn(await app.fetchCode(identifier)))
  return html`<h2>The code for ${sentTo}</h2>
    <p>A development server sends nothing: the code is in its terminal and on the <a href="/dev" target="_blank">console</a>.</p>
    <button class="main wide" ?disabled=${isWaiting} @click=${onFetch}>Fetch the code and sign in</button>
    <p class="quiet or">or type it</p>
    <form class="code" @submit=${onSubmit}>
      <label>Code
        <input name="otp" required inputmode="numeric" autocomplete="one-time-code" maxlength=${otpLength}
          pattern=${`[0-9]{${otpLength}}`} title=${`${otpLength} digits`}>
      </label>
      <button ?disabled=${isWaiting}>Sign in</button>
    </form>
    <p class="row">
      <button class="plain" @click=${() => app.goBack()}>Back</button>
      <button class="plain" ?disabled=${secondsLeft > 0}
        @click=${() => app.act('resend', () => app.askForAnotherCode())}>
        Another code${secondsLeft > 0 ? ` in ${secondsLeft} s` : nothing}
      </button>
    </p>`
}

/** The code was right; that the person is the account's owner, another device has to say. */
function waitingView({ waiting, waitedInVain }: State, app: App): TemplateResult {
  if (waiting === undefined || waitedInVain !== undefined) {
    return html`<section class="card sign-in" role="alert"><h2>You are not signed in</h2>
      <p>${waitedInVain}</p>
      <button class="main" @click=${() => app.beginAgain()}>Begin again</button></section>`
  }
  const { address, signInCode, until } = waiting
  return html`<section class="card sign-in"><h2>Approve this on another device</h2>
    <p>The account of <strong dir="auto">${address}</strong> has other devices, and one of them has to let you in. Open
      Callsign there, and compare these digits:</p>
    <p class="digits mono" aria-label="Code of this sign-in">${signInCode}</p>
    <p>You no longer have any of them? If none answers by ${timeView(until)}, you are let in.</p>
    <p class="quiet">This page may be closed. It goes on when you open it again in this browser.</p>
    <button class="plain" @click=${() => app.beginAgain()}>Sign in as somebody else</button></section>`
}

/** In place of everything else, while there is no room for this device. */
export function crowdedView({ devices, restriction, doing }: State, app: App): TemplateResult {
  return html`<section class="card"><h2>You have as many devices as you may</h2>
    <p>This one takes the place of one that you remove. ${
      restriction === undefined
        ? nothing
        : html`Here that can be one that was not seen for 30 days; remove any other on a device of yours that is approved,
          and reload this page.`
    }</p>${deviceRows(devices, {
      nowMs: app.nowMs,
      isRestricted: restriction !== undefined,
      isRemoving: doing.has('remove-device'),
      remove: device => app.act('remove-device', () => app.makeRoom(device)),
    })}</section>`
}

function stepsView(): TemplateResult {
  return html`<section class="steps quiet">
    <h2>A call between two tabs</h2>
    <ol>
      <li>Be somebody here. A key is made in this browser and goes into the public key log.</li>
      <li>Open the link that you get in a second tab, and be somebody else there.</li>
      <li>Accept them here, and call. Both tabs show the same digits when the call’s key is the same.</li>
    </ol>
  </section>`
}

/** The first is a person whom no other tab is. */
function peopleFor(namesTaken: readonly string[]): readonly string[] {
  const free = PEOPLE.filter(name => !namesTaken.includes(name))
  return [...free, ...PEOPLE.filter(name => namesTaken.includes(name))].slice(0, 3)
}

const PEOPLE = ['Ann', 'Bob', 'Cleo', 'Dan', 'Eva', 'Finn']
