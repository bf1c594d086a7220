/** The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked. */

import { makeCallKey } from '../devices/call-key.ts'
import type { Session } from '../session/session.ts'
import type { CallRecord, KeysReason } from '../wire.ts'
import type { Call } from './call.ts'
import type { EpochKey } from './call-keys.ts'
import { withFreshDevices } from './fresh-devices.ts'
import type { KeyExchange, OpenedKey } from './key-exchange.ts'

export interface KeyRotationDeps {
  readonly session: Session
  readonly exchange: KeyExchange
  readonly userId: string
}

/** The call as far as this needs it. */
export interface RotatedCall extends Pick<Call, 'state' | 'isHost' | 'participants'> {
  /** Values for the path of a request. */
  readonly at: { readonly callId: string }
  read(): Promise<CallRecord>
  /** A key that was made here. */
  own(key: Uint8Array): OpenedKey
  hold(epoch: number, opened: OpenedKey): void
  /** Throws `KEY_MISSING`. */
  assertKey(): EpochKey
  report(error: unknown): void
}

export class KeyRotation {
  readonly #deps: KeyRotationDeps
  readonly #call: RotatedCall
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(deps: KeyRotationDeps, call: RotatedCall) {
    this.#deps = deps
    this.#call = call
  }

  async renew(): Promise<void> {
    try {
      await this.#renew('rotation')
    } catch (error) {
      // The others may have it; then this device needs another one with them.
      this.#plan(AFTER_LEAVING_MS, 'rotation')
      throw error
    }
  }

  async resend(): Promise<void> {
    await withFreshDevices(async () => {
      const record = await this.#call.read()
      const { epoch, key } = this.#call.assertKey()
      await this.#send(record, epoch, key, 'emergency')
    })
  }

  /** The time of the present key begins. */
  plan({ keyRotationIn }: Pick<CallRecord, 'keyRotationIn'>): void {
    this.#plan(keyRotationIn * 1000, 'rotation')
  }

  /** A little later, for several who leave at once. */
  planAfterLeaving(): void {
    this.#plan(AFTER_LEAVING_MS, 'leave')
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  get #isOver(): boolean {
    return this.#call.state === 'ended'
  }

  async #renew(reason: 'rotation' | 'leave'): Promise<void> {
    const call = this.#call
    const key = makeCallKey()
    await withFreshDevices(async () => {
      const record = await call.read()
      const epoch = record.keyEpoch + 1
      await this.#send(record, epoch, key, reason)
      if (this.#isOver) return
      call.hold(epoch, call.own(key))
      this.plan(record)
    })
  }

  async #send(record: CallRecord, epoch: number, key: Uint8Array, reason: KeysReason): Promise<void> {
    const { exchange, session } = this.#deps
    const encryptedAESKeys = await exchange.sealForCall(key, record)
    await session.request('POST call/{callId}/keys', { epoch, reason, encryptedAESKeys }, this.#call.at)
  }

  /** Only the host makes it. Where it can't be made then, it is later. */
  #plan(afterMs: number, reason: 'rotation' | 'leave'): void {
    this.stop()
    this.#timer = setTimeout(async () => {
      const { isHost, state, participants } = this.#call
      const { userId: own } = this.#deps
      const hasOthers = participants.some(one => one.state === 'joined' && one.userId !== own)
      try {
        if (isHost && state === 'active' && hasOthers) return await this.#renew(reason)
      } catch (error) {
        this.#call.report(error)
      }
      if (!this.#isOver) this.#plan(Math.min(2 * afterMs, AGAIN_MS), reason)
    }, afterMs)
  }
}

const AFTER_LEAVING_MS = 5_000
const AGAIN_MS = 60_000
