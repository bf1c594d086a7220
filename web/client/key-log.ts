/**
 * This person's view of the key transparency log: their own keys, and other users' devices, only those that the log
 * proves. Choice: the server gives the log's public keys, because this is a development page for any server. An app
 * has them built in, since a lying server could give false ones.
 */

import { LogClient, type LookupOutcome, type PublishedKeys } from '../../src/client/client.ts'
import type { KeyHolder, OwnDevice } from './call-key.ts'
import { pointOf } from './device-key.ts'
import { KnownDevices, type ProvenDevice } from './known-devices.ts'
import type { Session } from './session.ts'
import type { OwnKey } from './state.ts'

/** A device whose key the log proves. */
export interface Peer extends KeyHolder {
  readonly userId: string
  readonly deviceId: string
  readonly publicKeyHash: string
}

/** Facts about this tab's own device. */
export interface Registered {
  readonly userId: string
  readonly deviceId: string
  readonly publicKeyHash: string
  readonly publicKey: string
}

interface KeysReply {
  readonly users: readonly {
    readonly userId: string
    readonly displayName: string
    readonly devices: readonly {
      readonly deviceId: string
      readonly keyAlgorithm: string
      readonly publicKey: string
      readonly publicKeyHash: string
    }[]
  }[]
  readonly unavailable: readonly string[]
}

export class KeyLog {
  readonly self: OwnDevice
  readonly #session: Session
  readonly #own: Registered
  readonly #client: LogClient
  readonly #known: KnownDevices
  readonly #onNewDevice: (sentence: string) => void

  constructor(
    session: Session,
    keys: PublishedKeys,
    own: Registered,
    privateKey: CryptoKey,
    onNewDevice: (sentence: string) => void,
  ) {
    this.#session = session
    this.#known = new KnownDevices(own.userId)
    this.#onNewDevice = onNewDevice
    this.#own = own
    this.self = { name: `${own.userId}_${own.deviceId}`, point: pointOf(own.publicKey), privateKey }
    const store = checkpointStore(own.userId, keys.vkey)
    this.#client = new LogClient({
      ...keys,
      url: location.origin,
      store,
      fetch: (url, init) => fetch(url, init),
    })
  }

  /** Whether the log holds this device's own key, and no other in its name. */
  async checkOwn(): Promise<OwnKey> {
    const { userId, deviceId, publicKeyHash, publicKey } = this.#own
    const claim = { userId, deviceId, vrfHash: publicKeyHash, publicKeys: [publicKey] }
    const report = await this.#client.checkOwnKeys(claim)
    switch (report.kind) {
      case 'clean': {
        const index = report.entries.at(-1)!.index
        const treeSize = report.checkpoint?.treeSize ?? 0
        return { kind: 'clean', index, treeSize, hash: publicKeyHash }
      }
      case 'alert': {
        const sentence =
          report.foreign.length > 0
            ? 'The log holds another key in the name of this device.'
            : 'The log does not show this device’s own key, so that others can’t call it.'
        return { kind: 'doubtful', sentence }
      }
      case 'refused':
        return {
          kind: 'doubtful',
          sentence: `The log’s answer does not hold (${report.check}): ${report.detail}.`,
        }
      case 'unanswered':
        return { kind: 'unchecked', sentence: `The log could not be asked: ${report.detail}.` }
    }
  }

  /**
   * Every device of these people. Throws, with a sentence for people, when one of them is not to be seen, has none,
   * or has one that the log does not prove: then nothing is to be encrypted.
   */
  async devicesOf(userIds: readonly string[]): Promise<readonly Peer[]> {
    if (userIds.length === 0) return []
    const path = `user/publicKeys?userIds=${userIds.join(',')}`
    const { users, unavailable } = await this.#session.request<KeysReply>('GET', path)
    if (unavailable.length > 0)
      throw new Error('The keys of somebody here are not to be seen: are you contacts?')
    const devices = users.flatMap(({ userId, displayName, devices }) => {
      if (devices.length === 0) throw new Error(`${displayName} has no device yet, so nobody can be called.`)
      return devices.map(device => ({ ...device, userId, displayName }))
    })
    const outcomes = await this.#client.lookUpAll(
      devices.map(({ userId, deviceId, publicKeyHash: vrfHash, publicKey }) => ({
        ...{ userId, deviceId, vrfHash, publicKey },
      })),
    )
    const proven = devices.map((device, at) => ({
      ...device,
      publicKey: provenKey(outcomes[at]!, device.displayName),
    }))
    this.#tellNewOnes(proven)
    return proven.map(({ userId, deviceId, displayName, keyAlgorithm, publicKey, publicKeyHash }) => {
      if (keyAlgorithm !== 'P-256') {
        throw new Error(
          `${displayName} has a device with an ${keyAlgorithm} key, which this page does not speak.`,
        )
      }
      return { name: `${userId}_${deviceId}`, point: pointOf(publicKey), userId, deviceId, publicKeyHash }
    })
  }

  /** One device of a user, likewise. */
  async deviceOf(userId: string, deviceId: string): Promise<Peer> {
    const found = (await this.devicesOf([userId])).find(device => device.deviceId === deviceId)
    if (found === undefined) throw new Error('That device is not one of theirs any more.')
    return found
  }

  #tellNewOnes(devices: readonly ProvenDevice[]): void {
    const others = devices.filter(({ userId }) => userId !== this.#own.userId)
    for (const sentence of this.#known.see(others)) this.#onNewDevice(sentence)
  }
}

function provenKey(outcome: LookupOutcome, displayName: string): string {
  switch (outcome.kind) {
    case 'verified':
      return outcome.publicKey
    case 'refused':
      throw new Error(
        `The key of ${displayName} does not verify in the key log (${outcome.check}): ${outcome.detail}. Nothing is encrypted for it.`,
      )
    case 'unanswered':
      throw new Error(`The key log could not be asked for the key of ${displayName}: ${outcome.detail}.`)
  }
}

/**
 * The highest checkpoint in the browser's storage: one for each person, as tabs do not wait for one another, and for
 * each key of the log, since a development server that starts afresh has another log under the same name.
 */
function checkpointStore(userId: string, vkey: string) {
  const name = `callsign.checkpoint.${userId}.${vkey}`
  return {
    get: () => JSON.parse(localStorage.getItem(name) ?? 'null'),
    put: (checkpoint: object) => localStorage.setItem(name, JSON.stringify(checkpoint)),
  }
}
