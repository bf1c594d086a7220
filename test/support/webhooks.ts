/** Webhooks in a store of their own, with events to put there and a look at its rows. */

import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import type { WebhookEvent } from '../../src/domain/operators/webhook-event.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { EndpointSettings } from '../../src/store/operators/webhook-endpoints.ts'
import { WEBHOOK_BOUNDS, type WebhookBounds, Webhooks } from '../../src/store/operators/webhook-store.ts'
import {
  WEBHOOK_BATCHES,
  WEBHOOK_DEAD,
  WEBHOOK_DUE,
  WEBHOOK_EVENTS,
  WEBHOOK_SUBJECTS,
} from '../../src/store/operators/webhook-tables.ts'

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export interface WebhookStoreOptions {
  readonly folder?: string
  readonly secret?: number
  readonly bounds?: Partial<WebhookBounds>
}

export function openWebhooks(test: Test, { folder, secret = 1, bounds }: WebhookStoreOptions = {}) {
  const database = LmdbStore.open(folder ?? test.testdir())
  test.teardown(() => database.close())
  const expiries = new Expiries()
  const secrets = deriveSecrets(Buffer.alloc(32, secret))
  const webhookBounds = { ...WEBHOOK_BOUNDS, ...bounds }
  const webhooks = new Webhooks({ database, expiries, secrets, randomBytes, webhookBounds })
  return {
    database,
    expiries,
    webhooks,
    create: (settings: Partial<EndpointSettings> = {}) =>
      database.change(change =>
        webhooks.endpoints.create(change, {
          url: 'http://127.0.0.1:9/',
          secrets: [WEBHOOK_SECRET],
          ...settings,
        }),
      ),
    /** One after the other, as of several calls. */
    add: (nowMs: number, ...events: WebhookEvent[]) =>
      database.change(change => {
        for (const event of events) webhooks.add(change, event)
      }, nowMs),
    /** Together, as of one call. */
    addBatch: (nowMs: number, ...events: WebhookEvent[]) =>
      database.change(change => webhooks.add(change, ...events), nowMs),
    /** How many rows there are with events that wait. */
    waiting: () => database.view(view => view.count(WEBHOOK_BATCHES) + view.count(WEBHOOK_EVENTS)),
    /** How many rows there are of each table of events. */
    rows: () =>
      database.view(view => ({
        batches: view.count(WEBHOOK_BATCHES),
        events: view.count(WEBHOOK_EVENTS),
        subjects: view.count(WEBHOOK_SUBJECTS),
        due: view.count(WEBHOOK_DUE),
        dead: view.count(WEBHOOK_DEAD),
      })),
  }
}

export function userCreated(userId: number): WebhookEvent {
  return { kind: 'user.created', userId: BigInt(userId) as UserId }
}

export function callMissed(callId: number, userId: number): WebhookEvent {
  const [callerId, called] = [1n as UserId, BigInt(userId) as UserId]
  return {
    kind: 'call.missed',
    callId: BigInt(callId) as CallId,
    callerId,
    userId: called,
    reason: 'unanswered',
  }
}
