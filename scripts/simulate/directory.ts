/**
 * Devices' keys. The server's answer is checked against the log before anything is sealed with it; a device's key
 * never changes, so once for each device.
 */

import { LogClient, MemoryStore } from '../../src/client/client.ts'
import type { Api } from './api.ts'
import { type KeyHolder, keyHolder } from './call-key.ts'

export class Directory {
  readonly #log: LogClient
  readonly #verified = new Map<string, KeyHolder>()

  private constructor(log: LogClient) {
    this.#log = log
  }

  /** For the log that the server names: a simulator has no other source, an app has the keys built in. */
  static async open(api: Api, url: string): Promise<Directory> {
    const { log } = await api.send<{ log: { vkey: string; vrfPublicKey: string } }>('GET /app/api/meta')
    return new Directory(
      new LogClient({ vkey: log.vkey, vrfPublicKey: log.vrfPublicKey, url, store: new MemoryStore() }),
    )
  }

  /** A device of our own, whose key we made. */
  add(holder: KeyHolder): void {
    this.#verified.set(holder.name, holder)
  }

  /** All devices of a user, as `api`'s user may read them. Throws for a key that the log does not prove. */
  async devicesOf(api: Api, userId: string): Promise<KeyHolder[]> {
    const path = `/app/api/user/publicKeys?userIds=${userId}`
    const { users } = await api.send<{ users: readonly ListedUser[] }>(`GET ${path}`)
    const devices = users.flatMap(user => user.devices)
    const unknown = devices.filter(({ deviceId }) => !this.#verified.has(`${userId}_${deviceId}`))
    await this.#verify(userId, unknown)
    return devices.map(({ deviceId }) => this.#verified.get(`${userId}_${deviceId}`)!)
  }

  /** One of them. */
  async deviceOf(api: Api, userId: string, deviceId: string): Promise<KeyHolder> {
    const name = `${userId}_${deviceId}`
    if (!this.#verified.has(name)) await this.devicesOf(api, userId)
    const holder = this.#verified.get(name)
    if (holder === undefined) throw new Error(`user ${userId} has no device ${deviceId}`)
    return holder
  }

  async #verify(userId: string, devices: readonly ListedDevice[]): Promise<void> {
    const targets = devices.map(({ deviceId, publicKeyHash: vrfHash }) => ({ userId, deviceId, vrfHash }))
    const outcomes = await this.#log.lookUpAll(targets)
    for (const [at, device] of devices.entries()) {
      const outcome = outcomes[at]!
      if (outcome.kind !== 'verified' || outcome.publicKey !== device.publicKey) {
        const why = outcome.kind === 'verified' ? 'the log has another key' : outcome.detail
        throw new Error(`the key of device ${device.deviceId} does not verify: ${why}`)
      }
      this.add(keyHolder(userId, device.deviceId, device))
    }
  }
}

interface ListedUser {
  readonly devices: readonly ListedDevice[]
}

interface ListedDevice {
  readonly deviceId: string
  readonly publicKey: string
  readonly keyAlgorithm: string
  readonly publicKeyHash: string
}
