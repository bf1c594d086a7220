/**
 * The settings of the application API: sessions, the outside services that messages leave by, identity providers,
 * links. Each service is optional; a service that is not set is off, and `GET /app/api/meta` says so (contract 11).
 */

import type { AndroidApp } from '../../api/contacts/landing.ts'
import { type ApnsOptions, ApnsSender } from '../../delivery/apns.ts'
import { type FcmOptions, FcmSender, type FcmServiceAccount } from '../../delivery/fcm.ts'
import { type MailOptions, needsStartTls, parseMailAddress } from '../../delivery/mail.ts'
import type { Language } from '../../delivery/texts.ts'
import type { PasskeySettings } from '../../domain/accounts/passkey.ts'
import type { TokenLifetimes } from '../../domain/accounts/session.ts'
import { parseTurnUrl, type TurnRelay, type TurnUrl, turnAddresses } from '../../domain/calls/turn.ts'
import { type AppleOptions, AppleSignIn } from '../../identity/apple.ts'
import { IdentityProvider, type ProviderOptions } from '../../identity/identity-token.ts'
import { isIssuer } from '../../identity/issuer.ts'
import type { MediaSettings } from '../../media/media-settings.ts'
import { BUNDLE_ID_PATTERN } from '../../schema/device.ts'
import type { IdForm } from '../../schema/json.ts'
import { type EnvironmentReader, PORTS } from './environment.ts'
import { type LoginCheckSetting, readLoginCheck } from './login-check-settings.ts'
import { readMediaSettings } from './media-settings.ts'
import { readPasskeySettings } from './passkey-settings.ts'
import { type RetentionSettings, readRetention } from './retention-settings.ts'
import { readSmsSettings, type SmsSettings } from './sms-settings.ts'
import { readUserTokenSettings, type UserTokenConfig } from './user-token-settings.ts'
import { readWebPushSettings, type WebPushConfig } from './web-push-settings.ts'
import { readWebhookSettings, type WebhookSettings } from './webhook-settings.ts'

export interface ApplicationConfig
  extends SmsSettings,
    LoginCheckSetting,
    UserTokenConfig,
    WebhookSettings,
    WebPushConfig {
  readonly idsAs: IdForm
  readonly lifetimes: TokenLifetimes
  /** How long a proof after the sign-in is good for, in seconds; 0: none is asked for. */
  readonly stepUpS: number
  /** How long a call stays in its people's history; 0: there is none. */
  readonly historyDays: number
  /** How long a sign-in waits for the answer of a listed device, in hours. */
  readonly signInWaitH: number
  readonly retention: RetentionSettings
  /** Addresses with a fixed code, to which nothing is sent (contract 2.2). */
  readonly testIdentifiers: ReadonlyMap<string, string>
  readonly appName: string
  readonly language: Language
  readonly mail?: MailOptions
  readonly apns?: ApnsOptions
  /** The app's, for Apple devices that have not said theirs. */
  readonly bundleId?: string | undefined
  readonly fcm?: FcmOptions
  readonly turn?: TurnRelay
  readonly media?: MediaSettings
  readonly providers: readonly ProviderOptions[]
  readonly apple?: AppleOptions
  /** The side that makes contacts: users, by requests, or the operator's backend. */
  readonly contactsBy: 'users' | 'server'
  /** Scheme of the links that open the app. */
  readonly deepLinkScheme: string
  /** `<team id>.<bundle id>` of the apps that open share links. */
  readonly appleAppIds: readonly string[]
  readonly androidApps: readonly AndroidApp[]
  /** Whether lookups in the log need an access token. */
  readonly lookupsNeedToken: boolean
  /** Undefined where there are no passkeys. */
  readonly passkeys?: PasskeySettings | undefined
}

export function readApplicationConfig(reader: EnvironmentReader, isDevelopment: boolean): ApplicationConfig {
  return {
    idsAs: reader.oneOf('CALLSIGN_JSON_IDS', ['string', 'number'], 'string'),
    lifetimes: lifetimes(reader),
    stepUpS: reader.integer('CALLSIGN_AUTH_STEP_UP_SECONDS', {
      usual: 900,
      min: 0,
      max: YEAR_S,
      unit: 'seconds',
    }),
    signInWaitH: reader.integer('CALLSIGN_SIGN_IN_WAIT_HOURS', {
      usual: isDevelopment ? 0 : 72,
      min: 0,
      max: 168,
      unit: 'hours',
      usualText: '72, in development 0',
    }),
    historyDays: reader.integer('CALLSIGN_HISTORY_DAYS', { usual: 90, min: 0, max: 3_650, unit: 'days' }),
    retention: readRetention(reader),
    testIdentifiers: testIdentifiers(reader),
    appName: reader.text('CALLSIGN_APP_NAME', 'text', 'Callsign') ?? 'Callsign',
    language: reader.oneOf('CALLSIGN_LANGUAGE', ['en', 'vi', 'de'], 'en'),
    ...mail(reader),
    ...readSmsSettings(reader),
    ...readLoginCheck(reader),
    ...readWebhookSettings(reader),
    ...apns(reader),
    bundleId: reader.formed(
      'CALLSIGN_APNS_BUNDLE_ID',
      text => new RegExp(BUNDLE_ID_PATTERN).test(text),
      'a bundle id, such as com.example.app',
    ),
    ...fcm(reader),
    ...readWebPushSettings(reader),
    ...readUserTokenSettings(reader, isDevelopment),
    ...turn(reader),
    ...readMediaSettings(reader),
    providers: providers(reader),
    ...apple(reader),
    contactsBy: reader.oneOf('CALLSIGN_CONTACTS', ['users', 'server'], 'users'),
    deepLinkScheme: deepLinkScheme(reader),
    appleAppIds: reader.list(
      'CALLSIGN_APPLE_APP_IDS',
      text => /^[A-Z0-9]{10}\.[A-Za-z0-9.-]{1,155}$/.test(text),
      'app ids such as ABCDE12345.com.example.app',
    ),
    ...appsAndPasskeys(reader, isDevelopment),
    lookupsNeedToken: reader.flag('CALLSIGN_KT_REQUIRE_AUTH', '1'),
  }
}

/** Android apps use passkeys by the certificates that they are signed with. */
function appsAndPasskeys(
  reader: EnvironmentReader,
  isDevelopment: boolean,
): Pick<ApplicationConfig, 'androidApps' | 'passkeys'> {
  const texts = reader.list(
    'CALLSIGN_ANDROID_APPS',
    text => ANDROID_APP_FORM.test(text),
    'packages with their fingerprints such as com.example.app=AB:CD:…',
  )
  const androidApps = texts.map(text => {
    const [packageName = '', fingerprint = ''] = text.split('=')
    return { packageName, fingerprint }
  })
  return { androidApps, ...readPasskeySettings(reader, isDevelopment, androidApps) }
}

function lifetimes(reader: EnvironmentReader): TokenLifetimes {
  return {
    accessS: reader.integer('CALLSIGN_AUTH_ACCESS_SECONDS', {
      usual: 3_600,
      min: 60,
      max: DAY_S,
      unit: 'seconds',
    }),
    refreshS: reader.integer('CALLSIGN_AUTH_REFRESH_SECONDS', {
      usual: 60 * DAY_S,
      usualText: '5184000, 60 days',
      min: 3_600,
      max: YEAR_S,
      unit: 'seconds',
    }),
    sessionS: reader.integer('CALLSIGN_AUTH_SESSION_SECONDS', {
      usual: YEAR_S,
      usualText: '31536000, 365 days',
      min: 3_600,
      max: 10 * YEAR_S,
      unit: 'seconds',
    }),
  }
}

function deepLinkScheme(reader: EnvironmentReader): string {
  const isScheme = (text: string) => /^[A-Za-z][A-Za-z0-9+.-]*$/.test(text)
  const form = 'the name of a scheme such as callsign, without ://'
  return reader.formed('CALLSIGN_DEEP_LINK_SCHEME', isScheme, form, 'callsign') ?? 'callsign'
}

function testIdentifiers(reader: EnvironmentReader): ReadonlyMap<string, string> {
  const form = 'a JSON object of addresses and their six-digit codes'
  const codes = reader.json('CALLSIGN_TEST_IDENTIFIERS', form, value => {
    const entries = Object.entries(objectOf(value) ?? {})
    const areGood = entries.every(([, code]) => typeof code === 'string' && /^\d{6}$/.test(code))
    return areGood && objectOf(value) !== undefined ? new Map(entries as [string, string][]) : undefined
  })
  return codes ?? new Map()
}

function mail(reader: EnvironmentReader): Pick<ApplicationConfig, 'mail'> {
  const url = reader.secret('CALLSIGN_SMTP_URL', 'address such as smtp://user:password@host:587')
  const from = reader.text('CALLSIGN_MAIL_FROM', 'address such as Callsign <no-reply@example.org>')
  const authority = reader.file('CALLSIGN_SMTP_CA')
  reader.refuseWithout('CALLSIGN_SMTP_URL', ['CALLSIGN_SMTP_CA'])
  if (url === undefined && from === undefined) return {}
  if (url === undefined || from === undefined) {
    reader.problems.push('CALLSIGN_SMTP_URL and CALLSIGN_MAIL_FROM are set together or not at all')
    return {}
  }
  if (!URL.canParse(url) || !/^smtps?:$/.test(new URL(url).protocol) || new URL(url).hostname === '') {
    reader.problems.push('CALLSIGN_SMTP_URL is an address such as smtp://user:password@host:587')
  } else if (forgoesTls(new URL(url).searchParams) && needsStartTls(url)) {
    reader.problems.push(
      'CALLSIGN_SMTP_URL would send its password in the clear: use TLS, or add allowPlain=true where the way to the mail server is safe',
    )
  }
  if (throws(() => parseMailAddress(from))) {
    reader.problems.push('CALLSIGN_MAIL_FROM is an address such as Callsign <no-reply@example.org>')
  }
  return { mail: { url, from, ...(authority === undefined ? {} : { ca: authority.toString('utf8') }) } }
}

function forgoesTls(parameters: URLSearchParams): boolean {
  const asked = parameters.get('requireTLS')
  if (asked === 'true' || asked === 'false') return asked === 'false'
  return ['ignoreTLS', 'opportunisticTLS'].some(name => parameters.get(name) === 'true')
}

function apns(reader: EnvironmentReader): Pick<ApplicationConfig, 'apns'> {
  const key = pem(reader.secret('CALLSIGN_APNS_KEY', 'text of a .p8 file'))
  const keyId = reader.text('CALLSIGN_APNS_KEY_ID')
  const teamId = reader.text('CALLSIGN_APNS_TEAM_ID')
  const hosts = reader.list(
    'CALLSIGN_APNS_HOST',
    text => /^[A-Za-z0-9.:-]+$/.test(text),
    'one or two host names',
  )
  if (hosts.length > 2) {
    reader.problems.push('CALLSIGN_APNS_HOST is one or two host names: production and development')
  }
  const port = reader.integer('CALLSIGN_APNS_PORT', { usual: 443, ...PORTS, min: 1 })
  const authority = reader.file('CALLSIGN_APNS_CA')
  reader.refuseWithout('CALLSIGN_APNS_KEY', ['CALLSIGN_APNS_HOST', 'CALLSIGN_APNS_PORT', 'CALLSIGN_APNS_CA'])
  if (key === undefined && keyId === undefined && teamId === undefined) return {}
  if (key === undefined || keyId === undefined || teamId === undefined) {
    reader.problems.push('CALLSIGN_APNS_KEY, CALLSIGN_APNS_KEY_ID and CALLSIGN_APNS_TEAM_ID are set together')
    return {}
  }
  const [production, development = production] = hosts
  const options: ApnsOptions = {
    key,
    keyId,
    teamId,
    port,
    ...(production === undefined || development === undefined ? {} : { hosts: { production, development } }),
    ...(authority === undefined ? {} : { ca: authority.toString('utf8') }),
  }
  if (throws(() => new ApnsSender(options).close())) {
    reader.problems.push('CALLSIGN_APNS_KEY is not the text of a .p8 file from Apple')
  }
  return { apns: options }
}

function fcm(reader: EnvironmentReader): Pick<ApplicationConfig, 'fcm'> {
  const form = 'the JSON of a Google service account with client_email, private_key and project_id'
  const url = reader.url('CALLSIGN_FCM_URL', 'Google’s')
  reader.refuseWithout('CALLSIGN_FCM_SERVICE_ACCOUNT', ['CALLSIGN_FCM_URL'])
  const options = reader.json('CALLSIGN_FCM_SERVICE_ACCOUNT', form, value => {
    const members = objectOf(value)
    const names = ['client_email', 'private_key', 'project_id']
    const isWhole = members !== undefined && names.every(name => typeof members[name] === 'string')
    if (!isWhole) return undefined
    const serviceAccount = members as unknown as FcmServiceAccount
    const fcm: FcmOptions = { serviceAccount, ...(url === undefined ? {} : { url }) }
    return throws(() => new FcmSender(fcm)) ? undefined : fcm
  })
  return options === undefined ? {} : { fcm: options }
}

function turn(reader: EnvironmentReader): Pick<ApplicationConfig, 'turn'> {
  const secretText = reader.secret('CALLSIGN_TURN_SECRETS', 'texts by commas; the first signs')
  const tlsText = reader.text('CALLSIGN_TURN_TLS_URL', 'address such as turns:turn.example.org:5349')
  const plainText = reader.text('CALLSIGN_TURN_URL', 'address such as turn:turn.example.org:3478')
  const lifetimeS = reader.integer('CALLSIGN_TURN_TTL_SECONDS', {
    usual: 43_200,
    usualText: '43200, 12 hours',
    min: 60,
    max: 7 * DAY_S,
    unit: 'seconds',
  })
  if (secretText === undefined && tlsText === undefined && plainText === undefined) return {}
  if (secretText === undefined || tlsText === undefined || plainText === undefined) {
    reader.problems.push(
      'CALLSIGN_TURN_SECRETS, CALLSIGN_TURN_TLS_URL and CALLSIGN_TURN_URL are set together',
    )
    return {}
  }
  const secrets = secretText.split(',').map(secret => secret.trim())
  const [current, ...others] = secrets.filter(secret => secret !== '')
  const tls = turnUrl(tlsText, 'turns')
  const plain = turnUrl(plainText, 'turn')
  // Not the texts: one may be a secret in the wrong place.
  if (current === undefined)
    reader.problems.push('CALLSIGN_TURN_SECRETS is a list of secrets, the current one first')
  if (tls === undefined)
    reader.problems.push(`CALLSIGN_TURN_TLS_URL ${TURN_FORM} turns:turn.example.org:5349`)
  if (plain === undefined) reader.problems.push(`CALLSIGN_TURN_URL ${TURN_FORM} turn:turn.example.org:3478`)
  if (current === undefined || tls === undefined || plain === undefined) return {}
  return { turn: { secrets: [current, ...others], addresses: turnAddresses(plain, tls), lifetimeS } }
}

function turnUrl(text: string, scheme: TurnUrl['scheme']): TurnUrl | undefined {
  const url = parseTurnUrl(text)
  return url?.scheme === scheme ? url : undefined
}

function providers(reader: EnvironmentReader): readonly ProviderOptions[] {
  const form = 'a JSON list of {"name", "issuer", "clientIds", "jwksUri"?} with a name for each'
  const list = reader.json('CALLSIGN_OIDC_PROVIDERS', form, value => {
    if (!Array.isArray(value)) return undefined
    const isProvider = (each: unknown): each is ProviderOptions => {
      const { name, issuer, clientIds, jwksUri } = objectOf(each) ?? {}
      const hasIssuer = typeof issuer === 'string' && isIssuer(issuer)
      const hasUris = hasIssuer && (jwksUri === undefined || isUrl(jwksUri))
      const isNamed = typeof name === 'string' && /^[a-z0-9-]{1,32}$/.test(name)
      return (
        isNamed &&
        hasUris &&
        isTexts(clientIds) &&
        !throws(() => new IdentityProvider(each as ProviderOptions, NO_WORLD))
      )
    }
    const names = new Set(value.map(each => objectOf(each)?.name))
    return value.every(isProvider) && names.size === value.length ? value : undefined
  })
  return list ?? []
}

function apple(reader: EnvironmentReader): Pick<ApplicationConfig, 'apple'> {
  const clientIds = reader.list('CALLSIGN_APPLE_CLIENT_IDS', text => text.length <= 255, 'bundle ids')
  const settings = {
    teamId: reader.text('CALLSIGN_APPLE_TEAM_ID'),
    keyId: reader.text('CALLSIGN_APPLE_KEY_ID'),
    privateKey: pem(reader.secret('CALLSIGN_APPLE_PRIVATE_KEY', 'text of a .p8 file')),
    issuer: reader.url('CALLSIGN_APPLE_ISSUER', 'Apple’s'),
    jwksUri: reader.url('CALLSIGN_APPLE_JWKS_URL', 'Apple’s'),
    tokenUrl: reader.url('CALLSIGN_APPLE_TOKEN_URL', 'Apple’s'),
    revokeUrl: reader.url('CALLSIGN_APPLE_REVOKE_URL', 'Apple’s'),
  }
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  if (clientIds.length === 0) {
    if (given.length > 0) reader.problems.push('CALLSIGN_APPLE_CLIENT_IDS is missing: the app’s bundle ids')
    return {}
  }
  const options: AppleOptions = { clientIds, ...Object.fromEntries(given) }
  if (throws(() => new AppleSignIn(options, NO_WORLD))) {
    reader.problems.push(
      'CALLSIGN_APPLE_TEAM_ID, CALLSIGN_APPLE_KEY_ID and CALLSIGN_APPLE_PRIVATE_KEY (the text of a .p8 file) are set together',
    )
  }
  return { apple: options }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(each => typeof each === 'string')
}

function isUrl(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

/** A key in PEM, whose line ends an environment often holds as the two characters `\\n`. */
function pem(text: string | undefined): string | undefined {
  return text?.replaceAll('\\n', '\n')
}

function throws(act: () => unknown): boolean {
  try {
    act()
    return false
  } catch {
    return true
  }
}

const TURN_FORM = 'is an address of RFC 7065 such as'
const DAY_S = 86_400
const YEAR_S = 365 * DAY_S
const ANDROID_APP_FORM = /^[A-Za-z0-9_.]{1,255}=(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/
/** Options are tried out before there is a world to use them in. */
const NO_WORLD = { nowMs: () => 0 }
