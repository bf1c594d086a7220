/**
 * The events that wait for one endpoint, as its actor takes them: those that have been due longest first, each once until it is
 * settled.
 */

import { idsKey, rangeOf } from '../engine/keys.ts'
import type { Store, View } from '../engine/store.ts'
import type { BatchedWebhook } from './webhook-batches.ts'
import type { WebhookEndpoint } from './webhook-endpoints.ts'
import { eventKey, type StoredWebhook } from './webhook-events.ts'
import type { Died, WebhookSettlement, Webhooks } from './webhook-store.ts'
import { seqIn, WEBHOOK_DUE, WEBHOOK_EVENTS } from './webhook-tables.ts'

/** An event with its actor. */
export interface TakenWebhook {
  readonly seq: number
  /** Those that have failed. */
  readonly tries: number
  readonly sinceMs: number
  /** Undefined where another secret has sealed it: it can't be sent any more. */
  readonly webhook: StoredWebhook | undefined
}

export class WebhookQueue {
  readonly #store: Pick<Store, 'view' | 'change'>
  readonly #webhooks: Webhooks
  readonly #endpointId: bigint
  /** Taken, and still due in the store. */
  readonly #taken = new Set<number>()

  constructor(store: Pick<Store, 'view' | 'change'>, webhooks: Webhooks, endpointId: bigint) {
    this.#store = store
    this.#webhooks = webhooks
    this.#endpointId = endpointId
  }

  /** Undefined where there is no such endpoint. */
  endpoint(): WebhookEndpoint | undefined {
    return this.#store.view(view =>
      this.#webhooks.endpoints.all(view).find(({ endpointId }) => endpointId === this.#endpointId),
    )
  }

  take(nowMs: number, countMax: number): TakenWebhook[] {
    if (countMax <= 0) return []
    return this.#store.view(view => {
      const due = this.#due(view, countMax).filter(({ dueMs }) => dueMs <= nowMs)
      return due.slice(0, countMax).flatMap(({ seq, dueMs, batched }) => {
        const row =
          batched === undefined ? view.get(WEBHOOK_EVENTS, eventKey(this.#endpointId, seq)) : undefined
        if (row === undefined && batched === undefined) return []
        this.#taken.add(seq)
        if (row === undefined) return [{ seq, tries: 0, sinceMs: dueMs, webhook: batched!.webhook }]
        const { tries, sinceMs, sealed } = row
        return [{ seq, tries, sinceMs, webhook: this.#webhooks.sealed.open(sealed) }]
      })
    })
  }

  /** When the next one that is not taken is due, milliseconds since 1970; undefined when none waits. */
  nextDueMs(): number | undefined {
    return this.#store.view(view => this.#due(view, 1)[0]?.dueMs)
  }

  /**
   * Until it is durable they are not taken again. `isGone`: the endpoint has answered that it is, so nothing more is written for
   * it; `isDown`: few are tried, so expired ones die untried. Resolves with those that died.
   */
  async settle(
    settlements: readonly WebhookSettlement[],
    { isGone, isDown }: { readonly isGone: boolean; readonly isDown: boolean },
  ): Promise<readonly Died[]> {
    const died = await this.#store.change(change => {
      if (isGone) this.#webhooks.endpoints.setState(change, this.#endpointId, 'gone')
      return [
        ...this.#webhooks.settle(change, this.#endpointId, settlements),
        ...(isDown ? this.#webhooks.killExpired(change, this.#endpointId) : []),
      ]
    })
    for (const { seq } of settlements) this.#taken.delete(seq)
    this.#store.view(view => this.#webhooks.batches.forget(view))
    return died
  }

  /** Removes some of the events of a deleted endpoint; resolves with whether nothing is left. */
  async purge(): Promise<boolean> {
    const isEmpty = await this.#store.change(change => this.#webhooks.purge(change, this.#endpointId))
    this.#store.view(view => this.#webhooks.batches.forget(view))
    return isEmpty
  }

  /** Those that are tried next, by themselves or in a batch: at least so many, if there are as many. */
  #due(view: View, countMax: number): readonly Due[] {
    const range = { ...rangeOf(idsKey(this.#endpointId)), limit: countMax + this.#taken.size }
    const isTaken = (seq: number) => this.#taken.has(seq)
    const alone: Due[] = [...view.keys(WEBHOOK_DUE, range)]
      .map(key => ({ seq: seqIn(key), dueMs: Buffer.from(key).readUIntBE(8, 6), batched: undefined }))
      .filter(({ seq }) => !isTaken(seq))
    const batched = this.#webhooks.batches
      .next(view, this.#endpointId, countMax, isTaken, subject =>
        this.#webhooks.isHeldUp(view, this.#endpointId, subject),
      )
      .map(event => ({ seq: event.seq, dueMs: event.atMs, batched: event }))
    return [...alone, ...batched].sort((a, b) => a.dueMs - b.dueMs || a.seq - b.seq)
  }
}

interface Due {
  readonly seq: number
  readonly dueMs: number
  /** Undefined for one with a row by itself. */
  readonly batched: BatchedWebhook | undefined
}
