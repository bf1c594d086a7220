/** An app's memory of a person whose devices it encrypts for, and the news when they change. */
import { encodeBase64, sha256 } from '#primitives'

/**
 * - `added-by-list`: a device, or another key of one, that a device of the list before has signed for
 * - `removed`: it is not in the list any more; nothing is encrypted for it
 * - `reset`: the list is not signed by any device of the list before: the person has started over, or someone else is at work
 * - `unlisted`: the server named a device that the list does not: nothing is encrypted for it
 * - `added`, `replaced`: a device, or another key of one, that no list vouches for
 */
export interface DeviceEvent {
  readonly kind: 'added-by-list' | 'removed' | 'reset' | 'unlisted' | 'added' | 'replaced'
  /** All devices are meant where it is left out. */
  readonly deviceId?: string
}

/**
 * A change of a person's keys that nothing known before vouches for. Encrypt for them once `accept` was called with its hash.
 *
 * - `reset`: the event of that name
 * - `first-list`: the person had no list before, and no key that is known has signed this one
 * - `added`, `replaced`: the events of those names, of a person without a list
 */
export interface KeyQuestion {
  readonly kind: 'reset' | 'first-list' | 'added' | 'replaced'
  /** `deviceListHash` of the newest list; without a list a hash of all devices and keys. Base64. */
  readonly listHash: string
}

/** The app's memory of a person: plain JSON. */
export interface KnownUser {
  readonly userId: string
  readonly devices: readonly KnownDevice[]
  readonly list?: KnownList
  /** Left out once it was accepted. */
  readonly question?: KeyQuestion
  /** Events that the app has not shown yet. */
  readonly events: readonly DeviceEvent[]
}

export interface KnownDevice {
  readonly deviceId: string
  /** SHA-256 of the public key, base64. */
  readonly keyHash: string
}

export interface KnownList {
  /** Base64. */
  readonly list: string
  readonly vrfHash: string
  /** The leaf that holds its hash. */
  readonly index: number
  /** The first list since this app knows the person, or since they have started over. */
  readonly since: { readonly index: number; readonly seq: number }
}

/** Where the app keeps what it knows. `get` may answer `null` or `undefined` for nothing. */
export interface KnownUserStore {
  get(userId: string): KnownUser | null | undefined | Promise<KnownUser | null | undefined>
  put(known: KnownUser): unknown
}

/** A question that is open stays so for the keys that came since. */
export function questionAfter(
  known: KnownUser | undefined,
  asked: KeyQuestion['kind'] | undefined,
  listHash: string,
): { readonly question?: KeyQuestion } {
  const kind = asked ?? known?.question?.kind
  return kind === undefined ? {} : { question: { kind, listHash } }
}

/** Names the devices of a person without a list, and their keys, in base64 of SHA-256. */
export function unlistedDevicesHash(userId: string, devices: readonly KnownDevice[]): string {
  const ascending = [...devices].sort((one, other) =>
    BigInt(one.deviceId) < BigInt(other.deviceId) ? -1 : 1,
  )
  const lines = ascending.map(({ deviceId, keyHash }) => `${deviceId} ${keyHash}\n`)
  const text = `callsign unlisted devices v1\n${userId}\n${lines.join('')}`
  return encodeBase64(sha256(Uint8Array.from(text, character => character.charCodeAt(0))))
}

export function changesOf(
  before: readonly KnownDevice[],
  now: readonly KnownDevice[],
  added: DeviceEvent['kind'],
  replaced: DeviceEvent['kind'],
): DeviceEvent[] {
  const keyOf = (devices: readonly KnownDevice[], deviceId: string) =>
    devices.find(each => each.deviceId === deviceId)?.keyHash
  const events: DeviceEvent[] = []
  for (const { deviceId, keyHash } of now) {
    const known = keyOf(before, deviceId)
    if (known === undefined) events.push({ kind: added, deviceId })
    else if (known !== keyHash) events.push({ kind: replaced, deviceId })
  }
  for (const { deviceId } of before)
    if (keyOf(now, deviceId) === undefined) events.push({ kind: 'removed', deviceId })
  return events
}

export function isSame(one: DeviceEvent, other: DeviceEvent): boolean {
  return one.kind === other.kind && one.deviceId === other.deviceId
}
