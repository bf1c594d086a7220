/**
 * This person's view of the key transparency log: their own keys, and other users' devices, only those that the log
 * proves. Choice: the server gives the log's public keys, because this is a development page for any server. An app
 * has them built in, since a lying server could give false ones.
 */

import {
  ContactDevices,
  comparisonCode,
  type DeviceList,
  LogClient,
  type NamedDevice,
  type NamedUser,
  type PublishedKeys,
  type Refusal,
  readCallKey,
  readShareFragment,
  type SharedPerson,
  shareFragment,
  type Unanswered,
  type VerifiedDevices,
  withCheckpoint,
} from '../../src/client/client.ts'
import type { KeyHolder, OwnDevice } from './call-key.ts'
import { type Bytes, base64FromBytes, bytesFromBase64, pointOf } from './device-key.ts'
import { knownUserStore, sentencesOf } from './known-devices.ts'
import type { Session } from './session.ts'
import { sharedPeople } from './shared-people.ts'
import type { OwnKey } from './state.ts'

/** A device whose key the log proves. */
export interface Peer extends KeyHolder {
  readonly userId: string
  readonly deviceId: string
  readonly publicKeyHash: string
  /** Whether a device list names it, so that its app is one that can read a checkpoint behind a key. */
  readonly isListed: boolean
}

/** Facts about this tab's own device. */
export interface Registered {
  readonly userId: string
  readonly deviceId: string
  readonly publicKeyHash: string
  readonly publicKey: string
}

type FoundUser = NamedUser & { readonly displayName: string }

/** As its owner is shown. */
export interface OwnUser extends NamedUser {
  readonly devices: readonly (NamedDevice & { readonly signingKey?: string })[]
}

interface KeysReply {
  readonly users: readonly FoundUser[]
  readonly unavailable: readonly string[]
}

/** Says a sentence to the person. */
type Say = (kind: 'good' | 'bad', sentence: string) => void

export class KeyLog {
  readonly self: OwnDevice
  readonly #session: Session
  readonly #own: Registered
  readonly #origin: string
  readonly #client: LogClient
  readonly #contacts: ContactDevices
  readonly #shared: ReturnType<typeof sharedPeople>
  readonly #say: Say

  constructor(session: Session, keys: PublishedKeys, own: Registered, privateKey: CryptoKey, say: Say) {
    this.#session = session
    this.#say = say
    this.#own = own
    this.#origin = keys.vkey.split('+', 1)[0]!
    this.self = { name: `${own.userId}_${own.deviceId}`, point: pointOf(own.publicKey), privateKey }
    const store = checkpointStore(own.userId, keys.vkey)
    this.#client = new LogClient({
      ...keys,
      url: location.origin,
      store,
      fetch: (url, init) => fetch(url, init),
    })
    this.#contacts = new ContactDevices(this.#client, knownUserStore(own.userId, keys.vkey))
    this.#shared = sharedPeople(own.userId)
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
   * Every device of these people that is theirs. Throws, with a sentence for people, when one of them is not to be seen, has
   * none, or the log does not prove them: then nothing is to be encrypted.
   */
  async devicesOf(userIds: readonly string[]): Promise<readonly Peer[]> {
    const peers: Peer[] = []
    for (const user of await this.#named(userIds)) {
      const { userId, displayName } = user
      if (user.devices.length === 0)
        throw new Error(`${displayName} has no device yet, so nobody can be called.`)
      const { basis, devices } = (await this.#verified(user)).verdict
      for (const { deviceId, keyAlgorithm, publicKey, publicKeyHash } of devices) {
        if (keyAlgorithm !== 'P-256') {
          throw new Error(
            `${displayName} has a device with an ${keyAlgorithm} key, which this page does not speak.`,
          )
        }
        const name = `${userId}_${deviceId}`
        const isListed = basis === 'list'
        peers.push({ name, point: pointOf(publicKey), userId, deviceId, publicKeyHash, isListed })
      }
    }
    return peers
  }

  /** One device of a user, likewise. */
  async deviceOf(userId: string, deviceId: string): Promise<Peer> {
    const found = (await this.devicesOf([userId])).find(device => device.deviceId === deviceId)
    if (found === undefined) throw new Error('That device is not one of theirs any more.')
    return found
  }

  /**
   * The person's own devices and list, once the log proves it; without a list where they never had one. Throws, with a
   * sentence, where it does not hold.
   */
  async ownList(): Promise<{ readonly user: OwnUser; readonly list: DeviceList | undefined }> {
    for (let left = TRIES; ; left--) {
      const { users } = await this.#session.request<{ users: readonly [OwnUser] }>('GET', 'user/publicKeys')
      const [user] = users
      const verdict = await this.#contacts.verify(user)
      // Another device of theirs may have signed a list since the answer: the next answer has it.
      if (verdict.kind === 'refused' && left > 1) continue
      if (verdict.kind !== 'verified')
        throw new Error(`Your device list does not hold, so nothing is done with it: ${verdict.detail}.`)
      const { events, list } = verdict
      if (events.some(({ kind }) => kind === 'reset')) {
        this.#say(
          'bad',
          'Your devices were started over on a new one. If that was not you, somebody else is signed in as you.',
        )
      }
      await this.#contacts.shown(user.userId, events)
      const report = await this.#contacts.checkOwnList(user.userId)
      if (report.kind === 'alert' && left > 1) continue
      if (report.kind === 'alert')
        this.#say('bad', 'The log holds a device list in your name that none of your devices has made.')
      return { user, list }
    }
  }

  /** The digits that this person and a contact compare. Throws, with a sentence, where either of them has no list. */
  async codeWith(userId: string): Promise<string> {
    const people = await this.#named([this.#own.userId, userId])
    const hashes = people.map(async named => {
      const { user } = await this.#verified(named)
      if (user.deviceList === undefined)
        throw new Error(`${user.displayName} has no device list yet, so there is nothing to compare.`)
      return { userId: BigInt(user.userId), listHash: await hashOf(user.deviceList) }
    })
    const [one, other] = await Promise.all(hashes)
    return comparisonCode(one!, other!)
  }

  /** Names this person in a share link's fragment; empty while they have no list. */
  async shareFragment(): Promise<string> {
    const [named] = await this.#named([this.#own.userId])
    if (named?.deviceList === undefined) return ''
    // Else a server could have this person vouch for a list that is not theirs.
    const { user } = await this.#verified(named)
    if (user.deviceList === undefined) return ''
    const person = { userId: BigInt(user.userId), listHash: await hashOf(user.deviceList) }
    return shareFragment(person, await this.#client.highestCheckpoint())
  }

  /**
   * The person that a link's fragment names, if it names one. Compares the log with the one that they were shown.
   * Throws, with a sentence, for a damaged link.
   */
  async openShared(fragment: string): Promise<SharedPerson | undefined> {
    const shared = readShareFragment(fragment, this.#origin)
    if (shared?.note !== undefined) await this.compare(shared.note, 'Whoever made the link')
    return shared
  }

  /** The person of a link is to be verified against it when their devices are first used. */
  expect(person: SharedPerson): void {
    this.#shared.put(person)
  }

  /** The octets to seal for the device: behind the key stands the newest checkpoint, where the device's app can read it. */
  async withCheckpoint(key: Bytes, { isListed }: Peer): Promise<Bytes> {
    if (!isListed) return key
    return Uint8Array.from(withCheckpoint(key, await this.#client.highestCheckpoint()))
  }

  /** The key in what a device has sealed; its checkpoint is compared with the newest one here. */
  async readKey(opened: Bytes): Promise<Bytes> {
    const { callKey, note } = readCallKey(opened, this.#origin)
    if (note !== undefined) await this.compare(note, 'The other person in the call')
    return Uint8Array.from(callKey)
  }

  /** Says so where the log has shown another person another tree. */
  async compare(note: string, who: string): Promise<void> {
    const verdict = await this.#client.compareWith(note)
    if (verdict.kind !== 'refused' || verdict.evidence === undefined) return
    this.#say(
      'bad',
      `${who} was shown another key log than you (${verdict.check}): one of you may be given false keys. Keep this page’s storage: it has both signed checkpoints.`,
    )
  }

  async #named(userIds: readonly string[]) {
    if (userIds.length === 0) return []
    const path = `user/publicKeys?userIds=${userIds.join(',')}`
    const { users, unavailable } = await this.#session.request<KeysReply>('GET', path)
    if (unavailable.length > 0)
      throw new Error('The keys of somebody here are not to be seen: are you contacts?')
    return users
  }

  /** Says what has changed. Throws, with a sentence, for devices that are not to be used. */
  async #verified(
    named: FoundUser,
  ): Promise<{ readonly user: FoundUser; readonly verdict: VerifiedDevices }> {
    const { userId, displayName } = named
    let user = named
    let verdict = await this.#judge(user)
    for (let left = TRIES; verdict.kind === 'refused' && left > 1; left--) {
      // They may have signed a list since the answer: the next answer has it.
      user = (await this.#named([userId]))[0] ?? user
      verdict = await this.#judge(user)
    }
    if (verdict.kind !== 'verified') throw new Error(sentenceOfFailure(displayName, verdict))
    this.#shared.delete(userId)
    if (userId !== this.#own.userId) {
      for (const sentence of sentencesOf(displayName, verdict.events)) this.#say('bad', sentence)
      await this.#contacts.shown(userId, verdict.events)
    }
    return { user, verdict }
  }

  #judge(user: FoundUser): Promise<VerifiedDevices | Refusal | Unanswered> {
    const shared = this.#shared.get(user.userId)
    return shared === undefined ? this.#contacts.verify(user) : this.#contacts.verifyShared(user, shared)
  }
}

/** SHA-256 of what is base64, as base64. */
async function hashOf(base64: string): Promise<string> {
  return base64FromBytes(new Uint8Array(await crypto.subtle.digest('SHA-256', bytesFromBase64(base64))))
}

function sentenceOfFailure(displayName: string, verdict: Refusal | Unanswered): string {
  if (verdict.kind === 'unanswered')
    return `The key log could not be asked for the key of ${displayName}: ${verdict.detail}.`
  return `The key of ${displayName} does not verify in the key log (${verdict.check}): ${verdict.detail}. Nothing is encrypted for it.`
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

/** How often an answer is judged that a new list may have overtaken. */
const TRIES = 3
