/** A call in words: its title, how it goes, and how long it has been going on. */

import type { Call, CallMember } from '../../app/app.ts'
import { isolated, word } from '../words.ts'

/** States of people who are not in the call, and are not rung either. */
export const GONE: ReadonlySet<string> = new Set(['left', 'lost', 'declined', 'busy', 'missed', 'removed'])

/** `Ann`, `Ann and Bob`, `Ann, Bob and 2 more`. */
export function titleOf({ participants }: Call, userId: string | undefined): string {
  const others = participants.filter(one => one.userId !== userId)
  const present = others.filter(({ state }) => !GONE.has(state))
  const [first, second, ...more] = (present.length > 0 ? present : others).map(({ name }) => name)
  if (first === undefined) return word('call-nobody-else')
  if (second === undefined) return first
  return listText([first, second, ...(more.length === 0 ? [] : [word('call-and-more', more.length)])])
}

export function statusOf(call: Call, userId: string | undefined): string {
  const others = call.participants.filter(one => one.userId !== userId)
  switch (call.state) {
    case 'rejoining':
      return word('call-rejoining')
    case 'keyless':
      return word('call-keyless')
    case 'joining':
      return word('call-joining')
    case 'ringing':
      return ringingText(others)
    default:
      if (!others.some(({ state }) => state === 'joined')) return word('call-nobody-else-here')
      return word(call.isVideo ? 'call-video-call' : 'call-audio-call')
  }
}

function ringingText(others: readonly CallMember[]): string {
  if (others.some(({ state }) => state === 'ringing')) return word('call-ringing')
  const called = others.filter(({ state }) => state === 'invited')
  if (called.length === 0 || !called.every(one => one.isUnreachable)) return word('call-calling')
  if (called.length > 1) return word('call-nobody-can-be-reached')
  return word(called[0]!.hasUnapprovedDevice ? 'call-new-device-unapproved' : 'call-cannot-be-reached')
}

/** `3:07`, or `1:02:07`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const tail = `${hours > 0 ? String(minutes).padStart(2, '0') : minutes}:${String(rest).padStart(2, '0')}`
  return hours > 0 ? `${hours}:${tail}` : tail
}

/** A list in the page's language, as far as the words have it. */
export function listText(parts: readonly string[]): string {
  const { lang } = document.documentElement
  const language = /^(de|vi)\b/i.exec(lang)?.[0] ?? 'en-GB'
  return new Intl.ListFormat(language, { type: 'conjunction' }).format(parts.map(isolated))
}
