/**
 * Events that no try has failed for: those of one change and one subject in one row for each endpoint. An unanswered call
 * has a dozen, and most are taken within moments, so a row, a place and a time of its own for each would cost more than the call.
 *
 * Which events of a row have been sent is in memory: after a crash those come again, under the same ids.
 */

import { idInKey, idsKey, indexKey, nameOfKey, rangeOf } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { SealedValues } from '../tables/sealed-values.ts'
import { BatchFigures, type Waiting } from './webhook-batch-figures.ts'
import type { StoredWebhook } from './webhook-events.ts'
import { type BatchRow, seqIn, WEBHOOK_BATCHES } from './webhook-tables.ts'

/** An event in a batch. */
export interface BatchedWebhook extends Pick<BatchRow, 'subject' | 'atMs'> {
  readonly seq: number
  /** Undefined where another secret has sealed it. */
  readonly webhook: StoredWebhook | undefined
  /** The whole batch. */
  readonly sealed: Uint8Array
}

/** A batch with events on their way, in memory. */
interface Begun {
  readonly key: Uint8Array
  readonly row: BatchRow
  readonly sent: Set<number>
  /** When it was last looked at. */
  isHeldUp: boolean
}

export class WebhookBatches {
  readonly #sealed: SealedValues<readonly StoredWebhook[]>
  readonly #figures: BatchFigures
  /** By the names of their keys. */
  readonly #begun = new Map<string, Begun>()
  /** Endpoints with more batches before the next event than are looked at. */
  readonly #crowded = new Set<bigint>()

  constructor({ database, secrets, randomBytes }: Given) {
    this.#sealed = new SealedValues(secrets, randomBytes, 'webhook-batch')
    this.#figures = new BatchFigures(database)
  }

  put(
    change: Change,
    endpointId: bigint,
    seq: number,
    { subject, webhooks }: Pick<BatchRow, 'subject'> & { readonly webhooks: readonly StoredWebhook[] },
  ): void {
    const key = Buffer.concat([idsKey(endpointId), indexKey(seq)])
    // An endpoint that was deleted and made anew counts from 1 again.
    this.#begun.delete(nameOfKey(key))
    const sealed = this.#sealed.seal(webhooks)
    change.put(WEBHOOK_BATCHES, key, { sealed, atMs: change.nowMs, subject, count: webhooks.length })
  }

  /** Events that wait in batches; a batch stays whole until its last event has left. */
  waiting(view: View, endpointId: bigint): Waiting {
    return this.#figures.of(view, endpointId)
  }

  /**
   * The next event of each subject that is neither taken nor held up, those of the oldest batches first: so many at most.
   * `isHeldUp`: an event that waits by itself goes before those of its subject.
   */
  next(
    view: View,
    endpointId: bigint,
    countMax: number,
    isTaken: (seq: number) => boolean,
    isHeldUp: (subject: Uint8Array) => boolean,
  ): readonly BatchedWebhook[] {
    const found: BatchedWebhook[] = []
    const subjects = new Set<string>()
    let looked = 0
    this.#crowded.delete(endpointId)
    for (const key of view.keys(WEBHOOK_BATCHES, rangeOf(idsKey(endpointId)))) {
      if (found.length >= countMax) break
      if (++looked > LOOKED_AT_MAX) {
        this.#crowded.add(endpointId)
        break
      }
      const begun = this.#beginning(view, key)
      const subject = nameOfKey(begun.row.subject)
      if (subjects.has(subject)) continue
      subjects.add(subject)
      let [next] = this.#unsentOf(begun)
      // Its actor failed before it could write the outcomes.
      if (next === undefined && ![...begun.sent].some(isTaken)) {
        begun.sent.clear()
        ;[next] = this.#unsentOf(begun)
      }
      begun.isHeldUp = next !== undefined && !isTaken(next.seq) && isHeldUp(next.subject)
      if (next !== undefined && !isTaken(next.seq) && !begun.isHeldUp) found.push(next)
    }
    return found
  }

  /** Nothing where the event is in no batch. */
  sent(change: Change, endpointId: bigint, seq: number): void {
    const key = this.#keyOf(change, endpointId, seq)
    if (key === undefined) return
    const { row, sent } = this.#beginning(change, key)
    sent.add(seq)
    if (sent.size === row.count) change.remove(WEBHOOK_BATCHES, key)
  }

  /** Takes the batch of an event out, and returns what of it has not been sent. */
  takeOut(change: Change, endpointId: bigint, seq: number): readonly BatchedWebhook[] {
    const key = this.#keyOf(change, endpointId, seq)
    return key === undefined ? [] : this.#take(change, key)
  }

  /** The same for some that an event by itself holds up, so that they are not looked at again and again. */
  takeHeldUp(change: Change, endpointId: bigint, limit: number): readonly BatchedWebhook[] {
    const heldUp = [...this.#begun.values()].filter(
      ({ key, isHeldUp }) => isHeldUp && idInKey(key, 0) === endpointId && change.has(WEBHOOK_BATCHES, key),
    )
    return heldUp.slice(0, limit).flatMap(({ key }) => this.#take(change, key))
  }

  /** The same for the oldest ones, where too many wait to look through them all. */
  takeCrowding(change: Change, endpointId: bigint, limit: number): readonly BatchedWebhook[] {
    return this.#crowded.has(endpointId) ? this.takeOldest(change, endpointId, limit) : []
  }

  /** The same for the oldest ones: so many, as far as they are of `untilMs` or before. */
  takeOldest(
    change: Change,
    endpointId: bigint,
    limit: number,
    untilMs = Number.POSITIVE_INFINITY,
  ): readonly BatchedWebhook[] {
    const oldest = [...change.range(WEBHOOK_BATCHES, { ...rangeOf(idsKey(endpointId)), limit })]
    return oldest
      .filter(({ value }) => value.atMs <= untilMs)
      .flatMap(({ key }) => this.#take(change, Uint8Array.from(key)))
  }

  /** Forgets batches that are not there any more. */
  forget(view: View): void {
    for (const [name, { key }] of this.#begun) if (!view.has(WEBHOOK_BATCHES, key)) this.#begun.delete(name)
  }

  #take(change: Change, key: Uint8Array): readonly BatchedWebhook[] {
    const unsent = [...this.#unsentOf(this.#beginning(change, key))]
    change.remove(WEBHOOK_BATCHES, key)
    return unsent
  }

  #keyOf(view: View, endpointId: bigint, seq: number): Uint8Array | undefined {
    const prefix = idsKey(endpointId)
    const start = Buffer.concat([prefix, indexKey(seq)])
    const [key] = [...view.keys(WEBHOOK_BATCHES, { start, end: prefix, reverse: true, limit: 1 })]
    if (key === undefined) return undefined
    return seq < seqIn(key) + this.#beginning(view, key).row.count ? Uint8Array.from(key) : undefined
  }

  #beginning(view: View, key: Uint8Array): Begun {
    const name = nameOfKey(key)
    const known = this.#begun.get(name)
    if (known !== undefined) return known
    const row = view.get(WEBHOOK_BATCHES, key)!
    const begun = { key: Uint8Array.from(key), row, sent: new Set<number>(), isHeldUp: false }
    this.#begun.set(name, begun)
    return begun
  }

  *#unsentOf({ key, row, sent }: Begun): Iterable<BatchedWebhook> {
    const webhooks = this.#sealed.open(row.sealed)
    const first = seqIn(key)
    for (let at = 0; at < row.count; at++) {
      const seq = first + at
      if (!sent.has(seq)) yield { ...row, seq, webhook: webhooks?.[at] }
    }
  }
}

interface Given extends Pick<StoreDeps, 'secrets' | 'randomBytes'> {
  readonly database: Pick<ReadStore, 'watch'>
}
/** Each outcome looks at them: some milliseconds. */
const LOOKED_AT_MAX = 512
