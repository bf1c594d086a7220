/** One person: who they are to the server, where they are signed in, and what a moderator can do. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { whenOf } from '../shared/figures.ts'
import { historyList } from './calls-view.ts'
import { checkDevices, type DeviceVerdict } from './device-check.ts'
import type { Answer, Page, ReplyOf } from './page.ts'
import { asking, type Content, facts, listed, section, shown, textIn, thing } from './parts.ts'
import { reportList } from './reports-view.ts'

type Person = ReplyOf<'GET users/{ref}'>
type Device = ReplyOf<'GET users/{ref}/devices'>['items'][number]

export function personView(page: Page, userId: string): TemplateResult {
  const ref = `id:${userId}`
  const answer = page.reply('GET users/{ref}', { ref })
  return thing(
    html`<a href="#people">All people</a>`,
    'Person',
    answer,
    person => html`${about(person)}${acts(page, ref, person)}
    ${
      page.may('reports')
        ? section(
            'Reports about them',
            listed(page, 'GET reports', { about: ref }, items =>
              reportList(items, 'state', 'No one has reported them.'),
            ),
          )
        : nothing
    }
    ${section(
      'Calls',
      listed(page, 'GET users/{ref}/calls', { ref }, items => historyList(page, items)),
    )}
    ${section(
      'Devices',
      shown(page.reply('GET users/{ref}/devices', { ref }), ({ items }) => deviceList(page, userId, items)),
    )}
    ${section(
      'Sessions',
      shown(page.reply('GET users/{ref}/sessions', { ref }), ({ items }) => sessionList(items)),
    )}`,
  )
}

function about(person: Person): TemplateResult {
  const { userId, externalId, displayName, state, suspension, erasesAt, loginMethods, email, phone } = person
  const proven = loginMethods.map(({ kind, value }) => (value === undefined ? kind : `${kind} ${value}`))
  return html`<section><header><h1 tabindex="-1">${displayName}</h1>
      ${state === 'active' ? nothing : html`<span class="badge ${state}">${state}</span>`}</header>
    ${facts([
      ['User id', html`<span class="mono">${userId}</span>`],
      ['Your own id', externalId === undefined ? undefined : html`<span class="mono">${externalId}</span>`],
      ['Since', whenOf(person.createdAt)],
      ['Signs in by', proven.length === 0 ? 'your backend alone' : proven.join(', ')],
      ['Said by your backend', [email, phone].filter(Boolean).join(', ') || undefined],
      ['May be called by', person.reachable === 'all' ? 'everybody who knows the user id' : 'contacts'],
      ['Erased', erasesAt === undefined ? undefined : `on ${whenOf(erasesAt)}, unless they sign in before`],
      ['Suspended', suspension === undefined ? undefined : suspended(suspension)],
    ])}</section>`
}

function suspended({ reason, note, at, untilAt }: NonNullable<Person['suspension']>): TemplateResult {
  const until = untilAt === undefined ? 'until it is lifted' : `until ${whenOf(untilAt)}`
  return html`since ${whenOf(at)}, ${until}, for <code>${reason}</code>${note === undefined ? nothing : html`<br>${note}`}`
}

function acts(page: Page, ref: string, { state, displayName }: Person): TemplateResult {
  const params = { ref }
  const signOut = () =>
    page.act(`${displayName} is signed out everywhere.`, link =>
      link.ask('POST users/{ref}/sign-out', { params }),
    )
  const lift = () =>
    page.act(`${displayName} may sign in again.`, link => link.ask('POST users/{ref}/unsuspend', { params }))
  return section(
    'Actions',
    html`${state === 'suspended' ? nothing : suspendForm(page, ref, displayName)}
    <p class="buttons">${
      state === 'suspended'
        ? asking(page, 'Lift the suspension', `Lift the suspension of ${displayName}?`, lift)
        : asking(page, 'Sign out everywhere', `End all sessions of ${displayName}?`, signOut)
    }</p>`,
  )
}

function suspendForm(page: Page, ref: string, displayName: string): TemplateResult {
  const suspend = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.target
    const [reason, note, days] = ['reason', 'note', 'days'].map(name => textIn(form, name)) as [
      string,
      string,
      string,
    ]
    const until = days === '' ? {} : { untilAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }
    const body = { reason, ...(note !== '' && { note }), ...until }
    await page.act(`${displayName} is suspended: signed out, and out of calls.`, link =>
      link.ask('POST users/{ref}/suspend', { params: { ref }, body }),
    )
  }
  return html`<details><summary>Suspend ${displayName}</summary>
    <p class="soft">They are signed out and taken out of calls at once, and can’t sign in. Their contacts don’t hear of it.</p>
    <form class="suspend" @submit=${suspend}>
    <label>Reason <span class="soft">a code that the person’s app is told at a sign-in</span>
      <input name="reason" list="reasons" required pattern="[a-z0-9][a-z0-9_\\-]{0,63}" maxlength="64" autocomplete="off" placeholder="abuse"></label>
    <datalist id="reasons">${REASON_CODES.map(code => html`<option value=${code}></option>`)}</datalist>
    <label>For <select name="days">
      <option value="">until it is lifted</option><option value="1">a day</option><option value="7">a week</option>
      <option value="30">thirty days</option></select></label>
    <label>Note <span class="soft">for moderators alone</span><textarea name="note" rows="2" maxlength="2000"></textarea></label>
    <p class="buttons"><button class="danger" ?disabled=${page.isBusy}>Suspend</button></p>
    </form></details>`
}

function deviceList(page: Page, userId: string, devices: readonly Device[]): Content {
  if (devices.length === 0) return html`<p class="soft">No device is registered.</p>`
  const verdicts = page.kept(`check ${userId}`, () => checkDevices(page, userId, devices))
  return html`<ol class="rows">${devices.map(
    device => html`<li class="device">
      <span class="what">${deviceName(device)}</span>
      <span class="soft">${[device.platform, device.model, device.appVersion].filter(isKnown).join(' · ')}</span>
      <span class="soft">added ${whenOf(device.createdAt)}, seen ${whenOf(device.lastSeenAt)}</span>
      ${verdictLine(verdicts, device.deviceId)}</li>`,
  )}</ol><p class="soft">Each key is checked in this browser against the public log, as the apps of their contacts do.</p>`
}

function verdictLine(answer: Answer<readonly DeviceVerdict[]>, deviceId: string): TemplateResult {
  if (answer.kind === 'waiting') return html`<span class="verdict soft">Checking its key…</span>`
  if (answer.kind === 'failed') return html`<span class="verdict busy">Not checked: ${answer.words}</span>`
  const found = answer.value.find(each => each.deviceId === deviceId)!
  return html`<span class="verdict ${CLASSES[found.verdict]}"><span aria-hidden="true">${MARKS[found.verdict]}</span> ${found.words}</span>`
}

function sessionList(items: ReplyOf<'GET users/{ref}/sessions'>['items']): Content {
  if (items.length === 0) return html`<p class="soft">No session: they are signed out everywhere.</p>`
  return html`<ol class="rows">${items.map(
    ({ device, network, userAgent, createdAt, lastUsedAt, proof }) => html`<li class="session">
      <span class="what">${device === undefined ? 'without a device' : deviceName(device)}</span>
      <span class="soft">since ${whenOf(createdAt)}, by ${PROOFS[proof]}; used ${whenOf(lastUsedAt)}</span>
      <span class="soft">${[userAgent, network === undefined ? undefined : `from ${network}`].filter(Boolean).join(' · ')}</span></li>`,
  )}</ol>`
}

/** Apps that say nothing of their device have a server that says `unknown`. */
function isKnown(words: string | undefined): boolean {
  return words !== undefined && words !== '' && words !== 'unknown'
}

function deviceName({ name }: Pick<Device, 'name'>): string {
  return isKnown(name) ? name : 'a device without a name'
}

const DAY_MS = 86_400_000
const REASON_CODES = ['abuse', 'threats', 'spam', 'fraud', 'impersonation', 'child-safety', 'under-age']
const MARKS = { holds: '✓', fails: '✗', open: '–' } as const
const CLASSES = { holds: 'good', fails: 'bad', open: 'busy' } as const
const PROOFS = {
  otp: 'a code',
  social: 'another account of theirs',
  apple: 'an Apple account',
  passkey: 'a passkey',
  server: 'your backend',
} as const
