/** Verifies webhooks (Standard Webhooks 1.0): who sent them, when, and that nothing was changed on the way. */

import { CallsignServerError } from './callsign-server-error.ts'
import type { WebhookEvent } from './wire.ts'

/** A request's headers: the object of Node, a `Headers`, or pairs. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/** An event, and the id by which a repeated one is known. */
export type ReceivedWebhook = WebhookEvent & { readonly id: string }

/**
 * The event of a webhook, with its `webhook-id`, by which a repeated one is known. `body` is the request's text or bytes as they
 * came, before any parser. `secret` is `whsec_...`. Rejects with `CallsignServerError` of code `WEBHOOK_INVALID`, and with `TypeError`
 * for a secret or a body that is none.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secret: string,
  {
    toleranceS = TOLERANCE_S,
    nowMs = Date.now(),
  }: {
    /** Seconds that the clocks may differ, and that an event may be on its way; 300 if left out. */
    readonly toleranceS?: number
    /** Milliseconds since 1970, in place of the machine's clock. */
    readonly nowMs?: number
  } = {},
): Promise<ReceivedWebhook> {
  const header = (name: string) => headerOf(headers, name)
  const [id, timestamp, signatures] = [
    header('webhook-id'),
    header('webhook-timestamp'),
    header('webhook-signature'),
  ]
  if (id === '' || !/^[0-9]{1,12}$/.test(timestamp) || signatures === '')
    throw invalid('it lacks webhook-id, webhook-timestamp or webhook-signature')
  const offS = Math.abs(nowMs / 1000 - Number(timestamp))
  if (offS > toleranceS)
    throw invalid(`it is of another time: the clocks differ by ${Math.round(offS)} s, or it was held back`)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  if (!(bytes instanceof Uint8Array))
    throw new TypeError('body is not the text or bytes of the request: has a parser read it?')
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  const key = await keyOf(secret)
  for (const each of signatures.split(' ').slice(0, SIGNATURES_MAX)) {
    const [version, signature = ''] = each.split(',')
    if (version !== 'v1') continue
    const mac = bytesOf(signature)
    if (mac !== undefined && (await crypto.subtle.verify('HMAC', key, mac, signed))) return eventOf(id, bytes)
  }
  throw invalid('no signature of it is by this secret')
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (typeof (headers as Headers).get === 'function') return (headers as Headers).get(name) ?? ''
  const value = (headers as Exclude<WebhookHeaders, Headers>)[name]
  return typeof value === 'string' ? value : (value?.[0] ?? '')
}

async function keyOf(secret: string) {
  const bytes = bytesOf(secret.replace(/^whsec_/, ''))
  if (bytes === undefined || bytes.length < SECRET_BYTES_MIN)
    throw new TypeError('the secret is not a webhook secret, whsec_...')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** Decodes base64; undefined for anything else. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), character => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(one.length + other.length)
  whole.set(one)
  whole.set(other, one.length)
  return whole
}

function eventOf(id: string, bytes: Uint8Array): ReceivedWebhook {
  let event: unknown
  try {
    event = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    throw invalid('its body is not JSON')
  }
  if (typeof event !== 'object' || event === null || typeof (event as { type?: unknown }).type !== 'string')
    throw invalid('its body is no event')
  return { ...(event as WebhookEvent), id }
}

function invalid(reason: string): CallsignServerError {
  return new CallsignServerError('WEBHOOK_INVALID', `the webhook is not accepted: ${reason}`)
}

const TOLERANCE_S = 300
const SECRET_BYTES_MIN = 24
/** Two during a rotation; more only cost time. */
const SIGNATURES_MAX = 8
