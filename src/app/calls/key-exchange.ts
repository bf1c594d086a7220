/** How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. */

import { CallsignError, hasCode } from '../callsign-error.ts'
import { type KeyBinding, openCallKey, sealCallKey } from '../devices/call-key.ts'
import type { KeyLog, PeerDevice } from '../devices/key-log.ts'
import type { CallParticipant } from '../wire.ts'
import type { KeyAsk } from './call.ts'
import type { Sender } from './device.ts'

/** By `<userId>_<deviceId>`. */
export type SealedKeys = Readonly<Record<string, string>>

/** With the device that has sealed it. */
export interface OpenedKey extends Sender {
  readonly key: Uint8Array
}

/** Its methods reject as those of `KeyLog`. */
export class KeyExchange {
  readonly #keyLog: KeyLog
  readonly #userId: string

  constructor(keyLog: KeyLog, userId: string) {
    this.#keyLog = keyLog
    this.#userId = userId
  }

  /** The key sealed for every device of these users, but this one. */
  async sealForUsers(key: Uint8Array, userIds: readonly string[], binding: KeyBinding): Promise<SealedKeys> {
    return this.#sealed(key, await this.#keyLog.devicesOf(userIds), binding)
  }

  /** The key sealed for the other users' devices that are in the call, and for those that still ring. */
  async sealForCall(
    key: Uint8Array,
    participants: readonly CallParticipant[],
    binding: KeyBinding,
  ): Promise<SealedKeys> {
    const receivers = participants.filter(
      ({ userId, state }) => userId !== this.#userId && RECEIVING.includes(state),
    )
    const devices = await this.#keyLog.devicesOf(receivers.map(({ userId }) => userId))
    const isReceiver = ({ userId, deviceId }: PeerDevice) =>
      receivers.some(one => one.userId === userId && (one.state !== 'joined' || one.deviceId === deviceId))
    return this.#sealed(key, devices.filter(isReceiver), binding)
  }

  /** The key sealed for one device. Rejects with `KEYS_REFUSED` where it has another key than the one of this hash. */
  async sealForDevice(
    key: Uint8Array,
    { userId, deviceId, publicKeyHash }: Pick<KeyAsk, 'userId' | 'deviceId' | 'publicKeyHash'>,
    binding: KeyBinding,
  ): Promise<string> {
    const device = await this.#keyLog.deviceOf(userId, deviceId)
    if (device.publicKeyHash === publicKeyHash) return this.#seal(key, device, binding)
    const detail = `device ${deviceId} asks for a call's key with another key than its own`
    throw await this.#keyLog.refuse(userId, { kind: 'refused', check: 'vrfHash', detail })
  }

  /**
   * Opens a key that one of these has sealed, tried in this order. Show people who it was where it is neither the caller nor
   * the host. Rejects with `CALL_KEY_INVALID` when none of them has.
   */
  async open(sealed: string, senders: readonly Sender[], binding: KeyBinding): Promise<OpenedKey> {
    let refusal: unknown = new CallsignError('CALL_KEY_INVALID', 'Nobody in the call has sealed its key.')
    for (const { userId, deviceId } of senders) {
      try {
        return { key: await this.#open(sealed, { userId, deviceId }, binding), userId, deviceId }
      } catch (error) {
        // A sender whose keys could not be read now may have sealed it.
        if (hasCode(refusal, 'CALL_KEY_INVALID')) refusal = error
      }
    }
    throw refusal
  }

  async #open(sealed: string, { userId, deviceId }: Sender, binding: KeyBinding): Promise<Uint8Array> {
    const from = await this.#keyLog.deviceOf(userId, deviceId)
    const opened = await openCallKey(sealed, from, this.#keyLog.self, binding)
    return this.#keyLog.readKey(opened, userId)
  }

  async #sealed(key: Uint8Array, devices: readonly PeerDevice[], binding: KeyBinding): Promise<SealedKeys> {
    const others = devices.filter(({ name }) => name !== this.#keyLog.self.name)
    const entryOf = async (to: PeerDevice) => [to.name, await this.#seal(key, to, binding)] as const
    return Object.fromEntries(await Promise.all(others.map(entryOf)))
  }

  async #seal(key: Uint8Array, to: PeerDevice, binding: KeyBinding): Promise<string> {
    return sealCallKey(await this.#keyLog.withCheckpoint(key, to), this.#keyLog.self, to, binding)
  }
}

/** States of participants who need a new key. */
const RECEIVING: readonly string[] = ['joined', 'invited', 'ringing']
