/** Fake people who call and answer: commands to them, and their present activity. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { Behaviour, SimulatorCommand, SimulatorState } from '../../src/operations/console/events.ts'
import { countOf, manyOf, tailOf } from '../shared/figures.ts'
import { refresh, tellServer } from './feed.ts'
import { KeyedList } from './keyed-list.ts'
import { copyButton, section, shownOf } from './parts.ts'
import type { Page } from './state.ts'

type Person = SimulatorState['people'][number]

const BEHAVIOURS: Readonly<Record<Behaviour, string>> = {
  answer: 'answer',
  decline: 'decline',
  'time-out': 'let it ring',
  drop: 'answer, then drop',
  'drop-and-rejoin': 'drop and rejoin',
}

const rows = new KeyedList<Person>('tbody', '', ({ userId }) => userId)

export function simulatorView(page: Page): TemplateResult {
  const { server, simulator } = page.state
  const state = server?.simulator
  const aside = html`<span class="soft">${state === undefined ? 'not running' : calls(state)}</span>`
  const trouble = simulator.problem ?? state?.trouble ?? server?.simulatorTrouble
  return section(
    'simulator',
    'Simulator',
    aside,
    html`
      ${
        state === undefined
          ? html`<p class="soft">Fake people with real keys who answer, decline, time out or drop out, so
        that one person with one phone can try every screen. The first command starts it.</p>`
          : nothing
      }
      <p class="bad" role="alert">${trouble ?? nothing}</p>
      ${peopleForm(page)}
      ${befriendForm(page, state)}
      ${state === undefined || state.people.length === 0 ? nothing : people(page, state)}
      ${loadForm(page, state)}`,
  )
}

function calls({ calls }: SimulatorState): TemplateResult {
  const { started, answered, ended, failed } = calls
  return html`${countOf(started)} started · ${countOf(answered)} answered · ${countOf(ended)} ended ·
    <span class=${failed > 0 ? 'bad' : nothing}>${countOf(failed)} failed</span>`
}

function peopleForm(page: Page): TemplateResult {
  const submit = (fields: FormData) => {
    const behaviours = (Object.keys(BEHAVIOURS) as Behaviour[]).flatMap(behaviour =>
      Array<Behaviour>(Number(fields.get(behaviour))).fill(behaviour),
    )
    if (behaviours.length > 0) send(page, { kind: 'people', behaviours })
  }
  return form(
    page,
    'Make people who',
    submit,
    html`${Object.entries(BEHAVIOURS).map(
      ([
        behaviour,
        words,
      ]) => html`<label class="count"><input type="number" name=${behaviour} min="0" max="20"
        value=${behaviour === 'answer' ? 1 : 0}> ${words}</label>`,
    )}<button ?disabled=${page.state.simulator.isSending}>Make them</button>`,
  )
}

function befriendForm(page: Page, state: SimulatorState | undefined): TemplateResult {
  const submit = (fields: FormData) => {
    const shareToken = tokenIn(String(fields.get('link')))
    if (shareToken !== '') send(page, { kind: 'befriend', shareToken })
  }
  const hasNobody = state === undefined || state.people.length === 0
  return form(
    page,
    'Befriend you',
    submit,
    html`<label class="wide">Your share link <input name="link" required autocomplete="off" placeholder="${location.origin}/c/c_…"></label>
      <button ?disabled=${page.state.simulator.isSending || hasNobody}>Befriend me</button>
      <span class="soft">${hasNobody ? 'Make people first; the link is' : 'The link is'} in the <a href="/dev/client">browser client</a>, or
        the answer of <a href="/docs/api">share-token</a>.</span>`,
  )
}

function people(page: Page, { people }: SimulatorState): TemplateResult {
  const { shown, more } = shownOf(page, 'people', people, SHOWN)
  const { server } = page.state
  const fake = new Set(people.map(({ userId }) => userId))
  const others = (server?.devices ?? []).filter(({ userId }) => !fake.has(userId))
  return html`<form class="call-me" @submit=${(event: SubmitEvent) => callMe(page, event)}>
    <fieldset><legend>Let one call you</legend>
      <label class="wide">Your user id <input name="to" required pattern="[0-9]+" autocomplete="off" list="callees"
        value=${others[0]?.userId ?? ''} placeholder="of a connected device"></label>
      <datalist id="callees">${others.map(
        ({ userId, displayName }) => html`<option value=${userId}>${displayName}</option>`,
      )}</datalist>
      <label class="check"><input type="checkbox" name="video"> video</label>
      <div class="scroll" tabindex="0" role="region" aria-label="fake people"><table class="figures">
        <thead><tr><th scope="col">person</th><th scope="col">on a call</th><th scope="col">now</th><td></td></tr></thead>
        ${rows.show(shown, person => personRow(page, person))}
      </table></div>${more}
    </fieldset></form>`
}

function personRow(page: Page, person: Person): TemplateResult {
  const { userId, displayName, behaviour, isOnline, doing, shareLink } = person
  return html`<td><span class="dot ${isOnline ? 'live' : ''}" title=${isOnline ? 'connected' : 'not connected'}></span>
      ${displayName} <span class="soft mono">${tailOf(userId)}</span></td>
    <td>${BEHAVIOURS[behaviour] ?? behaviour}</td><td>${doing}</td>
    <td class="number">${shareLink === undefined ? nothing : copyButton(page, `link ${userId}`, shareLink, 'Link', `Copy the share link of ${displayName}`)}
      <button class="small" name="from" value=${userId} ?disabled=${page.state.simulator.isSending}
      aria-label="Let ${displayName} call you">Call me</button></td>`
}

function callMe(page: Page, event: SubmitEvent): void {
  event.preventDefault()
  const fields = new FormData(event.target as HTMLFormElement, event.submitter)
  const [from, to] = [fields.get('from'), fields.get('to')]
  if (typeof from === 'string' && typeof to === 'string')
    send(page, { kind: 'call', from, to: to.trim(), isVideo: fields.has('video') })
}

function loadForm(page: Page, state: SimulatorState | undefined): TemplateResult {
  const submit = (fields: FormData) =>
    send(page, {
      kind: 'load',
      users: Number(fields.get('users')),
      callsPerSecond: Number(fields.get('callsPerSecond')),
    })
  const { isSending } = page.state.simulator
  return form(
    page,
    'Load',
    submit,
    html`<label class="count"><input type="number" name="users" min="2" max="10000" value="20" required> people</label>
      <label class="count"><input type="number" name="callsPerSecond" min="0.1" max="500" step="0.1" value="1" required> calls a second</label>
      <button ?disabled=${isSending}>Start</button>
      <button type="button" ?disabled=${isSending || state === undefined} @click=${() => send(page, { kind: 'stop' })}>Stop</button>
      ${state?.load === undefined ? nothing : load(state.load)}`,
  )
}

function load({ users, online, callsPerSecond, callsUnderWay, ringMs }: NonNullable<SimulatorState['load']>) {
  const rings =
    ringMs === undefined ? '' : ` · rings after ${ringMs.p50} ms, 99 of 100 within ${ringMs.p99} ms`
  return html`<p class="soft">${countOf(online)} of ${manyOf(users, 'person', 'people')} connected · ${manyOf(callsPerSecond, 'call')} a second ·
    ${countOf(callsUnderWay)} under way${rings}</p>`
}

function form(page: Page, legend: string, submit: (fields: FormData) => void, content: TemplateResult) {
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    submit(new FormData(event.target as HTMLFormElement))
  }
  return html`<form @submit=${onSubmit} aria-busy=${page.state.simulator.isSending ? 'true' : 'false'}>
    <fieldset><legend>${legend}</legend>${content}</fieldset></form>`
}

/** The token of a share link; a text that is a token itself comes back as it is. */
function tokenIn(link: string): string {
  return (
    link
      .trim()
      .split(/[/?#=]/)
      .findLast(part => part.startsWith('c_')) ?? link.trim()
  )
}

async function send(page: Page, command: SimulatorCommand): Promise<void> {
  page.change(({ simulator }) => Object.assign(simulator, { isSending: true, problem: undefined }))
  const problem = await tellServer('/dev/simulator', command)
  page.change(({ simulator }) => Object.assign(simulator, { isSending: false, problem }))
  await refresh(page).catch(() => {})
}

const SHOWN = 8
