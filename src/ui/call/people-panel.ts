/** People of a call: those who are in it, are called, or have left, and the contacts who can be invited. */

import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Call, CallMember, Contact } from '../../app/app.ts'
import { avatarView } from '../avatar.ts'
import type { View } from '../element.ts'
import { type Word, word } from '../words.ts'
import { GONE } from './status.ts'

export interface PeopleActions {
  readonly userId: string | undefined
  readonly doing: ReadonlySet<string>
  remove(userId: string): void
  invite(userId: string): void
}

export function peopleView(call: Call, contacts: readonly Contact[], actions: PeopleActions): TemplateResult {
  const { participants } = call
  const present = participants.filter(({ state }) => state === 'joined')
  const called = participants.filter(({ state }) => state === 'invited' || state === 'ringing')
  const gone = participants.filter(({ state }) => GONE.has(state))
  return html`${groupView('call-in-the-call', present, call, actions)}
    ${groupView('call-called', called, call, actions)} ${groupView('call-not-here-any-more', gone, call, actions)}
    ${inviteesView(call, contacts, actions)}`
}

function groupView(title: Word, people: readonly CallMember[], call: Call, actions: PeopleActions): View {
  if (people.length === 0) return nothing
  return html`<h3>${word(title)}</h3>
    <ul class="list">${repeat(
      people,
      ({ userId }) => userId,
      one => memberView(one, call, actions),
    )}</ul>`
}

function memberView(
  member: CallMember,
  call: Call,
  { userId, doing, remove }: PeopleActions,
): TemplateResult {
  const { name, state } = member
  const isOwn = member.userId === userId
  const canRemove = call.isHost && !isOwn && !GONE.has(state) && call.state === 'active'
  const facts = [
    ...(member.userId === call.hostUserId ? [word('call-host')] : []),
    ...(isOwn || state === 'joined' ? [] : [word(stateWordOf(member))]),
  ]
  return html`<li>${avatarView(name)}
    <span class="grow name"><span dir="auto">${name}</span>${isOwn ? html` (${word('call-you')})` : nothing}</span>
    ${facts.length === 0 ? nothing : html`<span class="quiet">${facts.join(', ')}</span>`}
    ${
      canRemove
        ? html`<button class="plain bad" ?disabled=${doing.has('remove')} aria-label=${word('call-remove-person', name)}
          @click=${() => remove(member.userId)}>${word('call-remove')}</button>`
        : nothing
    }</li>`
}

function inviteesView(call: Call, contacts: readonly Contact[], { doing, invite }: PeopleActions): View {
  const here = new Set(call.participants.filter(one => !GONE.has(one.state)).map(({ userId }) => userId))
  const others = contacts.filter(({ userId }) => !here.has(userId))
  if (call.fingerprint === undefined || others.length === 0) return nothing
  return html`<h3>${word('call-invite')}</h3>
    <ul class="list">${repeat(
      others,
      ({ userId }) => userId,
      ({ userId, displayName, alias = displayName }) => html`<li>${avatarView(alias)}
        <span class="grow name" dir="auto">${alias}</span>
        <button ?disabled=${doing.has('invite')} aria-label=${word('call-invite-person', alias)}
          @click=${() => invite(userId)}>${word('call-invite')}</button></li>`,
    )}</ul>`
}

function stateWordOf({ state, isUnreachable, hasUnapprovedDevice }: CallMember) {
  if (!isUnreachable) return STATES[state]
  return hasUnapprovedDevice ? 'call-state-unapproved' : 'call-state-unreachable'
}

const STATES = {
  invited: 'call-state-invited',
  ringing: 'call-state-ringing',
  joined: 'call-state-joined',
  left: 'call-state-left',
  lost: 'call-state-lost',
  declined: 'call-state-declined',
  busy: 'call-state-busy',
  missed: 'call-state-missed',
  removed: 'call-state-removed',
} as const
