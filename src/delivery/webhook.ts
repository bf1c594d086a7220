/**
 * Sends one event to one endpoint, in the form of Standard Webhooks 1.0: its id, the time of this try and a signature stand in
 * headers. A redirect is a failure like every other answer but 2xx; 410 says that nothing more is wanted there.
 */

import { createHmac } from 'node:crypto'
import { postToOperator } from './operator-url.ts'

export type WebhookOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'retry'; readonly reason: string; readonly afterMs?: number }
  /** Nothing is to be sent there any more. */
  | { readonly kind: 'gone' }
  /** It can never be sent. */
  | { readonly kind: 'hopeless'; readonly reason: 'too-large' | 'unreadable' }

export interface SignedWebhook {
  readonly url: string
  /** The newest first: each signs. */
  readonly secrets: readonly string[]
  readonly webhookId: string
  readonly body: string
}

/** Never rejects. After `retry` the endpoint may have taken it all the same. */
export async function sendWebhook(
  { url, secrets, webhookId, body }: SignedWebhook,
  nowMs: number,
): Promise<WebhookOutcome> {
  if (Buffer.byteLength(body) > BODY_BYTES_MAX) return { kind: 'hopeless', reason: 'too-large' }
  if (secrets.length === 0) return { kind: 'retry', reason: 'no-secret' }
  const timestamp = `${Math.floor(nowMs / 1000)}`
  const answer = await postToOperator({
    url,
    headers: {
      'content-type': 'application/json',
      'webhook-id': webhookId,
      'webhook-timestamp': timestamp,
      'webhook-signature': secrets.map(secret => signatureBy(secret, webhookId, timestamp, body)).join(' '),
    },
    body,
    timeoutMs: TIMEOUT_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
    keepsConnection: true,
  })
  if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason }
  const { status, retryAfterMs } = answer
  if (status >= 200 && status < 300) return { kind: 'sent' }
  if (status === 410) return { kind: 'gone' }
  return {
    kind: 'retry',
    reason: `http-${status}`,
    ...(retryAfterMs !== undefined && { afterMs: retryAfterMs }),
  }
}

/** `whsec_` and base64 of 32 octets. */
export function newWebhookSecret(random: (length: number) => Uint8Array): string {
  return `${PREFIX}${Buffer.from(random(SECRET_BYTES)).toString('base64')}`
}

export function isWebhookSecret(text: string): boolean {
  const bytes = keyOf(text)
  return bytes.length === SECRET_BYTES && text === `${PREFIX}${bytes.toString('base64')}`
}

function signatureBy(secret: string, webhookId: string, timestamp: string, body: string): string {
  const mac = createHmac('sha256', keyOf(secret)).update(`${webhookId}.${timestamp}.${body}`)
  return `v1,${mac.digest('base64')}`
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64')
}

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
const BODY_BYTES_MAX = 65_536
const TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 1_024
