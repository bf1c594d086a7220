/**
 * This user's view of the key transparency log: the devices of other people, only those that the log proves, and the user's
 * own key and device list.
 */

import {
  type CallKeyContent,
  ContactDevices,
  comparisonCode,
  type DeviceEvent,
  type DeviceList,
  type Fetch,
  type KeyQuestion,
  LogClient,
  type LogClientOptions,
  type OwnKeysReport,
  otherKeyOf,
  type PublishedKeys,
  type PublishedPolicy,
  packCallKey,
  type Refusal,
  readCallKey,
  readShareFragment,
  type SharedPerson,
  shareFragment,
  type Unanswered,
  type VerifiedDevices,
} from '../../client/client.ts'
import { SignalError } from '../../errors.ts'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { deviceListHash } from '../../log/device-list.ts'
import { CallsignError } from '../callsign-error.ts'
import type { ReplyOf } from '../session/operations.ts'
import type { Server } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import { type AppStorage, storageCorrupt } from '../storage/storage.ts'
import { type KeyHolder, keyHolder, keyUnsupported, type OwnKeyHolder } from './call-key.ts'
import type { RegisteredDevice } from './device-registration.ts'
import { type Evidence, LogStores } from './log-stores.ts'

export interface KeyLogDeps {
  readonly session: Session
  readonly storage: AppStorage
  readonly device: RegisteredDevice
  /** It has the log, too. */
  readonly server: Pick<Server, 'url'>
  /** The keys or the policy that the app knows the log by. Checkpoints are kept in `storage`. */
  readonly log: (PublishedKeys | PublishedPolicy) &
    Pick<LogClientOptions, 'fetch' | 'completeness' | 'maxIndexAgeMs'>
  readonly onEvent: (event: KeyEvent) => void
  readonly onReset: OnReset
}

/** `go-on` encrypts for new keys without a question, after the event: for bots. */
export type OnReset = 'ask' | 'go-on'

/**
 * What people are to hear of; it comes before the promise settles.
 *
 * - `refused`: the server or the log has named keys of this user that do not hold, and nothing is sealed for them. With
 *   `evidence`, the log has shown two trees
 * - `own-key-alert`: the log holds a key in this device's name that it has not made, or lacks its own
 * - `own-list-alert`: the log holds a device list that none of the user's devices has made
 * - `left-out`: a call goes on without this user, as it was asked to: nothing can be sealed for this device of theirs
 * - the rest: another user has other devices than before (`DeviceEvent`)
 */
export type KeyEvent =
  | (DeviceEvent & { readonly userId: string })
  | (Refusal & { readonly userId: string })
  | { readonly kind: 'left-out'; readonly userId: string; readonly deviceId: string }
  | {
      readonly kind: 'own-key-alert' | 'own-list-alert'
      readonly userId: string
      readonly report: OwnKeysReport
    }

/** A device whose key the log proves. */
export interface PeerDevice extends KeyHolder {
  readonly publicKeyHash: string
  /** Whether its user's device list names it. */
  readonly isListed: boolean
}

/** A user as the server names them. */
export type PublishedUser = ReplyOf<'GET user/publicKeys'>['users'][number]

interface VerifiedUser {
  readonly user: PublishedUser
  readonly verdict: VerifiedDevices
}

export interface OwnUser {
  readonly user: PublishedUser
  /** Undefined where the user never had one. */
  readonly list: DeviceList | undefined
}

/**
 * Its methods reject with `KEYS_REFUSED` for what does not hold, after an event; with `KEYS_UNAVAILABLE` for keys that
 * this user may not see or that don't exist; and with `LOG_UNANSWERED` where the log could not be asked, or a cache before it
 * is late.
 */
export class KeyLog {
  readonly self: OwnKeyHolder
  readonly #deps: KeyLogDeps
  readonly #stores: LogStores
  readonly #client: LogClient
  readonly #contacts: ContactDevices

  /** Throws as `parseLogKeys` for keys or a policy of another form. */
  constructor(deps: KeyLogDeps) {
    const { server, session, storage, device, log } = deps
    const { userId, deviceId, keys } = device
    this.self = { ...keyHolder(userId, deviceId, keys.publicKey), keys }
    this.#deps = deps
    this.#stores = new LogStores(storage, userId, log)
    const fetch = withToken(log.fetch ?? globalThis.fetch, `${server.url}/api/`, session)
    this.#client = new LogClient({ ...log, fetch, url: server.url, store: this.#stores.checkpoints })
    this.#contacts = new ContactDevices(this.#client, this.#stores.knownUsers, async (id, after) => {
      const params = { userId: id, ...(after !== undefined && { after }) }
      return (await deps.session.request('GET user/device-lists', undefined, params)).lists
    })
  }

  /** Proofs that the log has shown different trees: worth showing to auditors. */
  evidence(): Promise<readonly Evidence[]> {
    return this.#stores.evidence()
  }

  /** Whether the log holds this device's own key, and no other in its name. Call it at each start and once a day. */
  async checkOwn(): Promise<OwnKeysReport> {
    const { userId, deviceId, publicKeyHash, keys } = this.#deps.device
    const claim = { userId, deviceId, vrfHash: publicKeyHash, publicKeys: [keys.publicKey] }
    const report = await this.#held(userId, this.#client.checkOwnKeys(claim))
    if (report.kind === 'alert') this.#deps.onEvent({ kind: 'own-key-alert', userId, report })
    // Twice the same key: other people's apps refuse it all the same.
    else if (report.complete === true && report.entries.length > 1)
      throw await this.refuse(userId, otherKeyOf(deviceId))
    return report
  }

  /**
   * All devices of these users, in order to encrypt for them alone. Rejects also with `KEY_UNSUPPORTED` for an RSA key of a
   * user without a device list; and with `KEYS_RESET` for the first of them with new keys, until `acceptKeys`. The own user is never asked
   * about.
   */
  async devicesOf(userIds: readonly string[]): Promise<readonly PeerDevice[]> {
    const peers: PeerDevice[] = []
    for (const user of await this.#published(userIds)) {
      const { userId } = user
      const { basis, devices, question } = (await this.#verified(user)).verdict
      if (question !== undefined && this.#isAsked(userId)) throw keysReset(userId, question)
      if (devices.length === 0) throw unavailable([userId], 'A user has no device yet.')
      for (const { deviceId, publicKey, publicKeyHash } of devices) {
        const holder = keyHolder(userId, deviceId, publicKey)
        // An app that knows of device lists opens the form for RSA keys too, which takes the sender's signing key in them.
        if (holder.key.kind === 'RSA-2048' && basis !== 'list')
          throw keyUnsupported(holder, 'is one of RSA, and stands in no device list')
        peers.push({ ...holder, publicKeyHash, isListed: basis === 'list' })
      }
    }
    return peers
  }

  /**
   * The person in front of the screen goes on with these keys of the user, and no later ones. Rejects with `KEYS_RESET`
   * where other ones are asked about.
   */
  async acceptKeys(userId: string, listHash: string): Promise<void> {
    const question = await checked(() => this.#contacts.accept(userId, listHash))
    if (question !== undefined) throw keysReset(userId, question)
  }

  async deviceOf(userId: string, deviceId: string): Promise<PeerDevice> {
    const found = (await this.devicesOf([userId])).find(device => device.deviceId === deviceId)
    if (found === undefined) throw unavailable([userId], 'The device is not one of theirs any more.')
    return found
  }

  /** The user's own devices, listed or not, and their list, which the log proves. */
  async ownUser(): Promise<OwnUser> {
    const { userId } = this.#deps.device
    for (let left = TRIES; ; left--) {
      const [published] = await this.#published([userId])
      const { user, verdict } = await this.#verified(published!)
      const report = await this.#held(userId, this.#contacts.checkOwnList(userId))
      // Another device of theirs may have signed a list since.
      if (report.kind === 'alert' && left > 1) continue
      if (report.kind === 'alert') this.#deps.onEvent({ kind: 'own-list-alert', userId, report })
      return { user, list: verdict.list }
    }
  }

  /** Sixty digits, the same for both users. Rejects with `KEYS_UNAVAILABLE` where one of them has no device list. */
  async codeWith(userId: string): Promise<string> {
    const own = await this.#listed(this.#deps.device.userId)
    return comparisonCode(own, await this.#listed(userId))
  }

  /** Names this user in a share link's fragment. Rejects with `KEYS_UNAVAILABLE` while they have no device list. */
  async shareFragment(): Promise<string> {
    // Else a server could have this user vouch for a list that is not theirs.
    const own = await this.#listed(this.#deps.device.userId)
    const log = await this.#client.highestCheckpoint()
    return shareFragment(own, log, await this.#client.highestIndexCheckpoint())
  }

  /**
   * The person that a link's fragment names; undefined for a link without one. Compares the log with the one that they were
   * shown. Rejects with `MALFORMED` for a fragment that is damaged, or of another log.
   */
  async openShared(fragment: string): Promise<SharedPerson | undefined> {
    if (fragment === '' || fragment === '#') return undefined
    let shared: SharedPerson | undefined
    try {
      shared = readShareFragment(fragment, this.#stores.origin)
    } catch (cause) {
      throw damaged(cause)
    }
    if (shared === undefined) throw damaged()
    for (const note of [shared.note, shared.indexNote]) {
      if (note === undefined) continue
      const refusal = await this.#compare(`${shared.userId}`, note)
      if (refusal !== undefined && FOREIGN.includes(refusal.check)) throw damaged(refusal)
    }
    return shared
  }

  /** The person of a link is verified against it when their devices are first used. */
  expect(person: SharedPerson): Promise<void> {
    return this.#stores.putExpected(person)
  }

  /** The octets to seal: this user's newest checkpoint goes with them. */
  async packed(content: CallKeyContent): Promise<Uint8Array> {
    return packCallKey(content, await checked(() => this.#client.highestCheckpoint()))
  }

  /** Takes apart what a device of this user has sealed, and compares its checkpoint with the newest one here. */
  async unpacked(opened: Uint8Array, userId: string): Promise<CallKeyContent> {
    const { note, ...content } = readCallKey(opened, this.#stores.origin)
    if (note !== undefined) await this.#compare(userId, note)
    return content
  }

  /** Reports that what the server said of the user does not hold: the error to throw. */
  async refuse(userId: string, refusal: Refusal): Promise<CallsignError> {
    const { check, detail, evidence } = refusal
    if (evidence !== undefined) await this.#stores.addEvidence(evidence)
    this.#deps.onEvent({ ...refusal, userId })
    return new CallsignError('KEYS_REFUSED', `The keys do not hold: ${detail}.`, {
      members: { userId, check },
    })
  }

  /** Reports it where the log has shown another user another tree. The key is good all the same. Returns the refusal. */
  async #compare(userId: string, note: string): Promise<Refusal | undefined> {
    const verdict = await checked(() => this.#client.compareWith(note))
    if (verdict.kind !== 'refused') return undefined
    // A note that proves nothing is that user's doing.
    if (verdict.evidence !== undefined) await this.refuse(userId, verdict)
    return verdict
  }

  #isAsked(userId: string): boolean {
    return this.#deps.onReset === 'ask' && userId !== this.#deps.device.userId
  }

  /** In the order of the ids. Users that were not asked for are left out. */
  #published(userIds: readonly string[]): Promise<readonly PublishedUser[]> {
    return checked(async () => {
      if (userIds.length === 0) return []
      const params = { userIds: userIds.join(',') }
      const answer = await this.#deps.session.request('GET user/publicKeys', undefined, params)
      const { users, unavailable: hidden } = answer
      const missing = userIds.filter(userId => !users.some(user => user.userId === userId))
      const hiddenIds = missing.filter(userId => hidden?.includes(userId))
      if (missing.length > 0) throw unavailable(missing, 'The keys of a user are not to be seen.', hiddenIds)
      return userIds.map(userId => users.find(user => user.userId === userId)!)
    })
  }

  /** Reports changes, once the devices are verified. */
  async #verified(published: PublishedUser): Promise<VerifiedUser> {
    const { userId } = published
    let user = published
    let judged = await this.#judge(user)
    for (let left = TRIES; judged.kind === 'refused' && left > 1; left--) {
      // They may have signed a list since the answer: the next answer has it.
      user = (await this.#published([userId]))[0]!
      judged = await this.#judge(user)
    }
    const verdict = await this.#held(userId, judged)
    const { deviceId, userId: ownUserId } = this.#deps.device
    const isOwn = userId === ownUserId
    const isOwnDoing = isOwn && (await this.#hasSigned(verdict))
    const { events } = verdict
    for (const event of events) {
      // `OwnDeviceList` has the devices that wait for the list, and this one's place.
      const isKnown = isOwn && (event.kind === 'unlisted' || event.deviceId === deviceId)
      if (!isOwnDoing && !isKnown) this.#deps.onEvent({ ...event, userId })
    }
    if (events.length > 0) await checked(() => this.#contacts.shown(userId, events))
    return { user, verdict }
  }

  /** Whether this device has signed the user's own list. Throws where the list has another signing key for it. */
  async #hasSigned({ list }: VerifiedDevices): Promise<boolean> {
    const { userId, deviceId, keys } = this.#deps.device
    const own = list?.devices.find(device => `${device.deviceId}` === deviceId)
    if (own !== undefined && encodeBase64(own.signingKey) !== keys.signingKey) {
      const detail = 'the list has another signing key for this device'
      throw await this.refuse(userId, { kind: 'refused', check: 'deviceList', detail })
    }
    return own !== undefined && list?.signerDeviceId === own.deviceId
  }

  async #judge(user: PublishedUser): Promise<VerifiedDevices | Refusal | Unanswered> {
    const expected = await this.#stores.expected(user.userId)
    if (expected === undefined) return checked(() => this.#contacts.verify(user))
    const verdict = await checked(() => this.#contacts.verifyShared(user, expected))
    if (verdict.kind === 'verified') await this.#stores.forgetExpected(user.userId)
    return verdict
  }

  async #listed(userId: string) {
    const [published] = await this.#published([userId])
    const { deviceList } = (await this.#verified(published!)).user
    if (deviceList === undefined) throw unavailable([userId], 'A user has no device list yet.')
    return { userId: BigInt(userId), listHash: encodeBase64(deviceListHash(decodeBase64(deviceList))) }
  }

  /** The answer of the log, unless it does not hold or did not come. */
  async #held<Answer extends { readonly kind: string }>(
    userId: string,
    asked: Answer | Refusal | Unanswered | Promise<Answer | Refusal | Unanswered>,
  ): Promise<Answer> {
    const answer = await checked(async () => asked)
    if (answer.kind === 'refused') throw await this.refuse(userId, answer as Refusal)
    if (answer.kind !== 'unanswered') return answer as Answer
    const { kind: _, detail, ...members } = answer as Unanswered
    throw new CallsignError('LOG_UNANSWERED', `The key log could not be asked: ${detail}.`, { members })
  }
}

/**
 * Sends the access token with lookups, whose paths begin so: the server then counts this user and not everybody behind their
 * address. Files of the log are asked for without one, as auditors do; a cache or a mirror may answer them.
 */
function withToken(fetch: Fetch, lookups: string, session: Session): Fetch {
  return async (url, init) => {
    // Without one they are answered, too.
    const token = url.startsWith(lookups) ? await session.accessToken().catch(() => undefined) : undefined
    if (token === undefined) return fetch(url, init)
    return fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })
  }
}

/** The log's client throws a `SignalError` where a stored value is not what it has put there. */
async function checked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof CallsignError) throw error
    if (error instanceof SignalError) throw storageCorrupt('checkpoint', error)
    throw new CallsignError('ANSWER_INVALID', 'The server has named no valid devices.', { cause: error })
  }
}

function keysReset(userId: string, { kind, listHash }: KeyQuestion): CallsignError {
  const sentence = 'The keys of a contact are new, and nothing known vouches for them. Accept them to go on.'
  return new CallsignError('KEYS_RESET', sentence, { members: { userId, listHash, kind } })
}

function damaged(cause?: unknown): CallsignError {
  return new CallsignError('MALFORMED', 'The link is damaged, or of another server.', { cause })
}

/** `hiddenIds` are users whose keys the server does not show to this one. */
function unavailable(
  userIds: readonly string[],
  sentence: string,
  hiddenIds: readonly string[] = [],
): CallsignError {
  return new CallsignError('KEYS_UNAVAILABLE', sentence, { members: { userIds, hiddenIds } })
}

/** A note is none of this log. */
const FOREIGN: readonly string[] = ['checkpoint', 'origin', 'signature']
/** How often an answer is judged that a new list may have overtaken. */
const TRIES = 3
