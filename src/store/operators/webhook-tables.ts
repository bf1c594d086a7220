/** Tables of webhooks: endpoints, and their waiting and dead events. */

import type { DeathReason, WebhookEventKind } from '../../domain/operators/webhook-event.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { ID, KIND, NUMBER, TIME } from '../engine/key-parts.ts'
import { timeBytes } from '../engine/keys.ts'
import {
  bytes,
  count,
  listOf,
  object,
  oneOf,
  optional,
  type RowOf,
  sealed,
  text,
  typed,
} from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

export type EndpointRow = RowOf<typeof ENDPOINT>
const ENDPOINT = object({
  url: text,
  /** All kinds where it is missing. */
  kinds: optional(typed<readonly WebhookEventKind[]>(listOf(text))),
  /** One or two, the one that was made last first. */
  sealedSecrets: sealed,
  createdAtMs: count,
  /** `gone`: it has answered that it is; `deleted`: its events are being removed. */
  state: oneOf('open', 'gone', 'deleted'),
})

const COUNTED = {
  in: 'webhook-figures',
  under: (key: Buffer) => key.subarray(0, ID.bytes),
  what: () => 'figures of its endpoint',
}

export const WEBHOOK_ENDPOINTS = rowTable('webhook-endpoints', { endpoint: ID }, ENDPOINT, {
  holds: 'address, filter and sealed secrets of an endpoint of webhooks',
  relations: [COUNTED],
  shapes: [ENDPOINT.shape(), ENDPOINT.shape('kinds')],
  remedy: 'its events are not sent: delete the endpoint and make it anew',
})

export type EndpointFigures = RowOf<typeof FIGURES>
const FIGURES = object({
  /** No event has this number or a greater one; the first has 1. */
  nextSeq: count,
  /** Without those in batches. */
  waiting: count,
  waitingBytes: count,
  dead: count,
})

/** A new endpoint’s. */
export const NO_EVENTS: EndpointFigures = { nextSeq: 1, waiting: 0, waitingBytes: 0, dead: 0 }

export const WEBHOOK_FIGURES = rowTable('webhook-figures', { endpoint: ID }, FIGURES, {
  holds: 'the numbers that an endpoint’s events may have, how many wait by themselves, and how many are dead',
  shapes: [FIGURES.shape()],
  relations: [{ in: 'webhook-endpoints', under: key => key, what: () => 'its endpoint' }],
  remedy: 'the bounds of waiting events are wrong: delete the endpoint and make it anew',
})

const SUBJECT_BYTES = KIND.bytes + ID.bytes
const OF_ENDPOINT = { endpoint: ID, seq: NUMBER }

/** With which every key of events ends. */
export function seqIn(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(
    key.length - NUMBER.bytes,
    NUMBER.bytes,
  )
}

export type BatchRow = RowOf<typeof BATCH>
const BATCH = object({
  sealed,
  /** When they happened. */
  atMs: count,
  /** As in `EventRow`. */
  subject: bytes(SUBJECT_BYTES),
  count,
})

export const WEBHOOK_BATCHES = rowTable('webhook-batches', OF_ENDPOINT, BATCH, {
  holds:
    'events of one change and subject that wait for an endpoint and have not failed, sealed; the key has the number of the first',
  shapes: [BATCH.shape()],
  relations: [COUNTED],
  remedy: 'the events are not sent; the others are',
})

export type EventRow = RowOf<typeof EVENT>
const EVENT = object({
  sealed,
  /** Failed ones. */
  tries: count,
  /** When it happened, or was last put to be tried again by the operator. */
  sinceMs: count,
  /** When it is tried next; missing while an earlier event of its subject goes first. */
  dueMs: optional(count),
  /** As the key of `webhook-subjects` begins behind the endpoint. */
  subject: bytes(SUBJECT_BYTES),
})
const OF_EVENT = { in: 'webhook-events', what: () => 'the event' }

export const WEBHOOK_EVENTS = rowTable('webhook-events', OF_ENDPOINT, EVENT, {
  holds: 'an event that waits for an endpoint by itself, sealed: it, or one of its batch, has failed',
  shapes: [EVENT.shape(), EVENT.shape('dueMs')],
  relations: [
    COUNTED,
    {
      in: 'webhook-subjects',
      under: (key, { subject }) =>
        Buffer.concat([key.subarray(0, ID.bytes), subject, key.subarray(ID.bytes)]),
      what: () => 'its place among those of its subject',
    },
    {
      in: 'webhook-due',
      under: (key, { dueMs }) =>
        dueMs === undefined
          ? undefined
          : Buffer.concat([key.subarray(0, ID.bytes), timeBytes(dueMs), key.subarray(ID.bytes)]),
      what: () => 'the time of its next try',
    },
  ],
  remedy: 'the event is not sent; the others are',
})

export const WEBHOOK_DUE = rowTable('webhook-due', { endpoint: ID, due: TIME, seq: NUMBER }, oneOf(0), {
  holds: 'nothing: which event is tried when',
  relations: [
    {
      ...OF_EVENT,
      under: key => Buffer.concat([key.subarray(0, ID.bytes), key.subarray(ID.bytes + TIME.bytes)]),
    },
  ],
  remedy: 'nothing is sent for it; the others are',
})

export const WEBHOOK_SUBJECTS = rowTable(
  'webhook-subjects',
  { endpoint: ID, kind: KIND, subject: ID, seq: NUMBER },
  oneOf(0),
  {
    holds: 'nothing: which events of a user or call wait, in their order',
    relations: [
      {
        ...OF_EVENT,
        under: key => Buffer.concat([key.subarray(0, ID.bytes), key.subarray(2 * ID.bytes + KIND.bytes)]),
      },
    ],
    remedy: 'events of its subject may come in another order',
  },
)

const DEAD = object({
  sealed,
  tries: count,
  diedAtMs: count,
  reason: typed<DeathReason>(oneOf('expired', 'crowded', 'too-large', 'unreadable')),
  subject: bytes(SUBJECT_BYTES),
})

export const WEBHOOK_DEAD = rowTable('webhook-dead', OF_ENDPOINT, DEAD, {
  holds: 'an event that its endpoint did not take, sealed',
  shapes: [DEAD.shape()],
  ending: { kind: EXPIRY.deadWebhook },
  relations: [COUNTED],
  remedy: 'the event can’t be sent again',
})
