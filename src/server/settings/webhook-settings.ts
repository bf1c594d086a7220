/** Settings of webhooks: one endpoint, and how many events may wait for all of them. */

import { faultOfWebhookUrl } from '../../delivery/operator-url.ts'
import { isWebhookSecret } from '../../delivery/webhook.ts'
import { WEBHOOKS_WAITING_MAX } from '../../limits.ts'
import type { EndpointSettings } from '../../store/operators/webhook-endpoints.ts'
import type { EnvironmentReader } from './environment.ts'

export interface WebhookSettings {
  /** Undefined where the operator's command alone makes endpoints. */
  readonly webhook?: EndpointSettings
  readonly webhookWaitingMax: number
}

export function readWebhookSettings(reader: EnvironmentReader): WebhookSettings {
  const url = reader.text('CALLSIGN_WEBHOOK_URL', 'https address, or http address of a private network')
  const text = reader.secret(
    'CALLSIGN_WEBHOOK_SECRET',
    'whsec_ and base64 of 32 bytes; two while you change it',
  )
  reader.refuseWithout('CALLSIGN_WEBHOOK_URL', ['CALLSIGN_WEBHOOK_SECRET'])
  const webhookWaitingMax = reader.integer('CALLSIGN_WEBHOOK_WAITING_MAX', {
    usual: WEBHOOKS_WAITING_MAX,
    min: 10,
    max: 100_000_000,
    unit: 'events',
  })
  if (url === undefined) return { webhookWaitingMax }
  const fault = faultOfWebhookUrl(url)
  if (fault !== undefined) reader.problems.push(`CALLSIGN_WEBHOOK_URL ${fault}`)
  const secrets = text?.split(/[\s,]+/) ?? []
  if (secrets.length < 1 || secrets.length > SECRETS_MAX || !secrets.every(isWebhookSecret)) {
    reader.problems.push(
      'CALLSIGN_WEBHOOK_SECRET goes with CALLSIGN_WEBHOOK_URL: whsec_ and base64 of 32 bytes, or two of them with a blank between',
    )
  }
  return { webhook: { url, secrets }, webhookWaitingMax }
}

const SECRETS_MAX = 2
