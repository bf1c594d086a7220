/** Tables of devices in each of their states, whose each public key is, which device has each push token, and device lists. */

import {
  type Device,
  type DeviceInfo,
  PUSH_TOKEN_NAMES,
  type PushTokenName,
  type PushTokens,
  tokenOf,
} from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { OF_A_USER } from '../accounts/account-tables.ts'
import { HASH, ID } from '../engine/key-parts.ts'
import { idsKey, textKey, userInKey } from '../engine/keys.ts'
import {
  bytes,
  count,
  id,
  listOf,
  object,
  oneOf,
  optional,
  type RowOf,
  text,
  typed,
} from '../engine/row-form.ts'
import { type Relation, rowTable } from '../engine/table.ts'

const TOKEN_TIMES = object({
  apnsToken: optional(count),
  apnsVoipToken: optional(count),
  fcmToken: optional(count),
  webPush: optional(count),
})
const WEB_PUSH_KEYS = object({ p256dh: text, auth: text })
const WEB_PUSH = object({ endpoint: text, keys: WEB_PUSH_KEYS })
const PUSH = object({
  apnsToken: optional(text),
  apnsVoipToken: optional(text),
  apnsEnvironment: optional(oneOf('production', 'development')),
  bundleId: optional(text),
  fcmToken: optional(text),
  webPush: optional(WEB_PUSH),
  pushKey: optional(text),
  registeredAtMs: TOKEN_TIMES,
  doubtedAtMs: optional(TOKEN_TIMES),
})
const PUSH_SHAPES = [
  PUSH.shape('apnsToken', 'bundleId'),
  PUSH.shape('apnsToken', 'apnsVoipToken', 'bundleId'),
  TOKEN_TIMES.shape('apnsToken', 'apnsVoipToken'),
  PUSH.shape('fcmToken'),
  TOKEN_TIMES.shape('fcmToken'),
  PUSH.shape('webPush'),
  WEB_PUSH.shape(),
  WEB_PUSH_KEYS.shape(),
  TOKEN_TIMES.shape('webPush'),
]
const INFO = typed<DeviceInfo>(object({ platform: text }))
const KEY_ALGORITHM = oneOf('P-256', 'RSA-2048')
const DEVICE = object({
  deviceId: id<DeviceId>(),
  info: INFO,
  publicKey: text,
  keyAlgorithm: KEY_ALGORITHM,
  publicKeyIndex: count,
  publicKeyHash: text,
  push: optional(PUSH),
  createdAtMs: count,
  lastSeenAtMs: count,
  signingKey: optional(text),
  removedAtMs: optional(count),
})
const BY_DEVICE = { user: ID, device: ID }

function ownKey(key: Buffer, { deviceId }: Pick<Device, 'deviceId'>): Uint8Array {
  return idsKey(userInKey(key), deviceId)
}

function isOwner({ userId, deviceId }: Owner, key: Uint8Array): boolean {
  return Buffer.compare(idsKey(userId, deviceId), key) === 0
}

const NAMED_FOR_ITS_KEY: Relation<Pick<Device, 'publicKey'>> = {
  in: 'device-keys',
  under: (_, { publicKey }) => textKey(publicKey),
  where: isOwner,
  what: () => 'it for its public key',
}

/** Active devices, at most ten to a user, however many were removed. */
export const DEVICES = rowTable('devices', BY_DEVICE, DEVICE, {
  holds: 'an active device: public key, where it is in the log, push tokens',
  // With push tokens from the registration on, without, and with some that came later.
  shapes: [DEVICE.shape('push'), DEVICE.shape(), [...DEVICE.shape(), 'push'], ...PUSH_SHAPES],
  ownKey,
  relations: [OF_A_USER, NAMED_FOR_ITS_KEY],
  *disagreements(key, { push }, rows) {
    for (const [name, token] of tokensOf(push)) {
      if (!rows.holds<Owner>('push-tokens', tokenKey(name, token), owner => isOwner(owner, key)))
        yield `push-tokens does not name it for its ${name}`
    }
  },
  remedy: 'restore a backup, or have its user remove the device and sign in on it again',
})

export const DEVICES_REMOVED = rowTable('devices-removed', BY_DEVICE, DEVICE, {
  holds: 'a removed device, whose id is never given to another',
  ownKey,
  relations: [
    OF_A_USER,
    {
      ...NAMED_FOR_ITS_KEY,
      where: ({ userId }: Owner, key) => userId === userInKey(key),
      what: () => 'its user for its public key',
    },
  ],
  *disagreements(key, _, rows) {
    if (rows.has('devices', key)) yield 'the device is in devices too'
  },
  remedy: 'another user could register its key: restore a backup',
})

const PENDING = object({
  deviceId: id<DeviceId>(),
  sessionId: bytes(),
  info: INFO,
  publicKey: text,
  keyAlgorithm: KEY_ALGORITHM,
  push: optional(PUSH),
  startedAtMs: count,
  signingKey: optional(text),
  deviceList: optional(bytes()),
  replacesDeviceId: optional(id<DeviceId>()),
})

export const DEVICES_PENDING = rowTable('devices-pending', BY_DEVICE, PENDING, {
  holds: 'a device whose key is on its way into the log',
  shapes: [PENDING.shape('push'), PENDING.shape(), ...PUSH_SHAPES],
  ownKey,
  relations: [OF_A_USER, NAMED_FOR_ITS_KEY],
  remedy: 'the registration may not end: have the user register the device again',
})

type Owner = RowOf<typeof OWNER>
const OWNER = object({ userId: id<UserId>(), deviceId: id<DeviceId>() })

export const DEVICE_KEYS = rowTable('device-keys', { 'public key': HASH }, OWNER, {
  holds: 'whose a public key is',
  shapes: [OWNER.shape()],
  relations: [
    {
      in: ['devices', 'devices-pending', 'devices-removed'],
      under: (_, { userId, deviceId }) => idsKey(userId, deviceId),
      where: ({ publicKey }: Device, key) => textKey(publicKey).equals(key),
      what: (_, { userId, deviceId }) => `device ${userId}/${deviceId} with the key`,
    },
  ],
  remedy: 'no other user can register the key, which does no harm where nobody has it',
})

export const PUSH_TOKENS = rowTable('push-tokens', { token: HASH }, OWNER, {
  holds: 'which device has a push token',
  shapes: [OWNER.shape()],
  relations: [
    {
      in: 'devices',
      under: (_, { userId, deviceId }) => idsKey(userId, deviceId),
      where: ({ push }: Device, key) =>
        tokensOf(push).some(([name, token]) => Buffer.compare(tokenKey(name, token), key) === 0),
      what: (_, { userId, deviceId }) => `device ${userId}/${deviceId} with the token`,
    },
  ],
  remedy: 'a phone with the token can’t register it: restore a backup',
})

const LIST = object({ list: bytes() })
/** A list whose hash is in the log. */
export type LoggedDeviceList = RowOf<typeof LOGGED_LIST>
const LOGGED_LIST = object({
  list: bytes(),
  seq: count,
  /** In ascending order. Some may have been removed since. */
  deviceIds: listOf(id<DeviceId>()),
  /** The log entry that has the list's hash, and the entry's own. */
  index: count,
  vrfHash: bytes(64),
})

export const DEVICE_LISTS = rowTable('device-lists', { user: ID }, LOGGED_LIST, {
  holds: 'the newest device list, where its hash is in the log',
  relations: [
    OF_A_USER,
    {
      in: 'device-list-chains',
      under: (key, { seq }) => idsKey(userInKey(key), BigInt(seq)),
      where: (chained: RowOf<typeof LIST>, _, { list }) => Buffer.compare(chained.list, list) === 0,
    },
  ],
  remedy: 'contacts refuse the list: restore a backup, or have its user start over with a new list',
})

/** The lists between the last one of seq 0 and the newest, both included. */
export const DEVICE_LIST_CHAINS = rowTable('device-list-chains', { user: ID, seq: ID }, LIST, {
  holds: 'a device list that the newest follows, or the newest',
  relations: [OF_A_USER],
  remedy: 'contacts who were away refuse the newest list: restore a backup, or have its user start over',
})

export const DEVICE_LISTS_PENDING = rowTable('device-lists-pending', { user: ID }, LIST, {
  holds: 'a device list on its way into the log',
  relations: [OF_A_USER],
  remedy: 'the list may not be logged: have its user send it again',
})

/** A key of `push-tokens`. */
export function tokenKey(name: PushTokenName, token: string): Uint8Array {
  return textKey(`${name} ${token}`)
}

function tokensOf(push: PushTokens | undefined): (readonly [PushTokenName, string])[] {
  return PUSH_TOKEN_NAMES.flatMap(name => {
    const token = tokenOf(push, name)
    return token === undefined ? [] : [[name, token] as const]
  })
}
