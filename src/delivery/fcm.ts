/**
 * Push to Android by FCM's HTTP v1: one POST per message over HTTP/2, with an access token that a signed assertion of the service
 * account buys (RFC 7523; Google's "OAuth 2.0 for server to server applications").
 */

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { bytesOf } from './finished-push.ts'
import { type PostResult, post } from './http-post.ts'
import { Http2Link } from './http2-link.ts'
import { type DeliveryOutcome, type Retry, reasonWord } from './outcome.ts'
import { type PushMembers, withoutKey } from './push-content.ts'
import { type PushSealing, sealPush } from './sealed-push.ts'

/** The fields in use from Google's JSON file. */
export interface FcmServiceAccount {
  readonly client_email: string
  /** PEM, PKCS #8, RSA. */
  readonly private_key: string
  readonly project_id: string
  readonly private_key_id?: string
  readonly token_uri?: string
}

export interface FcmOptions {
  readonly serviceAccount: FcmServiceAccount
  /** Without a trailing slash; Google's where it is left out. */
  readonly url?: string
  readonly timeoutMs?: number
  /** A call rings for a minute: its pushes are given up sooner. */
  readonly urgentTimeoutMs?: number
  readonly nowMs?: () => number
  /** Google checks every message and delivers none. */
  readonly isDryRun?: boolean
}

export interface FcmPush {
  readonly token: string
  readonly priority: 'high' | 'normal'
  /** A call's push is given up soon. */
  readonly isUrgent?: boolean
  readonly ttlSeconds: number
  readonly collapseKey?: string
  /** Shown by the system. Left out: the app gets `data` alone, and decides. */
  readonly notification?: FcmNotification
  readonly channelId?: string
  readonly data: Readonly<Record<string, string | number | boolean>>
  /** The data are sealed for this device. */
  readonly sealing?: PushSealing | undefined
}

/** Words, or the names of words in the app's own resources. */
export interface FcmNotification {
  readonly title?: string
  readonly body?: string
  readonly titleLocKey?: string
  readonly titleLocArgs?: readonly string[]
  readonly bodyLocKey?: string
  readonly bodyLocArgs?: readonly string[]
  /** Takes the place of the app's notification with the same tag, and the id 0. */
  readonly tag?: string
}

/** As it goes to Google, which takes only texts: sealed, or without the call's key where that would be too much. */
export function finishedFcmPush({ sealing, data, ...push }: FcmPush): FinishedFcmPush {
  if (sealing !== undefined) return { ...push, data: { sealed: sealPush(sealing, data as PushMembers) } }
  const texts = textsOf(data)
  const isTooLarge = bytesOf(texts) > FCM_DATA_BYTES_MAX
  return { ...push, data: isTooLarge ? textsOf(withoutKey(data as PushMembers)) : texts }
}

interface FinishedFcmPush extends Omit<FcmPush, 'data' | 'sealing'> {
  readonly data: Readonly<Record<string, string>>
}

function textsOf(members: FcmPush['data']): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]))
}

export class FcmSender {
  readonly #link: Http2Link
  readonly #path: string
  readonly #timeoutMs: number
  readonly #urgentTimeoutMs: number
  readonly #isDryRun: boolean
  readonly #accessToken: AccessToken

  /** Throws, with a sentence for the operator, when the account's key can sign no assertion. */
  constructor(options: FcmOptions) {
    const {
      serviceAccount,
      url = GOOGLE_URL,
      timeoutMs = 10_000,
      urgentTimeoutMs = 3_000,
      nowMs = Date.now,
      isDryRun = false,
    } = options
    const { origin, pathname } = new URL(
      `${url}/v1/projects/${encodeURIComponent(serviceAccount.project_id)}/`,
    )
    this.#link = new Http2Link(origin)
    this.#path = `${pathname}messages:send`
    this.#timeoutMs = timeoutMs
    this.#urgentTimeoutMs = urgentTimeoutMs
    this.#isDryRun = isDryRun
    this.#accessToken = new AccessToken(serviceAccount, urgentTimeoutMs, nowMs)
  }

  /** Never rejects. */
  async send(push: FcmPush): Promise<DeliveryOutcome> {
    const message = messageOf(finishedFcmPush(push))
    const timeoutMs = push.isUrgent ? this.#urgentTimeoutMs : this.#timeoutMs
    const body = JSON.stringify(this.#isDryRun ? { validate_only: true, message } : { message })
    for (const isLast of [false, true]) {
      const bought = await this.#accessToken.get()
      if (bought.kind !== 'token') return bought
      const answer = await this.#post(bought.token, body, timeoutMs)
      if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason }
      if (!isOfAccessToken(answer) || isLast) return outcomeOf(answer)
      // Once more with a new one.
      this.#accessToken.drop(bought.token)
    }
    throw new Error('unreachable: the last try returns')
  }

  /** Ends the session; requests under way and later ones end with `retry`. */
  close(): void {
    this.#link.close()
  }

  #post(token: string, body: string, timeoutMs: number): Promise<PostResult> {
    return this.#link.post({
      path: this.#path,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body,
      timeoutMs,
      answerBytesMax: ANSWER_BYTES_MAX,
    })
  }
}

type Bought =
  | {
      readonly kind: 'token'
      readonly token: string
      /** From then on another is bought. */
      readonly freshUntilMs: number
      readonly goodUntilMs: number
    }
  | Retry

/**
 * The service account's access token: bought when it is needed, by one request for all who wait, and kept. Its
 * successor is bought before it ends, while it serves on: no push waits for that, and a seller who is out for a few
 * minutes goes unnoticed.
 */
class AccessToken {
  readonly #account: FcmServiceAccount
  readonly #key: KeyObject
  readonly #timeoutMs: number
  readonly #nowMs: () => number
  #kept: Extract<Bought, { kind: 'token' }> | undefined
  #buying: Promise<Bought> | undefined

  constructor(account: FcmServiceAccount, timeoutMs: number, nowMs: () => number) {
    this.#account = account
    this.#key = signingKey(account.private_key)
    this.#timeoutMs = timeoutMs
    this.#nowMs = nowMs
  }

  get(): Promise<Bought> | Bought {
    const nowMs = this.#nowMs()
    const kept = this.#kept
    if (kept !== undefined && nowMs < kept.freshUntilMs) return kept
    this.#buying ??= this.#buy().finally(() => {
      this.#buying = undefined
    })
    if (kept === undefined || nowMs >= kept.goodUntilMs) return this.#buying
    this.#buying.catch(() => undefined)
    return kept
  }

  /** Forgets the token, unless another has replaced it since. */
  drop(token: string): void {
    if (this.#kept?.token === token) this.#kept = undefined
  }

  async #buy(): Promise<Bought> {
    const askedAtMs = this.#nowMs()
    const assertion = await this.#assertion(askedAtMs)
    const answer = await post({
      url: this.#tokenUri,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: GRANT,
        assertion,
      }).toString(),
      timeoutMs: this.#timeoutMs,
      answerBytesMax: ANSWER_BYTES_MAX,
    })
    if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason }
    const { access_token: token, expires_in: seconds, error } = jsonOf(answer.body)
    if (answer.status !== 200 || typeof token !== 'string' || typeof seconds !== 'number') {
      const isRefused = answer.status >= 400 && answer.status < 500 && answer.status !== 429
      const retry = retryOf(answer, reasonWord(error, `token-http-${answer.status}`))
      return isRefused ? { ...retry, isOfAccount: true } : retry
    }
    const endMs = askedAtMs + seconds * 1000
    const [freshUntilMs, goodUntilMs] = [endMs - RENEWED_BEFORE_MS, endMs - UNSURE_MS]
    this.#kept = { kind: 'token', token, freshUntilMs, goodUntilMs }
    return this.#kept
  }

  async #assertion(nowMs: number): Promise<string> {
    const { client_email, private_key_id } = this.#account
    const { SignJWT } = await import('jose/jwt/sign')
    const issuedAt = Math.floor(nowMs / 1000)
    return new SignJWT({ scope: SCOPE })
      .setProtectedHeader({
        alg: 'RS256',
        typ: 'JWT',
        ...(private_key_id === undefined ? {} : { kid: private_key_id }),
      })
      .setIssuer(client_email)
      .setAudience(this.#tokenUri)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ASSERTION_SECONDS)
      .sign(this.#key)
  }

  get #tokenUri(): string {
    return this.#account.token_uri ?? GOOGLE_TOKEN_URI
  }
}

function signingKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'rsa') return key
  } catch {
    // Said below: the library's own words could show a part of the key.
  }
  throw new Error('private_key of the FCM service account is not an RSA key (PEM)')
}

/** The `Message` of HTTP v1. `JSON.stringify` leaves out undefined members. */
function messageOf({
  token,
  priority,
  ttlSeconds,
  collapseKey,
  notification,
  channelId,
  data,
}: FinishedFcmPush) {
  return {
    token,
    data,
    android: {
      priority: priority === 'high' ? 'HIGH' : 'NORMAL',
      ttl: `${Math.max(0, Math.floor(ttlSeconds))}s`,
      collapse_key: collapseKey,
      notification: notification && {
        channel_id: channelId,
        title: notification.title,
        body: notification.body,
        title_loc_key: notification.titleLocKey,
        title_loc_args: notification.titleLocArgs,
        body_loc_key: notification.bodyLocKey,
        body_loc_args: notification.bodyLocArgs,
        tag: notification.tag,
      },
    },
  }
}

type Answer = Extract<PostResult, { kind: 'answered' }>

function outcomeOf(answer: Answer): DeliveryOutcome {
  const { status } = answer
  if (status >= 200 && status < 300) return { kind: 'sent' }
  const fault = faultOf(answer.body)
  const reason = reasonWord(fault.code, `http-${status}`)
  // A quota may belong to one device.
  if (status === 429) return { ...retryOf(answer, reason), isOfMessage: true }
  // The Firebase project lacks the credentials of Apple or of browsers: this token is of such an app.
  if (fault.code === THIRD_PARTY) return { kind: 'retry', reason, isOfMessage: true }
  const isOurs = status === 401 || (status === 403 && fault.code !== 'SENDER_ID_MISMATCH')
  if (isOurs) return { kind: 'retry', reason, isOfAccount: true }
  if (status >= 500) return retryOf(answer, reason)
  const isGone = fault.code === 'UNREGISTERED' || (status === 400 && fault.isAboutToken)
  return { kind: isGone ? 'token-gone' : 'refused', reason }
}

/** Withdrawn, or our clock is wrong. */
function isOfAccessToken({ status, body }: Answer): boolean {
  return status === 401 && faultOf(body).code !== THIRD_PARTY
}

function retryOf({ retryAfterMs }: Answer, reason: string): Retry {
  return { kind: 'retry', reason, ...(retryAfterMs === undefined ? {} : { afterMs: retryAfterMs }) }
}

/**
 * FCM's own error code where the answer has one, else Google's general one; and whether the fault lies in the token.
 * An INVALID_ARGUMENT can be about anything: only the field it names, or its words, tell.
 */
function faultOf(body: string): { code: unknown; isAboutToken: boolean } {
  const { error } = jsonOf(body)
  if (typeof error !== 'object' || error === null) return { code: undefined, isAboutToken: false }
  const { status, message, details } = error as Record<string, unknown>
  const all: readonly { errorCode?: unknown; fieldViolations?: unknown }[] = Array.isArray(details)
    ? details
    : []
  const code = all.find(detail => typeof detail?.errorCode === 'string')?.errorCode ?? status
  const fields = all.flatMap(detail => (Array.isArray(detail?.fieldViolations) ? detail.fieldViolations : []))
  const isAboutToken =
    fields.some(violation => violation?.field === 'message.token') ||
    (typeof message === 'string' && /registration token/i.test(message))
  return { code, isAboutToken }
}

/** The members of a JSON object; none for anything else. */
function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const GOOGLE_URL = 'https://fcm.googleapis.com'
const GOOGLE_TOKEN_URI = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ASSERTION_SECONDS = 3_600
const RENEWED_BEFORE_MS = 300_000
/** Not used so shortly before its end: it has to be good when it arrives. */
const UNSURE_MS = 30_000
const THIRD_PARTY = 'THIRD_PARTY_AUTH_ERROR'
const ANSWER_BYTES_MAX = 65_536
/** Names and values together; the JSON around them, which is counted here too, is not Google's. */
const FCM_DATA_BYTES_MAX = 4_096
