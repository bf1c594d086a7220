/** Endpoints of webhooks: the one of the settings, and those that the operator's command made. */

import { decode, encode } from 'msgpackr'
import type { WebhookEventKind } from '../../domain/operators/webhook-event.ts'
import { assert, SignalError } from '../../errors.ts'
import { idInKey, idsKey } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'
import { type EndpointRow, NO_EVENTS, WEBHOOK_ENDPOINTS, WEBHOOK_FIGURES } from './webhook-tables.ts'

export interface WebhookEndpoint extends Omit<EndpointRow, 'sealedSecrets'> {
  readonly endpointId: bigint
  /** The newest first; none where another secret has sealed them. */
  readonly secrets: readonly string[]
}

/** An endpoint as the operator describes it. */
export interface EndpointSettings {
  readonly url: string
  /** All kinds where it is missing. */
  readonly kinds?: readonly WebhookEventKind[] | undefined
  /** One or two. */
  readonly secrets: readonly string[]
}

export class WebhookEndpoints {
  readonly #sealed: Sealed
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #cache: WatchedCache<'all', readonly WebhookEndpoint[]>

  constructor({ database, secrets, randomBytes }: Pick<StoreDeps, 'secrets' | 'randomBytes'> & Watched) {
    this.#sealed = new Sealed(secrets, randomBytes, 'webhook-secrets')
    this.#randomBytes = randomBytes
    this.#cache = new WatchedCache(database, [WEBHOOK_ENDPOINTS], () => 'all', 1)
  }

  /** All of them, also those that are being deleted. */
  all(view: View): readonly WebhookEndpoint[] {
    return this.#cache.of('all', () =>
      [...view.range(WEBHOOK_ENDPOINTS)].map(({ key, value: { sealedSecrets, ...row } }) => ({
        ...row,
        endpointId: idInKey(key, 0),
        secrets: this.#open(sealedSecrets),
      })),
    )
  }

  /** Undefined for one that is being deleted, too. */
  read(view: View, endpointId: bigint): WebhookEndpoint | undefined {
    const found = this.all(view).find(endpoint => endpoint.endpointId === endpointId)
    return found?.state === 'deleted' ? undefined : found
  }

  /** Whether the endpoint's events are being removed. */
  isDeleted(view: View, endpointId: bigint): boolean {
    return this.all(view).some(each => each.endpointId === endpointId && each.state === 'deleted')
  }

  /** Throws `WEBHOOK_LIMIT` where there are as many as can be. */
  create(change: Change, settings: EndpointSettings): WebhookEndpoint {
    if (this.all(change).length >= ENDPOINTS_MAX)
      throw new SignalError('WEBHOOK_LIMIT', `there are ${ENDPOINTS_MAX} endpoints of webhooks: delete one`)
    const endpointId = BigInt(Buffer.from(this.#randomBytes(ID_BYTES)).readUIntBE(0, ID_BYTES))
    assert(endpointId !== OF_SETTINGS && this.read(change, endpointId) === undefined, 'a new id is new')
    return this.#put(change, endpointId, settings, change.nowMs)
  }

  /** Another secret, with which events are signed too; the one before stays good beside it. */
  rotate(change: Change, endpoint: WebhookEndpoint, secret: string): WebhookEndpoint {
    const { endpointId, createdAtMs, secrets } = endpoint
    return this.#put(
      change,
      endpointId,
      { ...endpoint, secrets: [secret, ...secrets].slice(0, 2) },
      createdAtMs,
    )
  }

  /** It takes events no more, or again. */
  setState(change: Change, endpointId: bigint, state: EndpointRow['state']): void {
    const row = change.get(WEBHOOK_ENDPOINTS, idsKey(endpointId))
    if (row === undefined || row.state === state) return
    change.put(WEBHOOK_ENDPOINTS, idsKey(endpointId), { ...row, state })
    change.happened({ kind: 'webhook-news', endpointId })
  }

  /** Nothing of it is left, once its events are removed. */
  remove(change: Change, endpointId: bigint): void {
    change.remove(WEBHOOK_ENDPOINTS, idsKey(endpointId))
  }

  /** Has the endpoint of the settings be as they say, or go where they name none. */
  settle(change: Change, settings: EndpointSettings | undefined): void {
    const found = this.all(change).find(({ endpointId }) => endpointId === OF_SETTINGS)
    if (settings === undefined) return this.setState(change, OF_SETTINGS, 'deleted')
    const isSame =
      found !== undefined &&
      found.state !== 'deleted' &&
      found.url === settings.url &&
      found.secrets.join() === settings.secrets.join()
    if (!isSame) this.#put(change, OF_SETTINGS, settings, found?.createdAtMs ?? change.nowMs)
  }

  #put(
    change: Change,
    endpointId: bigint,
    { url, kinds, secrets }: EndpointSettings,
    createdAtMs: number,
  ): WebhookEndpoint {
    const row: Omit<EndpointRow, 'sealedSecrets'> = {
      url,
      ...(kinds && { kinds }),
      createdAtMs,
      state: 'open',
    }
    change.put(WEBHOOK_ENDPOINTS, idsKey(endpointId), {
      ...row,
      sealedSecrets: this.#sealed.seal(encode(secrets)),
    })
    const key = idsKey(endpointId)
    if (!change.has(WEBHOOK_FIGURES, key)) change.put(WEBHOOK_FIGURES, key, NO_EVENTS)
    change.happened({ kind: 'webhook-news', endpointId })
    return { ...row, endpointId, secrets }
  }

  #open(sealed: Uint8Array): readonly string[] {
    const plain = this.#sealed.open(sealed)
    return plain === undefined ? [] : (decode(plain) as readonly string[])
  }
}

interface Watched {
  readonly database: Pick<ReadStore, 'watch'>
}

/** An endpoint as operators name it. */
export function endpointName(endpointId: bigint): string {
  return endpointId === OF_SETTINGS ? 'settings' : `wh_${endpointId.toString(16).padStart(12, '0')}`
}

/** The endpoint of that name; undefined for any other text. */
export function parseEndpointName(name: string): bigint | undefined {
  if (name === 'settings') return OF_SETTINGS
  if (!/^wh_[0-9a-f]{12}$/.test(name)) return undefined
  const endpointId = BigInt(`0x${name.slice(3)}`)
  return endpointId === OF_SETTINGS ? undefined : endpointId
}

/** The id of the endpoint that the settings name. */
const OF_SETTINGS = 0n
/** Each costs rows with every event. */
const ENDPOINTS_MAX = 16
const ID_BYTES = 6
