/** The user's own devices: which there are, and how one that is lost is removed. */

import { Problem, type Session } from './session.ts'
import type { Device, Store } from './state.ts'

export class Devices {
  readonly #store: Store
  readonly #session: Session

  constructor(store: Store, session: Session) {
    this.#store = store
    this.#session = session
  }

  async load(): Promise<void> {
    const { items } = await this.#session.request<{ items: readonly Device[] }>('GET', 'devices')
    this.#store.update({ devices: items.map(item => ({ ...item, name: shownName(item.name) })) })
  }

  async remove({ deviceId, name }: Device): Promise<void> {
    try {
      await this.#session.request('DELETE', `devices/${deviceId}`)
    } catch (error) {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!(error instanceof Problem && error.code === 'DEVICE_NOT_FOUND')) throw error
    }
    this.#sayRemoved(name)
    await this.load()
  }

  onAdded({ name }: Pick<Device, 'name'>): Promise<void> {
    this.#store.say(
      'bad',
      `A new device signs in as you: ${shownName(name)}. Was that you? If not, remove it from your devices.`,
    )
    return this.load()
  }

  onRemoved({ name }: Pick<Device, 'name'>): Promise<void> {
    this.#sayRemoved(name)
    return this.load()
  }

  /** In the same words from the event as from the answer: this device gets both, and they are said once. */
  #sayRemoved(name: string): void {
    this.#store.say('good', `${shownName(name)} was removed from your devices.`)
  }
}

/** The person signing in names the device: a name must not change its sentence's direction, and must be visible. */
function shownName(name: string): string {
  const plain = name.replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(plain) ? plain : 'Unnamed device'
}
