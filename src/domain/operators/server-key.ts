/**
 * Credentials of the server API (operators.md section 2): server keys, which the operator hands to a backend, and the operator's
 * own command, which proves that it has the server's secret.
 */

import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

export const SCOPES = [
  'users',
  'sign-in',
  'contacts',
  'calls',
  'reports',
  'export',
  'audit',
  'console',
] as const

export type Scope = (typeof SCOPES)[number]

/** The asker behind a request to the server API. */
export interface ServerKeyHolder {
  /** The key's id; `OPERATOR` for the operator's command. */
  readonly keyId: string
  readonly name: string
  /** The person that a console key names. */
  readonly person?: string
  readonly scopes: ReadonlySet<Scope>
  /** By a session of the operators' page instead of the key itself. */
  readonly isConsoleSession?: true
}

/** The `keyId` of the operator's command. */
export const OPERATOR = 'operator'

export interface ServerKeyParts {
  readonly keyId: string
  readonly secret: string
}

export function formatServerKey({ keyId, secret }: ServerKeyParts): string {
  return `csk_${keyId}_${secret}`
}

/** Undefined for any other text. */
export function parseServerKey(text: string): ServerKeyParts | undefined {
  const [, keyId, secret] = KEY_FORM.exec(text) ?? []
  return keyId === undefined || secret === undefined ? undefined : { keyId, secret }
}

export function isServerKeyId(text: string): boolean {
  return KEY_ID_FORM.test(text)
}

/** SHA-256 (32 bytes): the secret has 256 random bits, so a plain hash does not help to guess it. */
export function hashServerKey({ secret }: ServerKeyParts): Uint8Array {
  return createHash('sha256').update(secret).digest()
}

/** The parts of a request that the credential of an operator's command is bound to. */
export interface OperatorRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly body: Uint8Array
}

/** `cso_<Unix milliseconds>_<HMAC>`, good for one request: the same one a moment later has another. */
export function formatOperatorCredential(key: KeyObject, request: OperatorRequest, nowMs: number): string {
  const atMs = `${nowMs}`
  return `cso_${atMs}_${macOf(key, atMs, request).toString('hex')}`
}

/** Whether the credential was made for this request, within the last minute or a clock that differs by one. */
export function isOperatorCredential(
  key: KeyObject,
  text: string,
  request: OperatorRequest,
  nowMs: number,
): boolean {
  const [, atMs, mac] = CREDENTIAL_FORM.exec(text) ?? []
  if (atMs === undefined || mac === undefined) return false
  if (Math.abs(nowMs - Number(atMs)) > CREDENTIAL_MS_MAX) return false
  return timingSafeEqual(Buffer.from(mac, 'hex'), macOf(key, atMs, request))
}

function macOf(key: KeyObject, atMs: string, { method, path, body }: OperatorRequest): Buffer {
  const bodyHash = createHash('sha256').update(body).digest('hex')
  return createHmac('sha256', key).update(`${atMs} ${method} ${path} ${bodyHash}`).digest()
}

const KEY_ID_FORM = /^[0-9a-f]{12}$/
const KEY_FORM = /^csk_([0-9a-f]{12})_([0-9a-f]{64})$/
const CREDENTIAL_FORM = /^cso_([0-9]{1,15})_([0-9a-f]{64})$/
/** How long an operator's credential is good. */
export const CREDENTIAL_MS_MAX = 60_000
