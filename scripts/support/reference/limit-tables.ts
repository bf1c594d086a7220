/** Bounds as the code has them: their names, values and reasons, and the usual rates. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RateName, USUAL_RATES } from '../../../src/domain/rates.ts'
import * as LIMITS from '../../../src/limits.ts'
import { table } from './markdown-table.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..', '..')
/** From here on `src/limits.ts` is about connections. */
const OF_CONNECTIONS = 'COMMAND_BYTES_MAX'

/** Bounds that stand with the thing they bound, by file and name, in the words of people who meet them. */
const OF_USERS: readonly Bound[] = [
  ['src/domain/devices/device.ts', 'DEVICES_MAX', 'devices of a user'],
  [
    'src/limits.ts',
    'CONNECTIONS_PER_USER_MAX',
    'connections of a user; one of each device, a newer one replaces it',
  ],
  ['src/domain/contacts/friend-request.ts', 'CONTACTS_MAX', 'contacts of a user'],
  ['src/domain/contacts/friend-request.ts', 'OUTGOING_MAX', 'open requests that a user has sent'],
  ['src/domain/contacts/friend-request.ts', 'INCOMING_MAX', 'open requests that a user has received'],
  ['src/domain/contacts/friend-request.ts', 'REQUEST_OPEN_MS', 'a request waits for its answer'],
  ['src/domain/contacts/friend-request.ts', 'BLOCKS_MAX', 'people whom a user blocks'],
  ['src/api/contacts/share-tokens.ts', 'SHARE_TOKENS_MAX', 'live share links of a user'],
  [
    'src/domain/accounts/display-name.ts',
    'NAME_GRAPHEMES_MAX',
    'characters of a display name or alias, as a reader counts them',
  ],
  ['src/domain/accounts/display-name.ts', 'MESSAGE_GRAPHEMES_MAX', "characters of a request's message"],
  ['src/domain/messages/inbox.ts', 'INBOX_MESSAGES_MAX', 'messages that wait for a device'],
  ['src/domain/messages/inbox.ts', 'INBOX_KEPT_MS', 'a message waits for a device'],
  [
    'src/store/calls/call-history-store.ts',
    'ROWS_MAX',
    "calls in a user's history, for `CALLSIGN_HISTORY_DAYS`",
  ],
  ['src/domain/accounts/challenge.ts', 'CODE_LIFETIME_MS', 'a code is good'],
  ['src/domain/accounts/challenge.ts', 'TRIES_MAX', 'tries of one code'],
  ['src/domain/operators/circle.ts', 'CIRCLES_MAX', 'circles of a user'],
  ['src/domain/operators/circle.ts', 'CIRCLE_MEMBERS_MAX', 'members of a circle'],
]
const OF_CALLS: readonly Bound[] = [
  ['src/domain/calls/call.ts', 'CALL_SIZE_MAX', 'people in a call at once'],
  ['src/domain/calls/call.ts', 'PARTICIPANTS_MAX', 'people who ever were asked into a call'],
  ['src/domain/calls/key-map.ts', 'ENTRIES_MAX', 'devices in a map of keys'],
  ['src/domain/calls/key-map.ts', 'KEY_BYTES_MAX', 'one sealed key; at least 64 bytes'],
  ['src/api/calls/calls.ts', 'KEYS_BODY_BYTES_MAX', 'a body with a map of keys'],
  ['src/schema/call-request.ts', 'EPOCH_MAX', 'epochs of a call'],
  ['src/domain/calls/call-deadline.ts', 'CALLER_MS', 'a caller without a connection, while the call rings'],
  ['src/domain/calls/call-deadline.ts', 'LOST_MS', 'a participant without a connection, in an active call'],
  ['src/domain/calls/call-deadline.ts', 'CALL_MS_MAX', 'a call'],
]
const OF_WEBHOOKS: readonly Bound[] = [
  ['src/store/operators/webhook-endpoints.ts', 'ENDPOINTS_MAX', 'endpoints'],
  ['actors/webhook.ts', 'IN_FLIGHT_MAX', 'events on their way to one endpoint'],
  ['src/delivery/webhook.ts', 'BODY_BYTES_MAX', 'a body'],
  ['src/delivery/webhook.ts', 'TIMEOUT_MS', 'a try'],
  ['src/store/operators/webhook-store.ts', 'LIFETIME_MS', 'an event is tried'],
  ['src/store/operators/webhook-store.ts', 'DEAD_KEPT_MS', 'an event that was given up is kept'],
]

type Bound = readonly [file: string, name: string, says: string]

export function limitTables(): Readonly<Record<string, string>> {
  return {
    users: boundTable(OF_USERS),
    calls: boundTable(OF_CALLS),
    webhooks: boundTable(OF_WEBHOOKS),
    rates: rateTable(),
    connections: processTable(names => names.slice(names.indexOf(OF_CONNECTIONS))),
    processes: processTable(names => names.slice(0, names.indexOf(OF_CONNECTIONS))),
  }
}

function boundTable(bounds: readonly Bound[]): string {
  const rows = bounds.map(([file, name, says]) => {
    const source = readFileSync(join(ROOT, file), 'utf8')
    const [, text = ''] = new RegExp(`^(?:export )?const ${name} = (.+)$`, 'm').exec(source) ?? []
    return [says, valueText(name, numberOf(text, source)), `\`${name}\``]
  })
  return table(['Bound', 'At most', 'In the code'], rows)
}

/** The value of a constant: a product of numbers and other constants of its file. */
function numberOf(text: string, source: string): number {
  return text.split(' * ').reduce((product, factor) => {
    const number = Number(factor.replaceAll('_', ''))
    if (!Number.isNaN(number)) return product * number
    const [, other] = new RegExp(`^(?:export )?const ${factor} = (.+)$`, 'm').exec(source) ?? []
    if (other === undefined) throw new Error(`${text} is no product of numbers`)
    return product * numberOf(other, source)
  }, 1)
}

/** Bounds of `src/limits.ts`, with the reasons that stand there. */
function processTable(choose: (names: readonly string[]) => readonly string[]): string {
  const source = readFileSync(join(ROOT, 'src/limits.ts'), 'utf8')
  let reason = ''
  const reasons = new Map<string, string>()
  for (const [, comment, name] of source.matchAll(/\/\*\*([\s\S]*?)\*\/|^export const (\w+) = /gm)) {
    if (comment !== undefined) reason = comment.replaceAll(/\n \* /g, ' ').trim()
    else reasons.set(name!, reason)
  }
  const values = LIMITS as Readonly<Record<string, unknown>>
  const rows = choose([...reasons.keys()].filter(name => typeof values[name] === 'number')).map(name => [
    `\`${name}\``,
    valueText(name, values[name] as number),
    reasons.get(name)!,
  ])
  return table(['Bound', 'Value', 'Why'], rows)
}

function valueText(name: string, value: number): string {
  if (/BYTES|UNSENT/.test(name)) return inUnits(value, BYTE_UNITS)
  if (/SECONDS/.test(name)) return inUnits(value * 1_000, TIME_UNITS)
  if (/(?:^|_)MS(?:_|$)/.test(name)) return inUnits(value, TIME_UNITS)
  return value.toLocaleString('en')
}

function inUnits(value: number, units: readonly (readonly [number, string])[]): string {
  const [size, unit] =
    units.find(([size, unit]) => value >= size && value % size === 0 && (unit !== 'days' || value > size)) ??
    units.at(-1)!
  return `${(value / size).toLocaleString('en')} ${unit}`
}

const BYTE_UNITS = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
  [1, 'bytes'],
] as const
const TIME_UNITS = [
  [86_400_000, 'days'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
  [1, 'ms'],
] as const

function rateTable(): string {
  const rows = Object.entries(USUAL_RATES).map(([name, { count, perMs, burst }]) => [
    `\`${name}\``,
    `${count.toLocaleString('en')} in ${inUnits(perMs, TIME_UNITS)}${burst === count ? '' : `, ${burst} at once`}`,
    COUNTED[name as RateName],
  ])
  return table(['Rate', 'Usual', 'Counts'], rows)
}

const COUNTED: Readonly<Record<RateName, string>> = {
  request: "by address: anything but the log's files, for requests without a good token",
  lookup: 'by address, or by session with a good token: lookups in the log',
  'log-files': 'by address: files of the log',
  authenticated: 'by session and by user: anything with a good token',
  login: 'by address: `login` and `resend-otp`',
  'login-day': 'by address: the same, in a day',
  verify: 'by address: codes tried',
  social: 'by address: tokens of identity providers',
  passkey: "by address: passkeys' options and sign-ins",
  'login-waiting': 'by address: asks after a sign-in that waits',
  'refresh-token': 'by address: new tokens',
  'refresh-token-session': 'by session: new tokens',
  'friend-request': 'by user: requests by link and by id',
  'friend-request-day': 'by user: the same, in a day',
  search: 'by user: requests by address and key hash',
  'search-day': 'by user: the same, in a day',
  block: 'by user: blocks',
  'contact-name': 'by user: names given to contacts',
  'share-token-resolve-address': 'by address: links looked up',
  'share-token-resolve': 'by user: links looked up',
  'share-token-unknown': 'by user: links looked up that do not exist',
  'share-token-create': 'by user: links made',
  'call-start': 'by user: calls started',
  'call-start-day': 'by user: the same, in a day',
  'call-ring': 'by caller and callee: calls that the callee did not answer',
  'call-invite': 'by user: invitations into a call',
  'call-keys': 'by device: invitations and new keys',
  'request-rejoin': "by user and call: asks for the call's key",
  credentials: 'by user: credentials of the TURN relay',
  'public-keys': 'by user: reads of keys',
  'public-keys-unavailable': 'by user: ids without keys among them',
  'register-device': 'by user: devices registered',
  profile: 'by user: changes of the profile',
  export: 'by user: exports of the account',
  'server-key': 'by server key: anything by the server API',
  'server-sign-in': 'by user: tokens that your backend asks for to sign them in',
  'user-token': 'by user: tokens for your own services',
  report: 'by user: reports',
  'failed-connect': 'by address: STOMP connections refused at CONNECT',
}
