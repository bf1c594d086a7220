/** An event as it waits for an endpoint, and the keys of its rows. */

import type { UserId } from '../../domain/ids.ts'
import { subjectOf, usersIn, type WebhookEvent } from '../../domain/operators/webhook-event.ts'
import { USERS } from '../accounts/account-tables.ts'
import { idsKey, indexKey, timeBytes } from '../engine/keys.ts'
import type { View } from '../engine/store.ts'

/** An event as it waits, or died. */
export interface StoredWebhook {
  /** The same for each endpoint and try, so that a receiver knows it again. */
  readonly webhookId: string
  readonly atMs: number
  readonly event: WebhookEvent
  /** External ids of the event's users who have one. */
  readonly externalIds: readonly (readonly [UserId, string])[]
}

export function externalIdsOf(view: View, event: WebhookEvent): StoredWebhook['externalIds'] {
  return [...usersIn(event)].flatMap(userId => {
    const externalId = view.get(USERS, idsKey(userId))?.externalId
    return externalId === undefined ? [] : [[userId, externalId] as const]
  })
}

export function subjectKey(event: WebhookEvent): Buffer {
  const { kind, id } = subjectOf(event)
  return Buffer.concat([SUBJECT_KINDS[kind], idsKey(id)])
}

export function eventKey(endpointId: bigint, seq: number): Uint8Array {
  return Buffer.concat([idsKey(endpointId), indexKey(seq)])
}

export function placeKey(endpointId: bigint, subject: Uint8Array, seq: number): Uint8Array {
  return Buffer.concat([idsKey(endpointId), subject, indexKey(seq)])
}

export function dueKey(endpointId: bigint, dueMs: number, seq: number): Uint8Array {
  return Buffer.concat([idsKey(endpointId), timeBytes(dueMs), indexKey(seq)])
}

/** As much as it takes of the store, about. */
export function bytesOf({ sealed }: { readonly sealed: Uint8Array }): number {
  return sealed.length + KEYS_BYTES
}

const SUBJECT_KINDS = { user: Uint8Array.of(1), call: Uint8Array.of(2) }
/** The row's other members, and the keys of its three rows. */
const KEYS_BYTES = 128
