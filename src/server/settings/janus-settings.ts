/** Settings of Janus as the media gateway: one by variables, or several by a file of JSON. */

import type { JanusEventsSettings, JanusSettings } from '../../media/janus-settings.ts'
import type { JanusMediaSettings } from '../../media/media-settings.ts'
import { type EnvironmentReader, PORTS } from './environment.ts'
import { isWebSocketUrl } from './setting-forms.ts'

export function readJanusSettings(reader: EnvironmentReader): JanusMediaSettings | undefined {
  const one = readOne(reader)
  const events = readEvents(reader)
  const login = readLogin(reader)
  const file = reader.keyFile(FILE, 'path of a JSON file')
  if (file !== undefined) return readSeveral(reader, file, { events, isAlone: one === undefined && !login })
  if (one === undefined) {
    if (events !== undefined || login !== undefined)
      reader.problems.push('CALLSIGN_JANUS_EVENTS_PORT needs CALLSIGN_JANUS_ADMIN_URL or CALLSIGN_JANUS_FILE')
    return undefined
  }
  if ((events === undefined) !== (login === undefined)) {
    reader.problems.push('CALLSIGN_JANUS_EVENTS_PORT and CALLSIGN_JANUS_EVENTS_PASSWORD are set together')
    return undefined
  }
  return {
    kind: 'janus',
    gateways: [{ ...one, ...(login && { eventsLogin: login }) }],
    ...(events && { events }),
  }
}

/** Undefined where nothing is set, or not all. */
function readOne(reader: EnvironmentReader): JanusSettings | undefined {
  const problemsBefore = reader.problems.length
  const adminUrl = reader.url('CALLSIGN_JANUS_ADMIN_URL')
  const adminSecret = reader.secret('CALLSIGN_JANUS_ADMIN_SECRET')
  const adminKey = reader.secret('CALLSIGN_JANUS_ADMIN_KEY')
  const tokenSecret = reader.secret('CALLSIGN_JANUS_TOKEN_SECRET')
  const clientUrl = reader.formed(
    'CALLSIGN_JANUS_CLIENT_URL',
    isWebSocketUrl,
    'a ws or wss address that devices reach, such as wss://media.example.org',
  )
  const given = [adminUrl, adminSecret, adminKey, tokenSecret, clientUrl]
  if (given.every(value => value === undefined)) return undefined
  if (!adminUrl || !adminSecret || !adminKey || !tokenSecret || !clientUrl) {
    if (reader.problems.length > problemsBefore) return undefined
    reader.problems.push(
      'CALLSIGN_JANUS_ADMIN_URL, CALLSIGN_JANUS_ADMIN_SECRET, CALLSIGN_JANUS_ADMIN_KEY, CALLSIGN_JANUS_TOKEN_SECRET and CALLSIGN_JANUS_CLIENT_URL are set together',
    )
    return undefined
  }
  return {
    name: 'janus',
    weight: 1,
    isDraining: false,
    ...{ adminUrl, adminSecret, adminKey, tokenSecret, clientUrl },
  }
}

function readEvents(reader: EnvironmentReader): JanusEventsSettings | undefined {
  const host = reader.text('CALLSIGN_JANUS_EVENTS_HOST', 'address or name', '127.0.0.1') ?? '127.0.0.1'
  const port = reader.optionalInteger('CALLSIGN_JANUS_EVENTS_PORT', PORTS)
  return port === undefined ? undefined : { host, port }
}

function readLogin(reader: EnvironmentReader): JanusSettings['eventsLogin'] {
  const user = reader.text('CALLSIGN_JANUS_EVENTS_USER', 'text', 'janus') ?? 'janus'
  const password = reader.secret('CALLSIGN_JANUS_EVENTS_PASSWORD')
  return password === undefined ? undefined : { user, password }
}

function readSeveral(
  reader: EnvironmentReader,
  file: Buffer,
  { events, isAlone }: { readonly events: JanusEventsSettings | undefined; readonly isAlone: boolean },
): JanusMediaSettings | undefined {
  if (!isAlone) {
    reader.problems.push(
      `${FILE} has all of the gateways: leave CALLSIGN_JANUS_ADMIN_URL and its companions, and CALLSIGN_JANUS_EVENTS_PASSWORD, out`,
    )
  }
  const problems: string[] = []
  const gateways = gatewaysIn(file, problems)
  for (const { name, eventsLogin } of gateways) {
    if ((events === undefined) !== (eventsLogin === undefined))
      problems.push(`"${name}": eventsPassword and CALLSIGN_JANUS_EVENTS_PORT are set together`)
  }
  reader.problems.push(...problems.map(problem => `${FILE}: ${problem}`))
  return { kind: 'janus', gateways, ...(events && { events }) }
}

/** The gateways without a fault. `problems` gets the faults of the rest, which quote no value but a name in its form. */
function gatewaysIn(file: Buffer, problems: string[]): readonly JanusSettings[] {
  const json = parsed(file)
  if (json === undefined) {
    problems.push('is not valid JSON')
    return []
  }
  const { gateways: list, ...others } = membersOf(json) ?? {}
  if (!Array.isArray(list) || Object.keys(others).length > 0) {
    problems.push('is a JSON object with the one member "gateways", a list')
    return []
  }
  if (list.length === 0 || list.length > GATEWAYS_MAX) {
    problems.push(`has 1 to ${GATEWAYS_MAX} gateways, not ${list.length}`)
    return []
  }
  const found = list.flatMap((each, at) => {
    const gateway = gatewayOf(each, problem => problems.push(`${labelOf(each, at)}: ${problem}`))
    return gateway === undefined ? [] : [gateway]
  })
  for (const [member, readValue] of UNIQUE) {
    const repeated = repeatedIn(found, readValue)
    if (repeated.length > 0) problems.push(`${repeated.join(', ')} have the same ${member}`)
  }
  return found
}

function gatewayOf(each: unknown, tell: (problem: string) => void): JanusSettings | undefined {
  const members = membersOf(each)
  if (members === undefined) {
    tell('is an object')
    return undefined
  }
  let isGood = true
  const refuse = (problem: string) => {
    isGood = false
    tell(problem)
  }
  const unknown = Object.keys(members).filter(name => !Object.hasOwn(MEMBERS, name))
  if (unknown.length > 0) refuse(`${unknown.map(quoted).join(', ')}: no such member`)
  for (const [name, { isIt, form, isOptional }] of Object.entries(MEMBERS)) {
    const value = members[name]
    if (value === undefined ? isOptional !== true : !isIt(value)) refuse(`${name} is ${form}`)
  }
  if (!isGood) return undefined
  const { name, weight = 1, drain = false, eventsPassword, adminUrl, ...rest } = members as unknown as Member
  return {
    name,
    weight,
    isDraining: drain,
    adminUrl: adminUrl.replace(/\/+$/, ''),
    adminSecret: rest.adminSecret,
    adminKey: rest.adminKey,
    tokenSecret: rest.tokenSecret,
    clientUrl: rest.clientUrl,
    ...(eventsPassword !== undefined && { eventsLogin: { user: name, password: eventsPassword } }),
  }
}

/** A gateway in the file. */
interface Member extends Pick<JanusSettings, 'name' | 'adminUrl' | 'adminSecret' | 'adminKey'> {
  readonly tokenSecret: string
  readonly clientUrl: string
  readonly weight?: number
  readonly drain?: boolean
  readonly eventsPassword?: string
}

/** A misplaced secret is not printed: those have digits or signs, or are longer. */
function quoted(member: string): string {
  return /^[A-Za-z]{1,24}$/.test(member) ? `"${member}"` : `a text of ${member.length} characters`
}

function labelOf(each: unknown, at: number): string {
  const { name } = membersOf(each) ?? {}
  return isName(name) ? `"${name}"` : `gateway ${at + 1}`
}

function repeatedIn(
  gateways: readonly JanusSettings[],
  readValue: (gateway: JanusSettings) => string | undefined,
): readonly string[] {
  const values = gateways.map(readValue)
  return gateways
    .filter(
      (_, at) => values[at] !== undefined && values.indexOf(values[at]) !== values.lastIndexOf(values[at]),
    )
    .map(({ name }) => `"${name}"`)
}

function parsed(file: Buffer): unknown {
  try {
    return JSON.parse(file.toString('utf8'))
  } catch {
    // Not the parser's message: it quotes the text, which has secrets.
    return undefined
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z0-9-]{1,32}$/.test(value)
}

function isSecret(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= SECRET_CHARACTERS_MAX
}

function isWeight(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 100
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

const FILE = 'CALLSIGN_JANUS_FILE'
const GATEWAYS_MAX = 64
const SECRET_CHARACTERS_MAX = 1_024
const SECRET = { isIt: isSecret, form: `a text of 1 to ${SECRET_CHARACTERS_MAX} characters` }
const MEMBERS: Readonly<
  Record<
    keyof Member,
    { readonly isIt: (value: unknown) => boolean; readonly form: string; readonly isOptional?: true }
  >
> = {
  name: { isIt: isName, form: '1 to 32 of a-z, 0-9 and -' },
  adminUrl: { isIt: isHttpUrl, form: 'an http or https address' },
  adminSecret: SECRET,
  adminKey: SECRET,
  tokenSecret: SECRET,
  clientUrl: {
    isIt: value => typeof value === 'string' && isWebSocketUrl(value),
    form: 'a ws or wss address that devices reach',
  },
  weight: { isIt: isWeight, form: 'a whole number from 1 to 100', isOptional: true },
  drain: { isIt: value => typeof value === 'boolean', form: 'true or false', isOptional: true },
  eventsPassword: { ...SECRET, isOptional: true },
}
/** With one address for two gateways each sweep would close the rooms of the other; with one password each could speak for it. */
const UNIQUE: readonly (readonly [string, (gateway: JanusSettings) => string | undefined])[] = [
  ['name', ({ name }) => name],
  ['adminUrl', ({ adminUrl }) => new URL(adminUrl).href],
  ['clientUrl', ({ clientUrl }) => new URL(clientUrl).href],
  ['eventsPassword', ({ eventsLogin }) => eventsLogin?.password],
]
