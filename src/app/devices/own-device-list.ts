/**
 * The user's own device list, which says for which of their devices other people encrypt. This device makes the first one,
 * approves further devices once its user says so, leaves removed ones out, or starts over when the rest is lost.
 */

import type { ListedDevice } from '../../client/client.ts'
import { spokenCode } from '../../log/spoken-code.ts'
import { hasCode } from '../callsign-error.ts'
import type { Server } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import type { RegisteredDevice } from './device-registration.ts'
import type { KeyLog, OwnUser } from './key-log.ts'
import { listedDevice, type OwnDeviceKeys, signedList } from './signed-list.ts'

/**
 * - `none`: the user has several devices and no list. `startOver` makes one
 * - `waiting`: a device of the list has to approve this one, which shows `code`
 * - `listed`: this device is on the list, and can approve those that wait
 */
export type OwnListState =
  | { readonly kind: 'none' }
  | { readonly kind: 'waiting'; readonly code: string }
  | { readonly kind: 'listed'; readonly waiting: readonly WaitingDevice[] }

export interface WaitingDevice extends OwnDeviceKeys {
  readonly name: string
  /** Twenty digits that the device shows, too. */
  readonly code: string
}

/**
 * Each method resolves with the state that it leads to. They reject as those of `KeyLog`, and then nothing is signed, or as
 * the server refuses `PUT user/device-list`.
 */
export class OwnDeviceList {
  readonly #server: Server
  readonly #session: Session
  readonly #device: RegisteredDevice
  readonly #keyLog: KeyLog
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(server: Server, session: Session, device: RegisteredDevice, keyLog: KeyLog) {
    this.#server = server
    this.#session = session
    this.#device = device
    this.#keyLog = keyLog
  }

  /**
   * Takes the steps that need no answer from the user. Call it at each start, and when the user's devices or list have
   * changed.
   */
  load(): Promise<OwnListState> {
    const { deviceId } = this.#device
    return this.#change(({ user, list }) => {
      if (list === undefined)
        return user.devices.every(device => device.deviceId === deviceId) ? [this.#own] : undefined
      const isPresent = (listed: ListedDevice) =>
        user.devices.some(device => device.deviceId === `${listed.deviceId}`)
      const present = list.devices.filter(isPresent)
      return isOn(list.devices, deviceId) && present.length < list.devices.length ? present : undefined
    })
  }

  /** Puts a device on the list, with the keys of its code: the user has compared it. */
  approve(device: WaitingDevice): Promise<OwnListState> {
    return this.#change(({ list }) => {
      const devices = list?.devices ?? []
      if (!isOn(devices, this.#device.deviceId) || isOn(devices, device.deviceId)) return undefined
      return [...devices, listedDevice(device)]
    })
  }

  /**
   * Makes a list of this device alone, which no other one has signed: contacts hear of it. Rejects with
   * `STEP_UP_REQUIRED` unless the user has proven lately who they are.
   */
  startOver(): Promise<OwnListState> {
    const { deviceId } = this.#device
    return this.#change(({ list }) => {
      const isAlone = list?.seq === 0 && list.devices.length === 1 && isOn(list.devices, deviceId)
      return isAlone ? undefined : [this.#own]
    }, true)
  }

  get #own(): ListedDevice {
    const { deviceId, keys } = this.#device
    return listedDevice({ deviceId, publicKey: keys.publicKey, signingKey: keys.signingKey })
  }

  /**
   * Signs lists until `next` has nothing to change. It is asked again with the newest list when another device has been
   * faster. Changes take turns.
   */
  #change(
    next: (own: OwnUser) => readonly ListedDevice[] | undefined,
    isReset = false,
  ): Promise<OwnListState> {
    const turn = this.#lastTurn.then(async () => {
      for (let left = TRIES; ; left--) {
        const own = await this.#keyLog.ownUser()
        const devices = next(own)
        if (devices === undefined) return this.#stateOf(own)
        await this.#put(own, devices, isReset).catch(error => {
          if (left <= 1 || !hasCode(error, 'DEVICE_LIST_CONFLICT')) throw error
        })
      }
    })
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async #put({ user, list }: OwnUser, devices: readonly ListedDevice[], isReset: boolean): Promise<void> {
    const previous = isReset ? undefined : user.deviceList
    // A list is younger than the one before, whatever the clocks say.
    const createdAtMs = Math.max(this.#server.nowMs(), (list?.createdAtMs ?? 0) + 1)
    const body = { list: await signedList(this.#device, devices, createdAtMs, previous) }
    const headers: Record<string, string> = list === undefined ? {} : { 'if-match': `"${list.seq}"` }
    await this.#session.request('PUT user/device-list', body, {}, headers)
  }

  async #stateOf({ user, list }: OwnUser): Promise<OwnListState> {
    const device = this.#device
    if (list === undefined) return { kind: 'none' }
    const { publicKey, signingKey } = device.keys
    if (!isOn(list.devices, device.deviceId)) return { kind: 'waiting', code: codeOf(publicKey, signingKey) }
    const left = user.devices.filter(({ deviceId }) => !isOn(list.devices, deviceId))
    const { items } = left.length > 0 ? await this.#session.request('GET devices', undefined) : { items: [] }
    const waiting = left.flatMap(({ deviceId, publicKey, signingKey }) => {
      // Without a signing key it can't be on a list.
      if (signingKey === undefined) return []
      const name = items.find(item => item.deviceId === deviceId)?.name ?? ''
      return [{ deviceId, name, publicKey, signingKey, code: codeOf(publicKey, signingKey) }]
    })
    return { kind: 'listed', waiting }
  }
}

function isOn(devices: readonly ListedDevice[], deviceId: string): boolean {
  return devices.some(each => `${each.deviceId}` === deviceId)
}

function codeOf(publicKey: string, signingKey: string): string {
  return spokenCode(`callsign device v1\n${publicKey}\n${signingKey}`)
}

const TRIES = 4
