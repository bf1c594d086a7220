/**
 * Events that wait for the operator's services, for each endpoint that wants to hear of them, written in the change of what they
 * tell of. Where there is no endpoint, nothing is written.
 *
 * Those of a change and subject are a batch at first (`webhook-batches.ts`). Where one fails, each has a row by itself.
 *
 * Events of one user or call come in their order: only the first of them is due, and the next one follows when it has been taken
 * or has failed three times. So among those of one subject all that are due have failed so often, but for one. Those by themselves
 * go before those in batches.
 */

import type { DeathReason, WebhookEvent } from '../../domain/operators/webhook-event.ts'
import { assert } from '../../errors.ts'
import { WEBHOOKS_WAITING_MAX } from '../../limits.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idInKey, idsKey, keyBehind, rangeOf } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { SealedValues } from '../tables/sealed-values.ts'
import { type BatchedWebhook, WebhookBatches } from './webhook-batches.ts'
import { type WebhookEndpoint, WebhookEndpoints } from './webhook-endpoints.ts'
import {
  bytesOf,
  dueKey,
  eventKey,
  externalIdsOf,
  placeKey,
  type StoredWebhook,
  subjectKey,
} from './webhook-events.ts'
import { WebhookNumbers } from './webhook-numbers.ts'
import {
  type EndpointFigures,
  type EventRow,
  NO_EVENTS,
  seqIn,
  WEBHOOK_BATCHES,
  WEBHOOK_DEAD,
  WEBHOOK_DUE,
  WEBHOOK_EVENTS,
  WEBHOOK_FIGURES,
  WEBHOOK_SUBJECTS,
} from './webhook-tables.ts'

/** The outcome of a try. */
export type WebhookSettlement =
  | { readonly kind: 'sent'; readonly seq: number }
  | { readonly kind: 'failed'; readonly seq: number; readonly dueMs: number }
  | { readonly kind: 'died'; readonly seq: number; readonly reason: DeathReason }
  /** It has not been tried: its endpoint is gone. */
  | { readonly kind: 'kept'; readonly seq: number }

export interface WebhookBounds {
  /** Events that wait, for all endpoints. */
  readonly waitingMax: number
  readonly waitingBytesMax: number
  /** For each endpoint. */
  readonly deadMax: number
}

interface Given extends Pick<StoreDeps, 'expiries' | 'secrets' | 'randomBytes'> {
  readonly database: Pick<ReadStore, 'watch'>
  readonly webhookBounds?: WebhookBounds | undefined
}

export class Webhooks {
  readonly endpoints: WebhookEndpoints
  readonly batches: WebhookBatches
  readonly sealed: SealedValues<StoredWebhook>
  readonly #expiries: Expiries
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #figures: RowCache<EndpointFigures, EndpointFigures>
  readonly #bounds: WebhookBounds
  readonly #numbers: WebhookNumbers

  constructor(deps: Given) {
    const { database, expiries, secrets, randomBytes, webhookBounds = WEBHOOK_BOUNDS } = deps
    this.endpoints = new WebhookEndpoints(deps)
    this.batches = new WebhookBatches(deps)
    this.#numbers = new WebhookNumbers(database)
    this.sealed = new SealedValues(secrets, randomBytes, 'webhook')
    this.#expiries = expiries
    this.#randomBytes = randomBytes
    this.#figures = new RowCache(database, WEBHOOK_FIGURES, (row = NO_EVENTS) => row, FIGURES_KEPT_MAX)
    this.#bounds = webhookBounds
    expiries.define(EXPIRY.deadWebhook, (change, key) => void this.#forget(change, key))
  }

  /** Has every endpoint that wants to hear of them hear of these, once the change is durable. */
  add(change: Change, ...events: readonly WebhookEvent[]): void {
    if (events.length === 0) return
    const open = this.endpoints.all(change).filter(({ state }) => state === 'open')
    const wanted = events.filter(({ kind }) => open.some(endpoint => wants(endpoint, kind)))
    if (wanted.length === 0) return
    const news = wanted.map(event => ({
      webhookId: `evt_${Buffer.from(this.#randomBytes(16)).toString('base64url')}`,
      atMs: change.nowMs,
      event,
      externalIds: externalIdsOf(change, event),
    }))
    for (const endpoint of open) {
      const own = news.filter(({ event }) => wants(endpoint, event.kind))
      if (own.length > 0) this.#append(change, endpoint.endpointId, own)
    }
    this.#makeRoom(change)
  }

  /** With those in batches. */
  figuresOf(view: View, endpointId: bigint): EndpointFigures {
    const figures = this.#figuresOf(view, endpointId)
    const batched = this.batches.waiting(view, endpointId)
    const waitingBytes = figures.waitingBytes + batched.bytes
    return { ...figures, waiting: figures.waiting + batched.events, waitingBytes }
  }

  /** Whether an event that waits by itself holds up those of its subject behind it. */
  isHeldUp(view: View, endpointId: bigint, subject: Uint8Array): boolean {
    const prefix = Buffer.concat([idsKey(endpointId), subject])
    const range = { start: keyBehind(prefix), end: prefix, reverse: true, limit: 1 }
    for (const key of view.keys(WEBHOOK_SUBJECTS, range)) {
      const last = view.get(WEBHOOK_EVENTS, eventKey(endpointId, seqIn(key)))
      return last !== undefined && last.tries < ORDERED_TRIES
    }
    return false
  }

  /** Carries out what came of tries; returns what died. */
  settle(change: Change, endpointId: bigint, settlements: readonly WebhookSettlement[]): Died[] {
    const died: Died[] = []
    this.#putAlone(change, endpointId, this.batches.takeHeldUp(change, endpointId, LOOKED_AT_ONCE))
    this.#putAlone(change, endpointId, this.batches.takeCrowding(change, endpointId, LOOKED_AT_ONCE))
    for (const settlement of settlements) {
      const { seq } = settlement
      const key = eventKey(endpointId, seq)
      if (settlement.kind === 'sent') this.batches.sent(change, endpointId, seq)
      // A batch has no place for what failed.
      else if (settlement.kind !== 'kept')
        this.#putAlone(change, endpointId, this.batches.takeOut(change, endpointId, seq))
      const row = change.get(WEBHOOK_EVENTS, key)
      // In a batch, gone after a write of unknown outcome, or crowded out while it was being sent.
      if (row === undefined) continue
      switch (settlement.kind) {
        case 'sent':
          this.#take(change, endpointId, seq, row)
          this.#count(change, endpointId, { waiting: -1, waitingBytes: -bytesOf(row) })
          break
        case 'failed':
          this.#postpone(change, endpointId, seq, row, settlement.dueMs)
          break
        case 'died':
          died.push(this.#kill(change, endpointId, { seq, row, reason: settlement.reason }))
          break
        case 'kept':
          break
      }
    }
    return died
  }

  /** Kills events older than three days, oldest first: some with each call. */
  killExpired(change: Change, endpointId: bigint): Died[] {
    const untilMs = change.nowMs - LIFETIME_MS
    const batched = this.batches.takeOldest(change, endpointId, LOOKED_AT_ONCE, untilMs)
    this.#putAlone(change, endpointId, batched)
    const range = { ...rangeOf(idsKey(endpointId)), limit: LOOKED_AT_ONCE }
    const expired = [...change.range(WEBHOOK_EVENTS, range)]
      .filter(({ value }) => value.sinceMs + LIFETIME_MS <= change.nowMs)
      .map(({ key }) => seqIn(key))
    return expired.map(seq => {
      // Read anew: the death of the one before it in their subject has made it due.
      const row = change.get(WEBHOOK_EVENTS, eventKey(endpointId, seq))
      assert(row !== undefined, 'the death of an event leaves the others')
      return this.#kill(change, endpointId, { seq, row, reason: 'expired' })
    })
  }

  /** Dead events, oldest first, from a place on. */
  deadOf(view: View, endpointId: bigint, fromSeq: number, limit: number): DeadWebhook[] {
    const range = { ...rangeOf(idsKey(endpointId)), start: eventKey(endpointId, fromSeq), limit }
    return [...view.range(WEBHOOK_DEAD, range)].map(({ key, value }) => ({
      seq: seqIn(key),
      ...{ diedAtMs: value.diedAtMs, reason: value.reason, tries: value.tries },
      webhook: this.sealed.open(value.sealed),
    }))
  }

  /**
   * Has some dead events wait again, from a place on; no other event waits for them. Returns how many, and where to go on, undefined
   * at the end or when there is no room for more.
   */
  retry(change: Change, endpointId: bigint, fromSeq: number): { count: number; nextSeq: number | undefined } {
    const range = {
      ...rangeOf(idsKey(endpointId)),
      start: eventKey(endpointId, fromSeq),
      limit: RETRIED_AT_ONCE,
    }
    const rows = [...change.range(WEBHOOK_DEAD, range)]
    let count = 0
    for (const { key, value } of rows) {
      const { sealed, subject, diedAtMs } = value
      if (this.#isFullWith(change, sealed.length)) return { count, nextSeq: undefined }
      const { nowMs } = change
      const seq = seqIn(key)
      change.remove(WEBHOOK_DEAD, key)
      this.#expiries.remove(change, EXPIRY.deadWebhook, diedAtMs + DEAD_KEPT_MS, key)
      const row = { sealed, tries: ORDERED_TRIES, sinceMs: nowMs, dueMs: nowMs, subject }
      this.#put(change, endpointId, seq, row)
      this.#count(change, endpointId, { dead: -1, waiting: 1, waitingBytes: bytesOf(row) })
      count++
    }
    if (count > 0) change.happened({ kind: 'webhook-news', endpointId })
    return { count, nextSeq: rows.length < RETRIED_AT_ONCE ? undefined : seqIn(rows.at(-1)!.key) + 1 }
  }

  /** Removes some of the events of an endpoint that is deleted, in the end the endpoint too. True when nothing is left. */
  purge(change: Change, endpointId: bigint): boolean {
    if (!this.endpoints.isDeleted(change, endpointId)) return true
    const batched = this.batches.takeOldest(change, endpointId, LOOKED_AT_ONCE)
    const range = { ...rangeOf(idsKey(endpointId)), limit: LOOKED_AT_ONCE }
    const waiting = [...change.range(WEBHOOK_EVENTS, range)]
    for (const { key, value } of waiting) this.#unlink(change, endpointId, seqIn(key), value)
    const dead = [...change.range(WEBHOOK_DEAD, range)]
    for (const { key, value } of dead) {
      change.remove(WEBHOOK_DEAD, key)
      this.#expiries.remove(change, EXPIRY.deadWebhook, value.diedAtMs + DEAD_KEPT_MS, key)
    }
    const waitingBytes = waiting.reduce((bytes, { value }) => bytes + bytesOf(value), 0)
    this.#count(change, endpointId, {
      waiting: -waiting.length,
      waitingBytes: -waitingBytes,
      dead: -dead.length,
    })
    if (batched.length + waiting.length + dead.length > 0) return false
    change.remove(WEBHOOK_FIGURES, idsKey(endpointId))
    this.endpoints.remove(change, endpointId)
    return true
  }

  /** The events of one change that the endpoint wants to hear of. */
  #append(change: Change, endpointId: bigint, webhooks: readonly StoredWebhook[]): void {
    let [first, end] = [0, 0]
    while (first < webhooks.length) {
      const subject = subjectKey(webhooks[first]!.event)
      while (end < webhooks.length && subject.equals(subjectKey(webhooks[end]!.event))) end++
      const seq = this.#reserve(change, endpointId, end - first)
      this.batches.put(change, endpointId, seq, { subject, webhooks: webhooks.slice(first, end) })
      first = end
    }
    change.happened({ kind: 'webhook-news', endpointId })
  }

  /** The content of a batch. */
  #putAlone(change: Change, endpointId: bigint, events: readonly BatchedWebhook[]): void {
    for (const { seq, subject, atMs, webhook, sealed: batch } of events) {
      const isFirst = !this.isHeldUp(change, endpointId, subject)
      // One that can't be opened stays so.
      const sealed = webhook === undefined ? batch : this.sealed.seal(webhook)
      const row = { sealed, tries: 0, sinceMs: atMs, ...(isFirst && { dueMs: atMs }), subject }
      this.#put(change, endpointId, seq, row)
      this.#count(change, endpointId, { waiting: 1, waitingBytes: bytesOf(row) })
      if (isFirst) change.happened({ kind: 'webhook-news', endpointId })
    }
  }

  /** The first of so many numbers. Some are left out after a restart, or a change that failed. */
  #reserve(change: Change, endpointId: bigint, count: number): number {
    const { nextSeq } = this.#figuresOf(change, endpointId)
    const first = this.#numbers.next(change, endpointId, nextSeq)
    const next = first + count
    if (next > nextSeq) this.#count(change, endpointId, { nextSeq: next - nextSeq + NUMBERS_AHEAD })
    return first
  }

  #figuresOf(view: View, endpointId: bigint): EndpointFigures {
    return this.#figures.of(view, idsKey(endpointId))
  }

  #put(change: Change, endpointId: bigint, seq: number, row: EventRow): void {
    change.put(WEBHOOK_EVENTS, eventKey(endpointId, seq), row)
    change.put(WEBHOOK_SUBJECTS, placeKey(endpointId, row.subject, seq), 0)
    if (row.dueMs !== undefined) change.put(WEBHOOK_DUE, dueKey(endpointId, row.dueMs, seq), 0)
  }

  #unlink(change: Change, endpointId: bigint, seq: number, { subject, dueMs }: EventRow): void {
    change.remove(WEBHOOK_EVENTS, eventKey(endpointId, seq))
    change.remove(WEBHOOK_SUBJECTS, placeKey(endpointId, subject, seq))
    if (dueMs !== undefined) change.remove(WEBHOOK_DUE, dueKey(endpointId, dueMs, seq))
  }

  /** It waits no more; the next one of its subject may be due. */
  #take(change: Change, endpointId: bigint, seq: number, row: EventRow): void {
    this.#unlink(change, endpointId, seq, row)
    if (row.tries < ORDERED_TRIES) this.#release(change, endpointId, row.subject, seq)
  }

  #postpone(change: Change, endpointId: bigint, seq: number, row: EventRow, dueMs: number): void {
    const tries = row.tries + 1
    if (row.dueMs !== undefined) change.remove(WEBHOOK_DUE, dueKey(endpointId, row.dueMs, seq))
    this.#put(change, endpointId, seq, { ...row, tries, dueMs })
    if (tries === ORDERED_TRIES) this.#release(change, endpointId, row.subject, seq)
  }

  /** The next event of the subject is due. */
  #release(change: Change, endpointId: bigint, subject: Uint8Array, behindSeq: number): void {
    const prefix = Buffer.concat([idsKey(endpointId), subject])
    const range = { start: placeKey(endpointId, subject, behindSeq + 1), end: keyBehind(prefix), limit: 1 }
    for (const key of [...change.keys(WEBHOOK_SUBJECTS, range)]) {
      const seq = seqIn(key)
      const row = change.get(WEBHOOK_EVENTS, eventKey(endpointId, seq))
      if (row === undefined || row.dueMs !== undefined) return
      this.#put(change, endpointId, seq, { ...row, dueMs: change.nowMs })
      change.happened({ kind: 'webhook-news', endpointId })
    }
  }

  /** It is never sent by itself again, and is kept for a while for the operator. */
  #kill(
    change: Change,
    endpointId: bigint,
    { seq, row, reason }: { readonly seq: number; readonly row: EventRow; readonly reason: DeathReason },
  ): Died {
    const { sealed, tries, subject } = row
    const { nowMs } = change
    const key = eventKey(endpointId, seq)
    this.#take(change, endpointId, seq, row)
    change.put(WEBHOOK_DEAD, key, { sealed, tries, diedAtMs: nowMs, reason, subject })
    this.#expiries.add(change, EXPIRY.deadWebhook, nowMs + DEAD_KEPT_MS, key)
    this.#count(change, endpointId, { waiting: -1, waitingBytes: -bytesOf(row), dead: 1 })
    if (this.#figuresOf(change, endpointId).dead > this.#bounds.deadMax)
      this.#forgetOldest(change, endpointId)
    return { endpointId, seq, reason }
  }

  #forgetOldest(change: Change, endpointId: bigint): void {
    for (const { key, value } of [
      ...change.range(WEBHOOK_DEAD, { ...rangeOf(idsKey(endpointId)), limit: 1 }),
    ]) {
      this.#expiries.remove(change, EXPIRY.deadWebhook, value.diedAtMs + DEAD_KEPT_MS, key)
      this.#forget(change, key)
    }
  }

  #forget(change: Change, key: Uint8Array): void {
    if (!change.has(WEBHOOK_DEAD, key)) return
    change.remove(WEBHOOK_DEAD, key)
    this.#count(change, idInKey(key, 0), { dead: -1 })
  }

  /** The oldest events of the endpoint that has the most die, until the rest is within its bounds. */
  #makeRoom(change: Change): void {
    for (let killed = 0; killed < KILLED_AT_ONCE && this.#isFullWith(change, 0); killed++) {
      const fullest = this.endpoints
        .all(change)
        .map(({ endpointId }) => ({ endpointId, ...this.figuresOf(change, endpointId) }))
        .reduce((most, other) => (other.waitingBytes > most.waitingBytes ? other : most))
      const { endpointId } = fullest
      this.#takeOldestApart(change, endpointId)
      const range = { ...rangeOf(idsKey(endpointId)), limit: 1 }
      for (const { key, value } of [...change.range(WEBHOOK_EVENTS, range)]) {
        this.#kill(change, endpointId, { seq: seqIn(key), row: value, reason: 'crowded' })
        change.happened({ kind: 'webhooks-crowded', endpointId })
      }
    }
  }

  /** The endpoint's oldest event waits by itself. */
  #takeOldestApart(change: Change, endpointId: bigint): void {
    const range = { ...rangeOf(idsKey(endpointId)), limit: 1 }
    const [alone] = [...change.keys(WEBHOOK_EVENTS, range)]
    const [batch] = [...change.keys(WEBHOOK_BATCHES, range)]
    if (batch === undefined || (alone !== undefined && seqIn(alone) < seqIn(batch))) return
    this.#putAlone(change, endpointId, this.batches.takeOldest(change, endpointId, 1))
  }

  /** Whether more waits than may, with one more event of so many bytes if there are any. */
  #isFullWith(change: Change, bytes: number): boolean {
    let [waiting, waitingBytes] = bytes > 0 ? [1, bytes] : [0, 0]
    for (const { endpointId } of this.endpoints.all(change)) {
      const figures = this.figuresOf(change, endpointId)
      waiting += figures.waiting
      waitingBytes += figures.waitingBytes
    }
    return waiting > this.#bounds.waitingMax || waitingBytes > this.#bounds.waitingBytesMax
  }

  #count(change: Change, endpointId: bigint, by: Partial<EndpointFigures>): void {
    const before = this.#figuresOf(change, endpointId)
    const sum = (name: keyof EndpointFigures) => Math.max(0, before[name] + (by[name] ?? 0))
    change.put(WEBHOOK_FIGURES, idsKey(endpointId), {
      nextSeq: sum('nextSeq'),
      waiting: sum('waiting'),
      waitingBytes: sum('waitingBytes'),
      dead: sum('dead'),
    })
  }
}

/** An event that its endpoint did not take. */
export interface Died {
  readonly endpointId: bigint
  readonly seq: number
  readonly reason: DeathReason
}

export interface DeadWebhook {
  readonly seq: number
  readonly diedAtMs: number
  readonly reason: DeathReason
  readonly tries: number
  /** Undefined where another secret has sealed it. */
  readonly webhook: StoredWebhook | undefined
}

function wants({ kinds }: WebhookEndpoint, kind: WebhookEvent['kind']): boolean {
  return kinds?.includes(kind) ?? true
}

/** After so many failures, later events of its subject pass an event. */
const ORDERED_TRIES = 3
/** How long an event is tried. */
export const LIFETIME_MS = 3 * 86_400_000
const DEAD_KEPT_MS = 30 * 86_400_000
export const WEBHOOK_BOUNDS: WebhookBounds = {
  waitingMax: WEBHOOKS_WAITING_MAX,
  waitingBytesMax: 2 ** 30,
  deadMax: 100_000,
}
/** Numbers are reserved in steps. */
const NUMBERS_AHEAD = 64
/** Rows that an operator's request has wait again. */
const RETRIED_AT_ONCE = 1_000
/** Rows of one change. */
const LOOKED_AT_ONCE = 256
/** After the bound was lowered, each change kills some of the surplus. */
const KILLED_AT_ONCE = 16
const FIGURES_KEPT_MAX = 64
