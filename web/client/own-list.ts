/**
 * The person's own device list: it says for which of their devices contacts encrypt. This device makes the first one,
 * approves further ones once its person says so, leaves removed ones out, or starts over when the rest is lost.
 */

import { type DeviceList, type ListedDevice, signDeviceList } from '../../src/client/client.ts'
import { base64FromBytes, bytesFromBase64, type DeviceKey, deviceCode, signWith } from './device-key.ts'
import type { KeyLog, OwnUser } from './key-log.ts'
import { Problem, type Session } from './session.ts'
import type { Device, Store, WaitingDevice } from './state.ts'

export interface OwnListParts {
  readonly store: Store
  readonly session: Session
  readonly keyLog: KeyLog
  readonly userId: string
  readonly deviceId: string
  readonly key: DeviceKey
}

export class OwnList {
  readonly #parts: OwnListParts
  /** The newest list. */
  #bytes: Uint8Array | undefined
  #list: DeviceList | undefined
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(parts: OwnListParts) {
    this.#parts = parts
  }

  /** Shows where this device stands, after doing what needs no question. Call it when the person's devices have changed. */
  load(): Promise<void> {
    return this.#inTurn(() => this.#load())
  }

  /** Puts a device on the list: its person has compared the codes. */
  approve({ deviceId, publicKey, signingKey }: WaitingDevice): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#list === undefined) return
      const device: ListedDevice = {
        deviceId: BigInt(deviceId),
        algorithm: 'P-256',
        publicKeySha256: await hashOf(publicKey),
        signingKey: bytesFromBase64(signingKey),
      }
      await this.#put([...this.#list.devices, device], this.#list)
    })
  }

  /** A list of this device alone, which no other one has signed: contacts hear of it. */
  startOver(): Promise<void> {
    const { key } = this.#parts
    return this.#inTurn(async () => this.#put([this.#ownDevice(await hashOf(key.publicKey))], undefined))
  }

  /** Each goes by the list that the one before has left. */
  #inTurn(act: () => Promise<void>): Promise<void> {
    const turn = this.#lastTurn.then(act)
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async #load(): Promise<void> {
    const { store, keyLog, deviceId, key } = this.#parts
    const { user, list } = await keyLog.ownList()
    const { devices } = store.state
    this.#list = list
    this.#bytes = list && bytesFromBase64(user.deviceList!)
    if (list === undefined) {
      store.update({ ownList: { kind: 'none' } })
      const isAlone = user.devices.every(device => device.deviceId === deviceId)
      return isAlone ? this.#tryPut([this.#ownDevice(await hashOf(key.publicKey))]) : undefined
    }
    const listed = new Set(list.devices.map(each => `${each.deviceId}`))
    if (!listed.has(deviceId)) {
      const code = await deviceCode(key.publicKey, key.signing.publicKey)
      return store.update({ ownList: { kind: 'waiting', code } })
    }
    const waiting = devices.flatMap(device => waitingOf(device, user, listed))
    store.update({ ownList: { kind: 'listed', waiting: await Promise.all(waiting) } })
    const present = list.devices.filter(each => user.devices.some(one => one.deviceId === `${each.deviceId}`))
    if (present.length < list.devices.length) await this.#tryPut(present)
  }

  /** Where another device was faster there is nothing to do: that device's list is announced. */
  async #tryPut(devices: readonly ListedDevice[]): Promise<void> {
    await this.#put(devices, this.#list).catch(error => {
      if (!isConflict(error)) throw error
    })
  }

  /** `follows`: the list that the new one follows; undefined for a first one. */
  async #put(devices: readonly ListedDevice[], follows: DeviceList | undefined): Promise<void> {
    const { session, userId, deviceId, key } = this.#parts
    const previous = follows && this.#bytes
    const next = {
      userId: BigInt(userId),
      devices,
      signerDeviceId: BigInt(deviceId),
      createdAtMs: Date.now(),
      ...(previous && { previous }),
    }
    const list = base64FromBytes(await signDeviceList(next, bytes => signWith(key.signing, bytes)))
    const seq = this.#list?.seq
    await session.request(
      'PUT',
      'user/device-list',
      { list },
      seq === undefined ? {} : { 'if-match': `"${seq}"` },
    )
    await this.#load()
  }

  #ownDevice(publicKeySha256: Uint8Array): ListedDevice {
    const { deviceId, key } = this.#parts
    const signingKey = bytesFromBase64(key.signing.publicKey)
    return { deviceId: BigInt(deviceId), algorithm: 'P-256', publicKeySha256, signingKey }
  }
}

/** Nothing for a device that is on the list, or can't be: it has no signing key. */
function waitingOf(
  { deviceId, name }: Device,
  user: OwnUser,
  listed: ReadonlySet<string>,
): Promise<WaitingDevice>[] {
  const named = user.devices.find(one => one.deviceId === deviceId)
  if (named?.signingKey === undefined || listed.has(deviceId)) return []
  const { publicKey, signingKey } = named
  return [deviceCode(publicKey, signingKey).then(code => ({ deviceId, name, publicKey, signingKey, code }))]
}

function isConflict(error: unknown): boolean {
  return error instanceof Problem && error.code === 'DEVICE_LIST_CONFLICT'
}

async function hashOf(publicKey: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytesFromBase64(publicKey)))
}
