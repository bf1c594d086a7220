/** The simulator's command line. */

import type { Behaviour } from '../../src/operations/console/events.ts'
import { type Flags, optional, UsageError } from '../support/command.ts'
import { BEHAVIOURS } from './behaviour.ts'

export const USAGE = `usage: node dist/scripts/simulate.js [--people BEHAVIOURS] [--befriend LINK] [options]
       node dist/scripts/simulate.js --users N --calls-per-second N [--seconds N]

Fake users with real keys for a development server. The first form makes people whom you can befriend and call, so that
one person with one phone sees every screen; the second lets many call one another, and counts.

  --url URL                 the server (http://127.0.0.1:8080)
  --people BEHAVIOURS       answer, decline, time-out, drop, drop-and-rejoin; separated by commas; one of each
                            unless given
  --befriend LINK           a share link of yours: everybody asks you to be a contact. They accept your requests, too
  --calls-you-after SECONDS the first of them calls you so long after you have become contacts
  --media WHEN              yes: in a call they send silence and a moving mark by the server's gateway, which needs Janus
                            and Chromium; if-there: where these are
  --pace FACTOR             their pauses last so many times as long (1)

  --users N                 so many users, in groups of six who know each other
  --calls-per-second N      calls that they start
  --seconds N               ends then; without it at Ctrl-C

  --json                    prints a line of JSON a second, and at once when something changes
  --control                 reads commands from standard input, a line of JSON each, and ends with it

docs/build/development.md has the rest. Exit code: 0 all went as it should, 1 something did not, 2 it could not begin.
`

export const FLAGS = {
  url: 'value',
  people: 'value',
  befriend: 'value',
  'calls-you-after': 'value',
  media: 'value',
  pace: 'value',
  users: 'value',
  'calls-per-second': 'value',
  seconds: 'value',
  json: 'alone',
  control: 'alone',
} as const

export interface Settings {
  /** `http://host:port` */
  readonly url: string
  /** Empty where commands name the people. */
  readonly behaviours: readonly Behaviour[]
  readonly shareToken: string | undefined
  readonly callsYouAfterMs: number | undefined
  readonly pace: number
  readonly media: 'no' | 'if-there' | 'yes'
  readonly load: Load | undefined
  readonly isJson: boolean
  readonly isControlled: boolean
}

export interface Load {
  readonly users: number
  readonly callsPerSecond: number
  readonly ms: number | undefined
}

/** Throws `UsageError`. */
export function readSettings(flags: Flags): Settings {
  const load = readLoad(flags)
  const isControlled = flags.control === true
  const people = optional(flags, 'people')
  const shareToken = optional(flags, 'befriend')
  const callsYouAfter = number(flags, 'calls-you-after', 0, SECONDS_MAX)
  if (load !== undefined) {
    for (const name of ['people', 'befriend', 'calls-you-after', 'media']) {
      if (flags[name] !== undefined) throw new UsageError(`--${name} and --users don't go together`)
    }
  }
  const isEmpty = load !== undefined || (isControlled && people === undefined)
  return {
    url: readUrl(optional(flags, 'url') ?? 'http://127.0.0.1:8080'),
    behaviours: isEmpty ? [] : readBehaviours(people ?? Object.keys(BEHAVIOURS).join()),
    shareToken: shareToken === undefined ? undefined : shareTokenIn(shareToken),
    callsYouAfterMs: callsYouAfter === undefined ? undefined : callsYouAfter * 1_000,
    pace: number(flags, 'pace', 0, 100) ?? 1,
    media: readMedia(optional(flags, 'media')),
    load,
    isJson: flags.json === true,
    isControlled,
  }
}

/** The token of a share link, of the development client's link, or of itself. Throws `UsageError` for a text that has none. */
export function shareTokenIn(text: string): string {
  const token = /(?:^|\/|#c=)(c_[\w-]+)(?:[?#&].*)?$/.exec(text)?.[1]
  if (token === undefined) throw new UsageError(`${text} is no share link: it would end in /c/c_…`)
  return token
}

function readLoad(flags: Flags): Load | undefined {
  const users = number(flags, 'users', 2, USERS_MAX)
  const callsPerSecond = number(flags, 'calls-per-second', 0, CALLS_PER_SECOND_MAX)
  const seconds = number(flags, 'seconds', 0, SECONDS_MAX)
  if (users === undefined && callsPerSecond === undefined && seconds === undefined) return undefined
  if (users === undefined || callsPerSecond === undefined) {
    throw new UsageError('--users and --calls-per-second go together')
  }
  if (!Number.isInteger(users)) throw new UsageError(`--users ${users} is not a whole number`)
  return { users, callsPerSecond, ms: seconds === undefined ? undefined : seconds * 1_000 }
}

function readBehaviours(text: string): Behaviour[] {
  const names = text.split(',').map(name => name.trim())
  if (names.length > PEOPLE_MAX) throw new UsageError(`--people takes at most ${PEOPLE_MAX}`)
  return names.map(name => {
    if (Object.hasOwn(BEHAVIOURS, name)) return name as Behaviour
    throw new UsageError(`--people: ${name} is none of ${Object.keys(BEHAVIOURS).join(', ')}`)
  })
}

function readMedia(text: string | undefined): Settings['media'] {
  if (text === undefined) return 'no'
  if (text === 'yes' || text === 'if-there') return text
  throw new UsageError(`--media ${text} is neither yes nor if-there`)
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/') {
    throw new UsageError(`--url ${text} is not the http or https address of a server`)
  }
  return url.origin
}

function number(flags: Flags, name: string, min: number, max: number): number | undefined {
  const text = optional(flags, name)
  if (text === undefined) return undefined
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max && value > 0) return value
  throw new UsageError(
    `--${name} ${text} is not a number ${min === 0 ? 'above 0' : `from ${min}`} up to ${max}`,
  )
}

const PEOPLE_MAX = 50
const USERS_MAX = 10_000
const CALLS_PER_SECOND_MAX = 500
/** Timers take no more than 24 days. */
const SECONDS_MAX = 2_000_000
