/**
 * Registers a device's key in the log (LOG 4.1): checks the key, derives the VRF hash beside the event loop, and asks
 * the log appender. Callers are gRPC and the application API.
 */

import { SignalError } from '../errors.ts'
import { assertPublicKey } from '../log/entry.ts'
import type { Change } from '../store/engine/store.ts'
import type { VrfPool } from './vrf/vrf-pool.ts'

export interface KeyRequest {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly publicKey: string
  readonly alongside?: Alongside | undefined
}

export interface LoggedKeyRequest extends KeyRequest {
  readonly vrfHash: Uint8Array
}

/**
 * Rows that become durable with a new entry, in the batch's own change. Not called for a key that the log has already.
 * Where it throws, its rows are taken back and the entry stays: so the caller notes for itself that it ran to its end.
 */
export type Alongside = (change: Change) => void

export interface Registration {
  readonly index: number
  readonly vrfHash: Uint8Array
}

export class KeyRegistration {
  readonly #isFrozen: boolean
  readonly #vrf: Pick<VrfPool, 'hash'>
  /** Resolves with the leaf index when a signed checkpoint that covers it is durable. */
  readonly #append: (key: LoggedKeyRequest) => Promise<number>

  constructor(
    isFrozen: boolean,
    vrf: Pick<VrfPool, 'hash'>,
    append: (key: LoggedKeyRequest) => Promise<number>,
  ) {
    this.#isFrozen = isFrozen
    this.#vrf = vrf
    this.#append = append
  }

  /** Rejects with `MALFORMED` for a bad key, `LOG_UNAVAILABLE` when frozen, or as the appender refuses. */
  async register(key: KeyRequest): Promise<Registration> {
    assertPublicKey(key.publicKey)
    if (this.#isFrozen) throw new SignalError('LOG_UNAVAILABLE', 'the log is frozen: it is read-only')
    const vrfHash = await this.#vrf.hash(key.userId, key.deviceId)
    const index = await this.#append({ ...key, vrfHash })
    return { index, vrfHash }
  }
}
