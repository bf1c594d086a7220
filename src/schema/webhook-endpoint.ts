/** Wire shapes of endpoints of webhooks, as the operator's command makes and lists them. */

import Type from 'typebox'
import type { WebhookEventKind } from '../domain/operators/webhook-event.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { Time } from './time.ts'
import { WEBHOOK_KINDS } from './webhook.ts'

const Url = Type.String({ minLength: 1, maxLength: 2_000 })
const Events = Type.Array(oneOf(WEBHOOK_KINDS as readonly WebhookEventKind[]), {
  minItems: 1,
  maxItems: WEBHOOK_KINDS.length,
  uniqueItems: true,
  description: 'The events that it wants to hear of; left out: all',
})
const Secret = Type.String({ description: '`whsec_...`, shown this once' })

export const CreateWebhookRequest = Type.Object({ url: Url, events: Type.Optional(Events) })

const ENDPOINT = {
  id: Type.String({ description: '`settings` for the one of CALLSIGN_WEBHOOK_URL' }),
  url: Url,
  events: Type.Optional(Events),
  state: oneOf(['open', 'gone'], '`gone`: it answered 410, and is sent nothing'),
  createdAt: Time,
}

export const CreatedWebhook = Type.Object({ ...ENDPOINT, secret: Secret })

export const Webhooks = Type.Object({
  items: Type.Array(
    Type.Object({
      ...ENDPOINT,
      waiting: Type.Integer({ minimum: 0, description: 'Events that wait for it' }),
      dead: Type.Integer({ minimum: 0, description: 'Events that it did not take' }),
    }),
  ),
})

export const RotatedWebhook = Type.Object({ secret: Secret })

export const TestedWebhook = Type.Object({
  outcome: oneOf(['taken', 'failed']),
  reason: Type.Optional(
    Type.String({ description: 'Such as `http-500`, `timeout` or `address-not-allowed`' }),
  ),
})

export const RetryWebhookRequest = Type.Object({
  from: Type.Optional(Type.Integer({ minimum: 0, description: 'The `seq` of the first one; left out: all' })),
})

export const RetriedWebhooks = Type.Object({
  retried: Type.Integer({ minimum: 0, description: 'Events that wait again' }),
  next: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Where to go on with `from`; left out at the end, or when no more may wait',
    }),
  ),
})

export const DeadWebhooksQuery = Type.Object(PAGE_MEMBERS)

export const DeadWebhooks = page(
  Type.Object({
    seq: Type.Integer({ minimum: 0 }),
    id: Type.Optional(
      Type.String({ description: 'The `webhook-id`; left out where it can’t be read any more' }),
    ),
    type: Type.Optional(Type.String()),
    happenedAt: Type.Optional(Time),
    diedAt: Time,
    reason: oneOf(['expired', 'crowded', 'too-large', 'unreadable']),
    tries: Type.Integer({ minimum: 0 }),
  }),
)
