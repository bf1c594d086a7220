/** Endpoints of webhooks, as the operator's command makes, lists, tries and deletes them. */

import { SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'
import { optionalTimeText, timeText } from '../../schema/time.ts'
import { testWebhookBody } from '../../schema/webhook.ts'
import {
  CreatedWebhook,
  CreateWebhookRequest,
  DeadWebhooks,
  DeadWebhooksQuery,
  RetriedWebhooks,
  RetryWebhookRequest,
  RotatedWebhook,
  TestedWebhook,
  Webhooks,
} from '../../schema/webhook-endpoint.ts'
import type { View } from '../../store/engine/store.ts'
import {
  endpointName,
  parseEndpointName,
  type WebhookEndpoint,
} from '../../store/operators/webhook-endpoints.ts'
import type { DeadWebhook } from '../../store/operators/webhook-store.ts'
import {
  type ServerOperation,
  serverOperation,
  serverOperationWithBody,
  serverRead,
  serverReadWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'database' | 'webhooks' | 'webhookPosts'>

const PATH = '/server/api/v1/webhooks'
const ONE = `${PATH}/{webhookId}`

const CREATE = serverOperationWithBody(CreateWebhookRequest, {
  id: 'createWebhook',
  method: 'POST',
  path: PATH,
  tag: 'operator',
  summary: 'Makes an endpoint of webhooks; its secret is shown this once',
  replies: { 201: CreatedWebhook },
  codes: ['WEBHOOK_LIMIT'],
  handle({ webhooks, webhookPosts }: Deps, { body: { url, events }, commit }) {
    const fault = webhookPosts.faultOf(url)
    if (fault !== undefined) throw invalidMember('/url', 'FORMAT', fault)
    const secret = webhookPosts.newSecret()
    return commit(change => {
      const endpoint = webhooks.endpoints.create(change, { url, kinds: events, secrets: [secret] })
      const body = { ...shownEndpoint(endpoint), secret }
      return { status: 201, body, target: targetOf(endpoint) }
    })
  },
})

const LIST = serverRead({
  id: 'listWebhooks',
  method: 'GET',
  path: PATH,
  tag: 'operator',
  summary: 'All endpoints of webhooks, also the one in the settings',
  replies: { 200: Webhooks },
  codes: [],
  handle({ database, webhooks }: Deps) {
    const items = database.view(view =>
      webhooks.endpoints
        .all(view)
        .filter(({ state }) => state !== 'deleted')
        .map(endpoint => {
          const { waiting, dead } = webhooks.figuresOf(view, endpoint.endpointId)
          return { ...shownEndpoint(endpoint), waiting, dead }
        }),
    )
    return { status: 200, body: { items } }
  },
})

const DELETE = serverOperation({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: ONE,
  tag: 'operator',
  summary: 'Deletes an endpoint of webhooks with all that waits for it',
  replies: { 204: null },
  codes: ['WEBHOOK_NOT_FOUND'],
  handle: ({ webhooks }: Deps, { params, commit }) =>
    commit(change => {
      const endpoint = madeByCommand(endpointOf(webhooks, change, params), 'CALLSIGN_WEBHOOK_URL')
      webhooks.endpoints.setState(change, endpoint.endpointId, 'deleted')
      return { status: 204, target: targetOf(endpoint) }
    }),
})

const ROTATE = serverOperation({
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: `${ONE}/rotate`,
  tag: 'operator',
  summary: 'Makes another secret; events are signed by it and by the one before',
  replies: { 200: RotatedWebhook },
  codes: ['WEBHOOK_NOT_FOUND'],
  handle({ webhooks, webhookPosts }: Deps, { params, commit }) {
    const secret = webhookPosts.newSecret()
    return commit(change => {
      const endpoint = madeByCommand(endpointOf(webhooks, change, params), 'CALLSIGN_WEBHOOK_SECRET')
      webhooks.endpoints.rotate(change, endpoint, secret)
      return { status: 200, body: { secret }, target: targetOf(endpoint) }
    })
  },
})

const TEST = serverOperation({
  id: 'testWebhook',
  method: 'POST',
  path: `${ONE}/test`,
  tag: 'operator',
  summary: 'Sends an event of type webhook.test now, once, and says what came of it',
  replies: { 200: TestedWebhook },
  codes: ['WEBHOOK_NOT_FOUND'],
  async handle({ database, webhooks, webhookPosts }: Deps, { params, nowMs }) {
    const endpoint = database.view(view => endpointOf(webhooks, view, params))
    const fault = await webhookPosts.send(endpoint, testWebhookBody(nowMs))
    return { status: 200, body: { outcome: fault === undefined ? 'taken' : 'failed', reason: fault } }
  },
})

const RETRY = serverOperationWithBody(RetryWebhookRequest, {
  id: 'retryWebhooks',
  method: 'POST',
  path: `${ONE}/retry`,
  tag: 'operator',
  summary: 'Has dead events wait again, at most 1,000 at once, and begins an endpoint that was gone',
  replies: { 200: RetriedWebhooks },
  codes: ['WEBHOOK_NOT_FOUND'],
  isBodyOptional: true,
  handle: ({ webhooks }: Deps, { params, body: { from = 0 }, commit }) =>
    commit(change => {
      const endpoint = endpointOf(webhooks, change, params)
      webhooks.endpoints.setState(change, endpoint.endpointId, 'open')
      const { count, nextSeq } = webhooks.retry(change, endpoint.endpointId, from)
      return { status: 200, body: { retried: count, next: nextSeq }, target: targetOf(endpoint) }
    }),
})

const LIST_DEAD = serverReadWithQuery(DeadWebhooksQuery, {
  id: 'listDeadWebhooks',
  method: 'GET',
  path: `${ONE}/dead`,
  tag: 'operator',
  summary: 'Events that an endpoint did not take, oldest first; kept for 30 days',
  replies: { 200: DeadWebhooks },
  codes: ['WEBHOOK_NOT_FOUND'],
  handle({ database, webhooks }: Deps, { params, query: { limit = 50, cursor = '0' } }) {
    if (!/^[0-9]{1,14}$/.test(cursor))
      throw invalidMember('/cursor', 'FORMAT', 'is no cursor of this list', 'the query')
    const found = database.view(view => {
      const { endpointId } = endpointOf(webhooks, view, params)
      return webhooks.deadOf(view, endpointId, Number(cursor), limit + 1)
    })
    const nextCursor = found.length > limit ? `${found[limit]!.seq}` : undefined
    return { status: 200, body: { items: found.slice(0, limit).map(shownDead), nextCursor } }
  },
})

/** In the order of the document. */
export const WEBHOOKS: readonly ServerOperation<Deps>[] = [
  CREATE,
  LIST,
  DELETE,
  ROTATE,
  TEST,
  RETRY,
  LIST_DEAD,
]

/** Throws `WEBHOOK_NOT_FOUND`. */
function endpointOf(
  { endpoints }: Deps['webhooks'],
  view: View,
  [name = '']: readonly string[],
): WebhookEndpoint {
  const endpointId = parseEndpointName(name)
  const endpoint = endpointId === undefined ? undefined : endpoints.read(view, endpointId)
  if (endpoint !== undefined) return endpoint
  throw new SignalError('WEBHOOK_NOT_FOUND', 'there is no endpoint of webhooks of this id')
}

/** Throws `WEBHOOK_NOT_FOUND` for the endpoint that the settings have. */
function madeByCommand(endpoint: WebhookEndpoint, setting: string): WebhookEndpoint {
  if (endpointName(endpoint.endpointId) !== 'settings') return endpoint
  throw new SignalError('WEBHOOK_NOT_FOUND', `this endpoint is of the settings: change ${setting} there`)
}

function targetOf({ endpointId }: WebhookEndpoint): string {
  return `webhook:${endpointName(endpointId)}`
}

function shownEndpoint({ endpointId, url, kinds, state, createdAtMs }: WebhookEndpoint): object {
  return { id: endpointName(endpointId), url, events: kinds, state, createdAt: timeText(createdAtMs) }
}

function shownDead({ seq, diedAtMs, reason, tries, webhook }: DeadWebhook): object {
  return {
    seq,
    id: webhook?.webhookId,
    type: webhook?.event.kind,
    happenedAt: optionalTimeText(webhook?.atMs),
    diedAt: timeText(diedAtMs),
    reason,
    tries,
  }
}
