/** How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. */

import { openCallKey, sealCallKey } from './call-key.ts'
import type { CallRecord } from './call-record.ts'
import type { Bytes } from './device-key.ts'
import type { KeyLog, Peer } from './key-log.ts'

export class KeyExchange {
  readonly #keyLog: KeyLog
  readonly #userId: string

  constructor(keyLog: KeyLog, userId: string) {
    this.#keyLog = keyLog
    this.#userId = userId
  }

  /** The key sealed for every device of these people. */
  async sealForUsers(key: Bytes, userIds: readonly string[]): Promise<Record<string, string>> {
    return this.#sealed(key, await this.#keyLog.devicesOf(userIds))
  }

  /** The key sealed for the other devices that are in the call, and for those that still ring. */
  async sealForCall(key: Bytes, { participants }: CallRecord): Promise<Record<string, string>> {
    const others = participants.filter(({ userId }) => userId !== this.#userId)
    const receivers = others.filter(({ state }) => RECEIVING.has(state))
    const devices = await this.#keyLog.devicesOf(receivers.map(({ userId }) => userId))
    const isReceiver = ({ userId, deviceId }: Peer) => {
      const { state, deviceId: present } = receivers.find(one => one.userId === userId)!
      return state !== 'joined' || deviceId === present
    }
    return this.#sealed(key, devices.filter(isReceiver))
  }

  /** The key sealed for one device, which has to be the one with this hash. */
  async sealForDevice(key: Bytes, userId: string, deviceId: string, publicKeyHash: string): Promise<string> {
    const device = await this.#keyLog.deviceOf(userId, deviceId)
    if (device.publicKeyHash !== publicKeyHash) {
      throw new Error('Somebody asks for the key from a device that is not theirs. They do not get it.')
    }
    return this.#seal(key, device)
  }

  /** Rejects unless this device of this user has sealed it. */
  async open(sealed: string, userId: string, deviceId: string): Promise<Bytes> {
    const from = await this.#keyLog.deviceOf(userId, deviceId)
    const opened = await openCallKey(sealed, from, this.#keyLog.self).catch(() => {
      throw new Error('The call’s key was not sealed by the one who is said to have sent it. It is not used.')
    })
    return this.#keyLog.readKey(opened)
  }

  /** The key sealed by a participant: most likely `callerId` or the host; undefined when none opens. */
  async openFromAny(
    { participants, hostUserId }: CallRecord,
    sealed: string,
    callerId?: string,
  ): Promise<Bytes> {
    const likely = new Set([callerId, hostUserId])
    const senders = participants
      .filter(({ userId, deviceId }) => deviceId !== undefined && userId !== this.#userId)
      .sort((a, b) => Number(likely.has(b.userId)) - Number(likely.has(a.userId)))
    let refusal: unknown = new Error('Nobody in the call has sent its key.')
    for (const { userId, deviceId } of senders) {
      try {
        return await this.open(sealed, userId, deviceId!)
      } catch (error) {
        refusal = error
      }
    }
    throw refusal
  }

  /** By `<userId>_<deviceId>`. */
  async #sealed(key: Bytes, devices: readonly Peer[]): Promise<Record<string, string>> {
    const others = devices.filter(({ name }) => name !== this.#keyLog.self.name)
    const entryOf = async (to: Peer) => [to.name, await this.#seal(key, to)] as const
    return Object.fromEntries(await Promise.all(others.map(entryOf)))
  }

  async #seal(key: Bytes, to: Peer): Promise<string> {
    return sealCallKey(await this.#keyLog.withCheckpoint(key, to), this.#keyLog.self, to)
  }
}

/** States of participants who need a new key. */
const RECEIVING: ReadonlySet<string> = new Set(['joined', 'invited', 'ringing'])
