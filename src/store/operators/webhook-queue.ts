/**
 * The events that wait for one endpoint, as its actor takes them: those that have been due longest first, each once until it is
 * settled.
 */

import { idsKey, rangeOf } from '../engine/keys.ts'
import type { Store, View } from '../engine/store.ts'
import type { WebhookEndpoint } from './webhook-endpoints.ts'
import {
  type Died,
  eventKey,
  type StoredWebhook,
  seqIn,
  type WebhookSettlement,
  type Webhooks,
} from './webhook-store.ts'
import { WEBHOOK_DUE, WEBHOOK_EVENTS } from './webhook-tables.ts'

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
      const due = this.#seqsDue(view, countMax).filter(({ dueMs }) => dueMs <= nowMs)
      return due.flatMap(({ seq }) => {
        const row = view.get(WEBHOOK_EVENTS, eventKey(this.#endpointId, seq))
        if (row === undefined) return []
        this.#taken.add(seq)
        const { tries, sinceMs, sealed } = row
        return [{ seq, tries, sinceMs, webhook: this.#webhooks.sealed.open(sealed) }]
      })
    })
  }

  /** When the next one that is not taken is due, milliseconds since 1970; undefined when none waits. */
  nextDueMs(): number | undefined {
    return this.#store.view(view => this.#seqsDue(view, 1)[0]?.dueMs)
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
    return died
  }

  /** Removes some of the events of a deleted endpoint; resolves with whether nothing is left. */
  purge(): Promise<boolean> {
    return this.#store.change(change => this.#webhooks.purge(change, this.#endpointId))
  }

  #seqsDue(view: View, countMax: number): { readonly seq: number; readonly dueMs: number }[] {
    const range = { ...rangeOf(idsKey(this.#endpointId)), limit: countMax + this.#taken.size }
    return [...view.keys(WEBHOOK_DUE, range)]
      .map(key => ({ seq: seqIn(key), dueMs: Buffer.from(key).readUIntBE(8, 6) }))
      .filter(({ seq }) => !this.#taken.has(seq))
      .slice(0, countMax)
  }
}
