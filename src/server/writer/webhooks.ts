/** The assembly of webhooks: an actor for each endpoint, woken at the start and for new events. */

import type { WebhookCommand } from '../../../actors/messages.ts'
import { webhookKind } from '../../../actors/webhook.ts'
import type { WebhookPosts } from '../../api/server-api/deps.ts'
import { faultOfWebhookUrl } from '../../delivery/operator-url.ts'
import { newWebhookSecret, sendWebhook } from '../../delivery/webhook.ts'
import { subjectOf, subjectText } from '../../domain/operators/webhook-event.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { webhookBody } from '../../schema/webhook.ts'
import { endpointName } from '../../store/operators/webhook-endpoints.ts'
import { WebhookQueue } from '../../store/operators/webhook-queue.ts'
import type { Stores } from '../application-stores.ts'
import type { WritingProcess } from '../process/process.ts'

/** Also has the endpoint of the settings be as they say. */
export async function startWebhooks(
  { config, metrics, logger, world, onActorFailure }: WritingProcess,
  system: ActorSystem,
  { database, webhooks }: Pick<Stores, 'database' | 'webhooks'>,
): Promise<void> {
  const webhookOf = system.define<WebhookCommand>(
    webhookKind({
      queueOf: endpointId => new WebhookQueue(database, webhooks, endpointId),
      async send({ url, secrets }, seq, webhook) {
        const subject = subjectText(subjectOf(webhook.event))
        const body = webhookBody({ ...webhook, seq, subject })
        return sendWebhook({ url, secrets, webhookId: webhook.webhookId, body }, world.nowMs())
      },
      onTried(endpointId, outcome) {
        metrics.webhooks.inc({ outcome: outcome.kind })
        if (outcome.kind === 'gone')
          logger.error({ event: 'webhook-gone', endpoint: endpointName(endpointId) })
        else if (outcome.kind !== 'sent')
          logger.warn({ event: 'webhook-failed', endpoint: endpointName(endpointId), ...outcome })
      },
      onDied(died) {
        for (const { endpointId, seq, reason } of died) {
          metrics.deadWebhooks.inc({ reason })
          logger.error({ event: 'webhook-dead', endpoint: endpointName(endpointId), seq, reason })
        }
      },
      onNotWritten: error => onActorFailure({ kind: 'webhook', error }),
    }),
  )
  database.subscribe('webhook-news', ({ endpointId }) => webhookOf(`${endpointId}`).tell({ kind: 'wake' }))
  database.subscribe('webhooks-crowded', ({ endpointId }) => {
    metrics.deadWebhooks.inc({ reason: 'crowded' })
    logger.error({ event: 'webhook-dead', endpoint: endpointName(endpointId), reason: 'crowded' })
  })
  const figures = () =>
    database.view(view =>
      webhooks.endpoints.all(view).map(({ endpointId }) => webhooks.figuresOf(view, endpointId)),
    )
  metrics.gauge('callsign_webhooks_waiting', 'Events that wait for an endpoint of webhooks', () =>
    figures().reduce((sum, { waiting }) => sum + waiting, 0),
  )
  metrics.gauge(
    'callsign_webhooks_dead',
    'Events that no endpoint took, and that can be sent again by hand',
    () => figures().reduce((sum, { dead }) => sum + dead, 0),
  )
  await database.change(change => webhooks.endpoints.settle(change, config.application.webhook))
  const endpoints = database.view(view => webhooks.endpoints.all(view))
  for (const { endpointId } of endpoints) webhookOf(`${endpointId}`).tell({ kind: 'wake' })
}

/** Tests of endpoints, and what their making needs of the outside. */
export function webhookPostsOf({
  nowMs,
  randomBytes,
}: {
  readonly nowMs: () => number
  readonly randomBytes: (length: number) => Uint8Array
}): WebhookPosts {
  return {
    faultOf: faultOfWebhookUrl,
    newSecret: () => newWebhookSecret(randomBytes),
    async send({ url, secrets }, body) {
      const webhookId = `evt_${Buffer.from(randomBytes(16)).toString('base64url')}`
      const outcome = await sendWebhook({ url, secrets, webhookId, body }, nowMs())
      if (outcome.kind === 'sent') return undefined
      return outcome.kind === 'gone' ? 'http-410' : outcome.reason
    },
  }
}
