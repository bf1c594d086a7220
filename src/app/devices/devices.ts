/** The user's devices, and the list by which contacts know them. */

import type { OwnKeysReport } from '../../client/client.ts'
import type { BodyOf, ReplyOf } from '../session/operations.ts'
import type { Session } from '../session/session.ts'
import type { QueueEvent } from '../wire.ts'
import type { KeyLog } from './key-log.ts'
import type { OwnDeviceList, OwnListState, WaitingDevice } from './own-device-list.ts'

export class Devices {
  readonly #session: Session
  readonly #keyLog: KeyLog
  readonly #list: OwnDeviceList
  readonly #onChanged: () => void
  #state: OwnListState | undefined

  constructor(session: Session, keyLog: KeyLog, list: OwnDeviceList, onChanged: () => void) {
    this.#session = session
    this.#keyLog = keyLog
    this.#list = list
    this.#onChanged = onChanged
  }

  /** Where this device stands; undefined until that was read. */
  get listState(): OwnListState | undefined {
    return this.#state
  }

  list(): Promise<ReplyOf<'GET devices'>> {
    return this.#session.request('GET devices', undefined)
  }

  /** Whether the log holds this device's own key, and no other in its name. The SDK asks at each start; ask once a day, too. */
  checkKey(): Promise<OwnKeysReport> {
    return this.#keyLog.checkOwn()
  }

  /** Signs the device out, for good. */
  async remove(deviceId: string): Promise<void> {
    await this.#session.request('DELETE devices/{deviceId}', undefined, { deviceId })
  }

  /** The tokens by which this device is woken; those that are left out stay. */
  async putPushTokens(tokens: BodyOf<'PUT devices/current/push'>): Promise<void> {
    await this.#session.request('PUT devices/current/push', tokens)
  }

  /** Lets contacts encrypt for another device of the user, who has compared the code on both screens. */
  async approve(device: WaitingDevice): Promise<void> {
    this.#take(await this.#list.approve(device))
  }

  /**
   * Makes this device the only one that contacts encrypt for, since the rest is lost: they hear of it. Rejects with
   * `STEP_UP_REQUIRED` unless the user has proven lately who they are.
   */
  async startOver(): Promise<void> {
    this.#take(await this.#list.startOver())
  }

  /**
   * Reads the list, and takes the steps that need no answer from the user: the SDK calls it after each connection and
   * change.
   */
  async load(): Promise<void> {
    this.#take(await this.#list.load())
  }

  /** A message of the queue, which may say that the devices have changed. */
  async onMessage({ type }: QueueEvent): Promise<void> {
    if (CHANGES.includes(type)) await this.load()
  }

  #take(state: OwnListState): void {
    this.#state = state
    this.#onChanged()
  }
}

const CHANGES: readonly string[] = [
  'device_added',
  'device_removed',
  'device_list_changed',
  'device_list_reset',
]
