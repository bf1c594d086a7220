/**
 * How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. With each key goes
 * the set of devices that it is sealed for, and who opens it looks at all of them.
 */

import { Recent } from '../../recent.ts'
import { CallsignError, hasCode } from '../callsign-error.ts'
import { type KeyBinding, type KeyHolder, openCallKey, sealCallKey } from '../devices/call-key.ts'
import type { KeyLog, PeerDevice } from '../devices/key-log.ts'
import {
  changedSet,
  hashOfSet,
  type KeyMember,
  keyMembersOf,
  readKeyMembers,
  type SetHints,
} from '../devices/key-members.ts'
import { isEqual } from '../devices/octets.ts'
import type { Session } from '../session/session.ts'
import type { CallParticipant } from '../wire.ts'
import type { KeyAsk } from './call.ts'
import type { Sender } from './device.ts'
import { nameOf } from './key-rules.ts'

/** A key sealed for a set of devices. */
export interface SealedKeys {
  /** By `<userId>_<deviceId>`; none for this device. */
  readonly texts: Readonly<Record<string, string>>
  /** The set, base64. */
  readonly keyMembers: string
  /** Names of the devices in the set, this one among them. */
  readonly members: readonly string[]
  /** Names of devices in the call that can't be proved now. */
  readonly without: readonly string[]
}

export interface OpenedKey extends Sender, Pick<SealedKeys, 'keyMembers' | 'members'> {
  readonly key: Uint8Array
  /** Names of the user's own devices in the set, but this one, that no device list names. */
  readonly unlisted: readonly string[]
  /** By the sender's clock. */
  readonly sealedAtMs: number
}

/** Whom a key is sealed for: the devices in the call, all of those who still ring, and all of these users. */
export interface Receivers {
  readonly participants: readonly Pick<CallParticipant, 'userId' | 'deviceId' | 'state'>[]
  readonly userIds?: readonly string[]
}

/** Its methods reject as those of `KeyLog`. */
export class KeyExchange {
  readonly #keyLog: KeyLog
  readonly #session: Session
  /** By call: the devices that the log has proved since this device is in it. */
  readonly #proved = new Recent<string, Map<string, PeerDevice>>(CALLS_MAX)

  constructor(keyLog: KeyLog, session: Session) {
    this.#keyLog = keyLog
    this.#session = session
  }

  /** For every device of these users. */
  async sealForUsers(key: Uint8Array, userIds: readonly string[], binding: KeyBinding): Promise<SealedKeys> {
    return this.#sealed(key, await this.#proveCallees(userIds, binding), binding, [])
  }

  /**
   * For a call that goes on. Devices that were proved before are not asked for again, and one in the call that can't be proved is
   * left out. Rejects where a user of `userIds` can't be proved.
   */
  async sealForCall(
    key: Uint8Array,
    { participants, userIds = [] }: Receivers,
    binding: KeyBinding,
  ): Promise<SealedKeys> {
    const invited = await this.#proveCallees(userIds, binding)
    const others = participants.filter(
      ({ userId }) => userId !== this.#keyLog.self.userId && !userIds.includes(userId),
    )
    const joined = others.filter(({ state }) => state === 'joined')
    const ringing = others.filter(({ state }) => RINGING.includes(state))
    const known = () =>
      this.#known(binding).filter(
        one =>
          joined.some(each => nameOf(each) === one.name) ||
          ringing.some(({ userId }) => userId === one.userId),
      )
    const isMissing = (one: (typeof others)[number]) =>
      !known().some(({ name, userId }) =>
        one.state === 'joined' ? name === nameOf(one) : userId === one.userId,
      )
    await this.#proveSoon(
      [...joined, ...ringing].filter(isMissing).map(({ userId }) => userId),
      binding,
    )
    const without = joined.filter(isMissing).map(nameOf)
    return this.#sealed(key, [...invited, ...known()], binding, without)
  }

  /** A key that this device holds once more, for the devices of its set that are in the call. */
  async sealAgain(
    key: Uint8Array,
    keyMembers: string,
    participants: Receivers['participants'],
    binding: KeyBinding,
  ): Promise<SealedKeys> {
    const members = readKeyMembers(keyMembers)
    const joined = participants.filter(({ state }) => state === 'joined').map(nameOf)
    const { self } = this.#keyLog
    const receivers = members.filter(({ name }) => joined.includes(name) && name !== self.name)
    const devices = await this.#provedAs(receivers, binding)
    const texts = await this.#texts(key, devices, hashOfSet(keyMembers), binding)
    return { texts, keyMembers, members: members.map(({ name }) => name), without: [] }
  }

  /** A held key for one device. Rejects with `KEYS_REFUSED` where it has another key than the one of this hash. */
  async sealForDevice(
    key: Uint8Array,
    keyMembers: string,
    { userId, deviceId, publicKeyHash }: Pick<KeyAsk, 'userId' | 'deviceId' | 'publicKeyHash'>,
    binding: KeyBinding,
  ): Promise<string> {
    const device = await this.#keyLog.deviceOf(userId, deviceId)
    if (device.publicKeyHash === publicKeyHash) return this.#seal(key, device, hashOfSet(keyMembers), binding)
    const detail = `device ${deviceId} asks for a call's key with another key than its own`
    throw await this.#keyLog.refuse(userId, { kind: 'refused', check: 'vrfHash', detail })
  }

  /**
   * Opens a key that one of these has sealed, tried in this order. Rejects with `CALL_KEY_INVALID` when none of them has, and with
   * `KEY_MEMBERS_REFUSED` where the set does not hold that goes with it.
   */
  async open(
    sealed: string,
    senders: readonly Sender[],
    binding: KeyBinding,
    hints: SetHints,
  ): Promise<OpenedKey> {
    let refusal: unknown = new CallsignError('CALL_KEY_INVALID', 'Nobody in the call has sealed its key.')
    for (const sender of senders) {
      const opened = await this.#open(sealed, sender, binding).catch((error: unknown) => {
        // A sender whose keys could not be read now may have sealed it.
        if (hasCode(refusal, 'CALL_KEY_INVALID')) refusal = error
      })
      if (opened === undefined) continue
      const { from, callKey, setHash, sealedAtMs } = opened
      const keyMembers = await this.#setOf(setHash, binding, hints)
      const members = readKeyMembers(keyMembers)
      await this.#checkMembers(members, from, binding)
      const { userId, deviceId } = from
      const unlisted = this.#known(binding).filter(one => !one.isListed && this.#isOwnIn(members, one))
      return {
        ...{ key: callKey, userId, deviceId, keyMembers, sealedAtMs },
        members: members.map(({ name }) => name),
        unlisted: unlisted.map(({ name }) => name),
      }
    }
    throw refusal
  }

  async #open(sealed: string, { userId, deviceId }: Sender, binding: KeyBinding) {
    const known = this.#known(binding).find(one => one.userId === userId && one.deviceId === deviceId)
    const from = known ?? (await this.#keyLog.deviceOf(userId, deviceId))
    const opened = await openCallKey(sealed, from, this.#keyLog.self, binding)
    return { from, ...(await this.#keyLog.unpacked(opened, userId)) }
  }

  /** The set with this hash. */
  async #setOf(
    setHash: Uint8Array,
    { callId, epoch }: KeyBinding,
    { sets, change }: SetHints,
  ): Promise<string> {
    const isIt = (keyMembers: string | undefined): keyMembers is string =>
      keyMembers !== undefined && trying(() => isEqual(hashOfSet(keyMembers), setHash)) === true
    for (const set of sets) {
      const after = change && trying(() => changedSet(set, change))
      const found = [set, after].find(isIt)
      if (found !== undefined) return found
    }
    const params = { callId, epoch: String(epoch) }
    const { keyMembers } = await this.#session.request(
      'GET call/{callId}/key-members',
      undefined,
      params as never,
    )
    if (isIt(keyMembers)) return keyMembers
    throw membersRefused('the server names other devices than the key is sealed for')
  }

  /** Whether each is a device that the log proves, with this key. */
  async #checkMembers(members: readonly KeyMember[], from: KeyHolder, binding: KeyBinding): Promise<void> {
    for (const holder of [this.#keyLog.self, from])
      if (!members.some(one => isSame(one, holder)))
        throw membersRefused(`device ${holder.name} is not among those that it is sealed for`, holder.name)
    this.#remember([from as PeerDevice], binding)
    await this.#provedAs(
      members.filter(({ name }) => name !== this.#keyLog.self.name),
      binding,
    )
  }

  /** The devices of a set, proved. Rejects with `KEY_MEMBERS_REFUSED` unless each has the key that the set has of it. */
  async #provedAs(members: readonly KeyMember[], binding: KeyBinding): Promise<readonly PeerDevice[]> {
    const find = (member: KeyMember) => this.#known(binding).find(one => isSame(member, one))
    const unknown = members.filter(one => find(one) === undefined)
    if (unknown.length > 0)
      await this.#prove(
        unknown.map(({ userId }) => userId),
        binding,
      )
    return members.map(member => {
      const device = find(member)
      if (device !== undefined) return device
      throw membersRefused(`device ${member.name} is not one that the log proves`, member.name)
    })
  }

  #isOwnIn(members: readonly KeyMember[], { name, userId }: PeerDevice): boolean {
    const { self } = this.#keyLog
    return userId === self.userId && name !== self.name && members.some(one => one.name === name)
  }

  /** Keys are hidden from those alone whose calls the server refuses: such a user hears what the server would say. */
  #proveCallees(userIds: readonly string[], binding: KeyBinding): Promise<readonly PeerDevice[]> {
    return this.#prove(userIds, binding).catch(error => {
      const calleeIds: unknown = hasCode(error, 'KEYS_UNAVAILABLE') && error.members.hiddenIds
      if (!Array.isArray(calleeIds) || calleeIds.length === 0) throw error
      const sentence = 'A callee is no contact and takes calls from contacts only: become contacts first.'
      throw new CallsignError('CALLEE_NOT_CONTACT', sentence, { members: { calleeIds }, cause: error })
    })
  }

  async #prove(userIds: readonly string[], binding: KeyBinding): Promise<readonly PeerDevice[]> {
    const devices = await this.#keyLog.devicesOf([...new Set(userIds)])
    const others = devices.filter(({ name }) => name !== this.#keyLog.self.name)
    this.#remember(others, binding)
    return others
  }

  /** Each by itself, and no longer than a call can wait for its key. */
  async #proveSoon(userIds: readonly string[], binding: KeyBinding): Promise<void> {
    if (userIds.length === 0) return
    const all = Promise.allSettled([...new Set(userIds)].map(userId => this.#prove([userId], binding)))
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise(resolve => {
      timer = setTimeout(resolve, PROVE_WAIT_MS)
    })
    await Promise.race([all, late])
    clearTimeout(timer)
  }

  async #sealed(
    key: Uint8Array,
    devices: readonly PeerDevice[],
    binding: KeyBinding,
    without: readonly string[],
  ): Promise<SealedKeys> {
    const { self } = this.#keyLog
    const keyMembers = keyMembersOf([self, ...devices])
    const texts = await this.#texts(key, devices, hashOfSet(keyMembers), binding)
    return { texts, keyMembers, members: [self, ...devices].map(({ name }) => name), without }
  }

  async #texts(key: Uint8Array, devices: readonly PeerDevice[], setHash: Uint8Array, binding: KeyBinding) {
    const others = devices.filter(({ name }) => name !== this.#keyLog.self.name)
    const entryOf = async (to: PeerDevice) => [to.name, await this.#seal(key, to, setHash, binding)] as const
    return Object.fromEntries(await Promise.all(others.map(entryOf)))
  }

  async #seal(
    callKey: Uint8Array,
    to: PeerDevice,
    setHash: Uint8Array,
    binding: KeyBinding,
  ): Promise<string> {
    const content = await this.#keyLog.packed({ callKey, setHash, sealedAtMs: Date.now() })
    return sealCallKey(content, this.#keyLog.self, to, binding)
  }

  #known({ callId }: KeyBinding): readonly PeerDevice[] {
    return [...(this.#proved.get(callId)?.values() ?? [])]
  }

  #remember(devices: readonly PeerDevice[], { callId }: KeyBinding): void {
    const known = this.#proved.get(callId) ?? new Map<string, PeerDevice>()
    for (const device of devices) known.set(device.name, device)
    this.#proved.set(callId, known)
  }
}

function isSame(member: KeyMember, holder: KeyHolder): boolean {
  return member.name === holder.name && isEqual(member.keyHash, holder.keyHash)
}

/** Undefined for what a server has named that is no set. */
function trying<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function membersRefused(detail: string, name?: string): CallsignError {
  const members = name === undefined ? {} : { name }
  return new CallsignError('KEY_MEMBERS_REFUSED', `The call’s key is not taken: ${detail}.`, { members })
}

const RINGING: readonly string[] = ['invited', 'ringing']
const PROVE_WAIT_MS = 3_000
/** A device is in one call, and a few more ring. */
const CALLS_MAX = 16
