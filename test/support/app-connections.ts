/** Connections of `@callsign/sdk/app`, and what they tell their app. */

import WebSocket from 'ws'
import {
  Connection,
  type ConnectionDeps,
  type ConnectionListener,
} from '../../src/app/connection/connection.ts'
import { webCryptoKeys } from '../../src/app/devices/device-keys.ts'
import { DeviceRegistration } from '../../src/app/devices/device-registration.ts'
import type { AppSession } from './app-sessions.ts'

type Event = Parameters<ConnectionListener['onEvent']>[0]

/** Node has a WebSocket of its own since version 22. */
export const webSocket = globalThis.WebSocket ?? WebSocket

/** Writes down what it hears. */
export class RecordingListener implements ConnectionListener {
  readonly states: string[] = []
  readonly mayHaveMissed: boolean[] = []
  /** Without badges. */
  readonly events: Event[] = []
  readonly troubles: unknown[] = []
  devicesMissing = 0
  /** Handles an event once it is written down. */
  handle: (event: Event) => Promise<void> | void = () => {}
  register: () => Promise<unknown> = async () => {}
  #waiting: (() => void)[] = []

  /** Resolves when `isSo`, which is asked whenever there is something new. */
  async until(isSo: (listener: this) => boolean): Promise<void> {
    while (!isSo(this)) await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  /** Resolves when the connection was there, with all its subscriptions, so many times. */
  connected(times = 1): Promise<void> {
    return this.until(({ mayHaveMissed }) => mayHaveMissed.length >= times)
  }

  onState(state: string, failures: number): void {
    this.states.push(state === 'connecting' && failures > 0 ? `failed ${failures}` : state)
    this.#tell()
  }

  onConnected({ mayHaveMissed }: { readonly mayHaveMissed: boolean }): void {
    this.mayHaveMissed.push(mayHaveMissed)
    this.#tell()
  }

  async onEvent(event: Event): Promise<void> {
    if (event.type === 'badge') return
    this.events.push(event)
    this.#tell()
    await this.handle(event)
  }

  async onDeviceMissing(): Promise<void> {
    this.devicesMissing += 1
    await this.register()
    this.#tell()
  }

  onTrouble(error: unknown): void {
    this.troubles.push(error)
    this.#tell()
  }

  #tell(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

export function openConnection(app: AppSession, options: Partial<ConnectionDeps> = {}) {
  const listener = new RecordingListener()
  return { listener, connection: new Connection({ ...app, listener, webSocket, ...options }) }
}

export function register(app: AppSession) {
  return registrationOf(app).register()
}

export function registrationOf({ server, session, storage }: AppSession): DeviceRegistration {
  return new DeviceRegistration(server, session, storage, webCryptoKeys(storage))
}
