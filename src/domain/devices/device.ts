/**
 * A device: one installation with one key, logged under `<userId>_<deviceId>` (contract 2.5). Decides on
 * registrations and push tokens.
 */

import type { DeviceId, UserId } from '../ids.ts'
import type { KeyAlgorithm } from './public-key.ts'
import type { WebPushSubscription } from './web-push.ts'

export interface DeviceInfo {
  readonly platform: string
  readonly model?: string
  readonly osVersion?: string
  readonly appVersion?: string
  readonly name?: string
  readonly locale?: string
  readonly timeZone?: string
}

/** Where pushes to the device go. */
export interface PushTokens {
  readonly apnsToken?: string
  readonly apnsVoipToken?: string
  readonly apnsEnvironment?: 'production' | 'development'
  readonly bundleId?: string
  readonly fcmToken?: string
  /** A browser's. Its endpoint is the token. */
  readonly webPush?: WebPushSubscription
  /** Base64 of 32 octets: what Apple and Google get is sealed with it, so that only the device can read it. */
  readonly pushKey?: string
  /** When the app last sent each token: a provider's word that one is gone counts only if it is newer. */
  readonly registeredAtMs: TokenTimes
  /** Since when no host of Apple's knows a token. It is tried on: the fault may be ours. */
  readonly doubtedAtMs?: TokenTimes
}

/** Milliseconds since 1970. */
export type TokenTimes = Readonly<Partial<Record<PushTokenName, number>>>

/** Which of a device's tokens. */
export type PushTokenName = 'apnsToken' | 'apnsVoipToken' | 'fcmToken' | 'webPush'

export const PUSH_TOKEN_NAMES: readonly PushTokenName[] = [
  'apnsToken',
  'apnsVoipToken',
  'fcmToken',
  'webPush',
]

/** The text by which a provider knows the device. */
export function tokenOf(push: PushTokens | undefined, name: PushTokenName): string | undefined {
  return name === 'webPush' ? push?.webPush?.endpoint : push?.[name]
}

export interface Device {
  readonly deviceId: DeviceId
  readonly info: DeviceInfo
  /** Base64 of the exact bytes that were sent and logged. */
  readonly publicKey: string
  readonly keyAlgorithm: KeyAlgorithm
  /** The index of the key's log entry. */
  readonly publicKeyIndex: number
  /** The entry's vrfHash, base64 of 64 bytes. */
  readonly publicKeyHash: string
  /** Base64 of the P-256 point that it signs device lists with. Devices of apps without device lists have none. */
  readonly signingKey?: string
  readonly push?: PushTokens
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** Set when the device was removed: its row stays, since its id is never given to another. */
  readonly removedAtMs?: number
}

/**
 * A device that waits for the log to take its key. Its id is fixed, so that the key is logged once however this ends.
 */
export interface PendingDevice {
  readonly deviceId: DeviceId
  /** The session that asked, which the device will be bound to. */
  readonly sessionId: Uint8Array
  readonly info: DeviceInfo
  readonly publicKey: string
  readonly keyAlgorithm: KeyAlgorithm
  readonly signingKey?: string
  /** The user's first device list, which came along. */
  readonly deviceList?: Uint8Array
  readonly push?: PushTokens
  readonly replacesDeviceId?: DeviceId
  readonly startedAtMs: number
}

/** A device that lost push tokens to another: a token leads to one device. */
export interface PushLoss {
  readonly userId: UserId
  readonly device: Device
  readonly tokens: readonly PushTokenName[]
}

/** The owner of a public key: a device, active or removed, or a registration under way. */
export interface KeyOwner {
  readonly userId: UserId
  readonly deviceId: DeviceId
}

/** The facts for a key's registration. */
export interface RegistrationFacts {
  readonly userId: UserId
  /** As it was sent. */
  readonly publicKey: string
  /** The same key in its other encoding. */
  readonly otherEncoding: string
  readonly owner: KeyOwner | undefined
  /** The owner of the same key in its other encoding. */
  readonly otherEncodingOwner: KeyOwner | undefined
  /** The user's active devices. */
  readonly devices: readonly Device[]
  /** Those that the user is registering. */
  readonly pending: readonly PendingDevice[]
  readonly replacesDeviceId: DeviceId | undefined
}

export type RegistrationDecision =
  /** The user has this device: a reinstall, or a request that is repeated. */
  | { readonly kind: 'known'; readonly device: Device }
  /** To be registered; `begun` is an earlier, unfinished attempt with the key, beside `pendingOthers` with other keys. */
  | { readonly kind: 'register'; readonly begun: PendingDevice | undefined; readonly pendingOthers: number }
  | { readonly kind: 'refused'; readonly code: 'KEY_IN_USE' | 'DEVICE_NOT_FOUND' | 'DEVICE_LIMIT' }

/**
 * Decides on a key's registration (contract 2.5). One key is one device, in whichever encoding it is sent. The log
 * and the device keep the encoding that was sent first.
 *
 * Choice: the key of a device that its user removed is taken again, as a new device. Removal ends a device and not a
 * key: an app that removed itself and signs in again still holds that key, and would be locked out by a refusal. The
 * old id stays retired; the key gets an entry of its own under the new one. To other users it stays refused.
 *
 * Choice: a session that has a device may register another key without naming the old device as replaced. The old one
 * then stays, since the app did not say that it is gone.
 */
export function decideRegistration(facts: RegistrationFacts): RegistrationDecision {
  const { userId, owner, otherEncodingOwner, devices, pending, replacesDeviceId } = facts
  const holder = owner ?? otherEncodingOwner
  if (holder !== undefined && holder.userId !== userId) return { kind: 'refused', code: 'KEY_IN_USE' }
  const known = withKey(devices, facts)
  // When an earlier attempt did the work, the replaced device is gone already.
  if (known !== undefined) return { kind: 'known', device: known }
  if (replacesDeviceId !== undefined && !devices.some(({ deviceId }) => deviceId === replacesDeviceId)) {
    return { kind: 'refused', code: 'DEVICE_NOT_FOUND' }
  }
  const begun = withKey(pending, facts)
  const others = pending.filter(each => each !== begun)
  if (devicesAfter(devices, others, replacesDeviceId) > DEVICES_MAX) {
    return { kind: 'refused', code: 'DEVICE_LIMIT' }
  }
  return { kind: 'register', begun, pendingOthers: others.length }
}

/** The one that has the key, in either encoding. */
export function withKey<Each extends { readonly publicKey: string }>(
  each: readonly Each[],
  { publicKey, otherEncoding }: Pick<RegistrationFacts, 'publicKey' | 'otherEncoding'>,
): Each | undefined {
  return each.find(one => one.publicKey === publicKey || one.publicKey === otherEncoding)
}

/** How many devices the user will have once this one and all that are pending are registered. */
function devicesAfter(
  devices: readonly Device[],
  pending: readonly PendingDevice[],
  replacesDeviceId: DeviceId | undefined,
): number {
  const replaced = new Set([replacesDeviceId, ...pending.map(({ replacesDeviceId }) => replacesDeviceId)])
  return devices.filter(({ deviceId }) => !replaced.has(deviceId)).length + pending.length + 1
}

/** A push provider's answer, as far as it is about a token. */
export interface TokenVerdict {
  readonly name: PushTokenName
  readonly token: string
  /** `unknown`: no host of Apple's knows it. Tokens of another app or key look the same, so it is not gone at once. */
  readonly verdict: 'good' | 'unknown' | 'gone'
  /** Since when this is so, milliseconds since 1970. */
  readonly atMs: number
}

/** Push tokens as a device sends them. An empty text takes the token back, and of a subscription an empty endpoint. */
export type SentPushTokens = Omit<PushTokens, 'registeredAtMs' | 'doubtedAtMs'>

/**
 * A device's tokens after it sent some: what it left out stays, since apps learn of their tokens one at a time.
 * Undefined when nothing is left.
 */
export function pushTokensAfter(
  before: PushTokens | undefined,
  sent: SentPushTokens,
  nowMs: number,
): PushTokens | undefined {
  const given = Object.entries(sent).map(([name, value]) => [
    name,
    isHex(name) ? `${value}`.toLowerCase() : value,
  ])
  if (given.length === 0) return before
  const merged = { ...before, ...Object.fromEntries(given) }
  const kept = Object.entries(merged).filter(([, value]) => value !== '')
  const { webPush, ...others } = Object.fromEntries(kept) as SentPushTokens
  const tokens = webPush === undefined || webPush.endpoint === '' ? others : { ...others, webPush }
  const isSent = (name: PushTokenName) => sent[name] !== undefined
  return pushTokensOf(
    tokens,
    name => (isSent(name) ? nowMs : before?.registeredAtMs[name]),
    name => (isSent(name) ? undefined : before?.doubtedAtMs?.[name]),
  )
}

/** The tokens but one; undefined when nothing else is left. */
export function withoutToken(push: PushTokens, name: PushTokenName): PushTokens | undefined {
  const { [name]: _, ...others } = push
  return pushTokensOf(
    others,
    each => push.registeredAtMs[each],
    each => push.doubtedAtMs?.[each],
  )
}

/** The tokens after a provider's answer about one, the same object where it changes nothing; undefined when nothing is left. */
export function pushTokensJudged(push: PushTokens, judged: TokenVerdict): PushTokens | undefined {
  const { name, token, verdict, atMs } = judged
  const { [name]: registeredAtMs = 0 } = push.registeredAtMs
  if (tokenOf(push, name) !== token || registeredAtMs >= atMs) return push
  const { [name]: doubtedAtMs } = push.doubtedAtMs ?? {}
  const isConfirmed = doubtedAtMs !== undefined && atMs - doubtedAtMs >= DOUBT_MS
  if (verdict === 'gone' || (verdict === 'unknown' && isConfirmed)) return withoutToken(push, name)
  if ((verdict === 'good') === (doubtedAtMs === undefined)) return push
  const doubtMs = verdict === 'good' ? undefined : atMs
  return pushTokensOf(
    push,
    each => push.registeredAtMs[each],
    each => (each === name ? doubtMs : push.doubtedAtMs?.[each]),
  )
}

/** The device's name for people. */
export function deviceName({ name, model, platform }: DeviceInfo): string {
  return name ?? model ?? platform
}

/** Two spellings of a token of Apple's are one token. */
function isHex(name: string): boolean {
  return name === 'apnsToken' || name === 'apnsVoipToken'
}

type TimeOf = (name: PushTokenName) => number | undefined

/**
 * `sent` with the times of its tokens. Undefined when it has none, and no key: that stays for the token to come, whose pushes
 * would else be open.
 */
function pushTokensOf(sent: SentPushTokens, registeredOf: TimeOf, doubtOf: TimeOf): PushTokens | undefined {
  const names = PUSH_TOKEN_NAMES.filter(name => sent[name] !== undefined)
  if (names.length === 0 && sent.pushKey === undefined) return undefined
  const doubtedAtMs = timesOf(names, doubtOf)
  const push = { ...sent, registeredAtMs: timesOf(names, registeredOf), doubtedAtMs }
  const { doubtedAtMs: _, ...undoubted } = push
  return Object.keys(doubtedAtMs).length === 0 ? undoubted : push
}

function timesOf(names: readonly PushTokenName[], timeOf: TimeOf): TokenTimes {
  return Object.fromEntries(
    names.flatMap(name => {
      const timeMs = timeOf(name)
      return timeMs === undefined ? [] : [[name, timeMs]]
    }),
  )
}

/** A token that is unknown for so long is gone: an operator's mistake was mended by then. */
const DOUBT_MS = 86_400_000
/** Active devices of a user (contract 8); Signal has six. */
export const DEVICES_MAX = 10
