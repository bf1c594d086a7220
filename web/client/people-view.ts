/**
 * Contacts, requests, and the link that brings people here. List items keep their elements when the list changes: an
 * open menu, or the focused button, would move to another person.
 */

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import { encodeQR } from 'qr'
import type { Contact, FriendRequest, Opened } from '../../src/app/app.ts'
import { avatarView } from '../../src/ui/avatar.ts'
import type { CameraScan } from '../../src/ui/home/scanner.ts'
import type { App } from './app.ts'
import { personName } from './names.ts'
import type { State } from './state.ts'
import type { View } from './view-parts.ts'

/** Askers, whom an opened link or code leads to, and the asked users. */
export function requestsView(state: State, app: App): TemplateResult {
  const { requests, asked, opened, doing, scan } = state
  return html`${scan === undefined ? nothing : scanView(scan, app)}<div aria-live="polite">
    ${opened === undefined ? nothing : openedView(opened, doing, app)}
    ${repeat(requests, idOf, request => requestView(request, doing, app))}
    ${repeat(
      asked,
      idOf,
      request => html`<section class="card slim">${avatarView(request.user.displayName)}
        <p class="grow">You have asked <strong dir="auto">${request.user.displayName}</strong>. They accept in their tab.</p>
        <button class="plain" @click=${() => app.act('cancel', () => app.contacts.cancel(request))}>Take back</button>
      </section>`,
    )}
  </div>`
}

function scanView({ video }: CameraScan, app: App): TemplateResult {
  return html`<section class="card scan">
    <h2>Scan a code</h2>
    <p class="quiet">Hold the QR code of a contact’s link in front of the camera.</p>
    ${video}
    <p class="row"><button @click=${() => app.contacts.stopScan()}>Stop the camera</button></p>
  </section>`
}

/** The person is shown before anything is asked of them. */
function openedView(opened: Opened, doing: ReadonlySet<string>, app: App): TemplateResult {
  const name = opened.kind === 'link' ? opened.displayName : `user ${opened.userId}`
  const isAsked = opened.kind === 'link' && opened.relation === 'outgoing'
  return html`<section class="card attention">
    ${
      opened.kind === 'user'
        ? html`<p>The code is the number of <strong>${name}</strong>. You see their name once you have asked.</p>`
        : html`<p><strong dir="auto">${name}</strong> ${RELATIONS[opened.relation ?? 'none']}</p>`
    }
    <p class="row">
      ${
        isAsked
          ? nothing
          : html`<button class="main" ?disabled=${doing.has('ask')} @click=${() => app.act('ask', () => app.contacts.ask())}>
        ${opened.kind === 'link' && opened.relation === 'incoming' ? `Accept ${name}` : `Ask ${name} to be contacts`}</button>`
      }
      <button class="plain" @click=${() => app.putInvitationAway()}>${isAsked ? 'Close' : 'Not now'}</button>
    </p>
  </section>`
}

const idOf = ({ requestId }: FriendRequest) => requestId

function requestView(request: FriendRequest, doing: ReadonlySet<string>, app: App): TemplateResult {
  const { user } = request
  const isWaiting = doing.has('answer-request')
  const act = (verb: 'accept' | 'decline') => app.act('answer-request', () => app.contacts[verb](request))
  return html`<section class="card attention slim">${avatarView(user.displayName)}
    <p class="grow"><strong dir="auto">${user.displayName}</strong> wants to be your contact.</p>
    <p class="row">
      <button class="main" ?disabled=${isWaiting} @click=${() => act('accept')}>Accept</button>
      <button ?disabled=${isWaiting} @click=${() => act('decline')}>Decline</button>
    </p>
  </section>`
}

export function contactsView(state: State, app: App): View {
  const { contacts, marked, areContactsLoaded } = state
  if (!areContactsLoaded || contacts.length === 0) return nothing
  return html`<section class="card">
    <h2>Contacts</h2>
    <ul class="list">${repeat(
      contacts,
      ({ userId }) => userId,
      contact => contactView(state, contact, app),
    )}</ul>
    ${marked.size < 2 ? nothing : severalView(state, app)}
  </section>`
}

function contactView(state: State, contact: Contact, app: App): TemplateResult {
  const { userId, displayName, alias } = contact
  const { marked, contacts, codes, doing, renaming } = state
  const code = codes.get(userId)
  const name = personName(contact)
  return html`<li class="contact">
    ${
      contacts.length > 1
        ? html`<input type="checkbox" aria-label=${`Mark ${name} for a call of several`}
          .checked=${marked.has(userId)} @change=${() => app.contacts.mark(userId)}>`
        : nothing
    }
    ${avatarView(name)}<span class="name" dir="auto">${name}
      ${alias === undefined ? nothing : html`<span class="quiet own-name" dir="auto">${displayName}</span>`}</span>
    <span class="what">
      ${callButtons(state, contact, app)}
      <details class="menu more"><summary aria-label=${`More about ${name}`}>⋯</summary>
        <div class="items">
        <button class="plain" @click=${() => app.contacts.askName(userId)}>Change the name</button>
        <button class="plain" ?disabled=${doing.has('show-code')}
          @click=${() => app.act('show-code', () => app.contacts.showCode(contact))}>Compare a code</button>
        <button class="plain bad" @click=${() => app.act('remove-contact', () => app.contacts.remove(contact))}>
          Remove from contacts</button>
        </div>
      </details>
    </span>
    ${renaming === userId ? renameView(contact, doing, app) : nothing}
    ${
      code === undefined
        ? nothing
        : html`<div class="compare"><p class="quiet">Read these to each other, or hold the screens side by side. The same digits
          on both: you have each other’s devices, and nobody else’s.</p>
          <p class="digits mono" aria-label=${`Code to compare with ${name}`}>${code}</p></div>`
    }
  </li>`
}

/** The person's own name for a contact; none any more where it is left empty. */
function renameView(contact: Contact, doing: ReadonlySet<string>, app: App): TemplateResult {
  const { displayName, alias = '' } = contact
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name'))
    void app.act('rename', () => app.contacts.rename(contact, name).then(() => app.calls.loadHistory()))
  }
  return html`<form class="rename" @submit=${onSubmit}>
    <label>Your name for <span dir="auto">${displayName}</span>, which only you see
      <input name="name" maxlength="200" dir="auto" .value=${alias} placeholder=${displayName}></label>
    <p class="row"><button class="main" ?disabled=${doing.has('rename')}>Save</button>
      <button type="button" class="plain" @click=${() => app.contacts.askName(undefined)}>Not now</button></p>
  </form>`
}

function callButtons({ doing, connection }: State, contact: Contact, app: App): TemplateResult {
  const { userId } = contact
  const name = personName(contact)
  const isWaiting = doing.has('start-call') || connection !== 'connected'
  const start = (isVideo: boolean) => app.act('start-call', () => app.calls.start([userId], isVideo))
  return html`<button class="main" ?disabled=${isWaiting} aria-label=${`Video call to ${name}`}
      @click=${() => start(true)}>Video</button>
    <button ?disabled=${isWaiting} aria-label=${`Audio call to ${name}`} @click=${() => start(false)}>Audio</button>`
}

function severalView({ marked, doing, connection }: State, app: App): TemplateResult {
  const ids = [...marked]
  const start = (isVideo: boolean) => app.act('start-call', () => app.calls.start(ids, isVideo))
  const isWaiting = doing.has('start-call') || connection !== 'connected'
  return html`<p class="row several">
    <button class="main" ?disabled=${isWaiting} @click=${() => start(true)}>Video call with ${ids.length}</button>
    <button ?disabled=${isWaiting} @click=${() => start(false)}>Audio call</button>
  </p>`
}

/** The share link: as something to click, to copy, and to scan. */
export function addView(state: State, app: App): View {
  const { shareLink, contacts, requests, asked, opened, doing } = state
  if (!state.areContactsLoaded) return nothing
  // Nothing else is to be done yet: this is what the newcomer needs.
  const isFirst = contacts.length + requests.length + asked.length === 0 && opened === undefined
  if (shareLink === undefined) {
    return html`<section class="card"><button ?disabled=${doing.has('share')}
      @click=${() => app.act('share', () => app.contacts.share())}>Add somebody</button></section>`
  }
  const link = html`<p class="row">
      <a class="button ${isFirst ? 'main' : ''}" href=${shareLink} target="_blank" rel="noopener">
        ${isFirst ? 'Open a second tab as somebody else' : 'Open it in another tab'}</a>
      <button @click=${() => app.act('copy', () => app.copyLink())}>Copy the link</button>
    </p>
    <input class="link mono" readonly aria-label="Your link" .value=${shareLink}
      @focus=${(event: FocusEvent) => (event.currentTarget as HTMLInputElement).select()}>
    <p class="row">
      <button class="plain" ?disabled=${doing.has('make-up')}
        @click=${() => app.act('make-up', () => app.contacts.makeUp())}>Or make up somebody who answers</button>
    </p>
    <details><summary>Show it as a QR code</summary>${qrView(shareLink)}</details>
    <details><summary>I have somebody else’s link or code</summary>${pasteView(state, app)}</details>`
  if (!isFirst) return html`<details class="card"><summary>Add somebody</summary>${link}</details>`
  return html`<section class="card"><h2>Add somebody</h2>
    <p>Whoever opens your link can ask to be your contact. To try a call alone, be that somebody too.</p>${link}</section>`
}

/** The ways to open what another person has shared: by the camera, from a picture, or as text. */
function pasteView({ doing }: State, app: App): TemplateResult {
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const link = String(new FormData(event.currentTarget as HTMLFormElement).get('link'))
    void app.act('open-link', () => app.contacts.open(link))
  }
  const onPicture = ({ currentTarget }: Event) => {
    const input = currentTarget as HTMLInputElement
    const [file] = input.files ?? []
    if (file !== undefined) void app.act('scan-picture', () => app.contacts.scanPicture(file))
    // The same picture may be chosen again.
    input.value = ''
  }
  return html`<p class="row">
      <button ?disabled=${doing.has('scan')} @click=${() => app.act('scan', () => app.contacts.scan())}>Scan with the camera</button>
      <label class="button" aria-disabled=${doing.has('scan-picture')}>Choose a picture of it
        <input class="picture" type="file" accept="image/*" @change=${onPicture}></label>
    </p>
    <form @submit=${onSubmit}>
    <label>Their link or user id <input name="link" required placeholder=${`${location.origin}/c/…`}></label>
    <button ?disabled=${doing.has('open-link')}>Open it</button>
  </form>`
}

function qrView(text: string): TemplateResult {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_MODULES })
  const path = rows
    .flatMap((row, y) => row.map((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return html`<svg class="qr" role="img" aria-label="Your link as a QR code" shape-rendering="crispEdges"
    viewBox=${`0 0 ${rows.length} ${rows.length}`}>${svg`<path d=${path}></path>`}</svg>`
}

/** How a link's owner is known, after their name. */
const RELATIONS = {
  none: 'has shared a link with you.',
  incoming: 'has shared a link with you, and has asked you already.',
  outgoing: 'has not answered yet: you have asked them already.',
  contact: 'is a contact of yours.',
  self: 'is you.',
}
/** The white border that ISO/IEC 18004 asks for. */
const QUIET_MODULES = 4
