/** Tables of devices in each of their states, whose each public key is, which device has each push token, and device lists. */

import {
  type Device,
  type DeviceInfo,
  PUSH_TOKEN_NAMES,
  type PushTokenName,
  type PushTokens,
} from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { HASH, ID } from '../engine/key-parts.ts'
import { idInKey, idsKey, textKey, userInKey } from '../engine/keys.ts'
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
import { OF_A_USER, type Relation, rowTable } from '../engine/table.ts'

const PUSH = object({
  apnsToken: optional(text),
  apnsVoipToken: optional(text),
  apnsEnvironment: optional(oneOf('production', 'development')),
  bundleId: optional(text),
  fcmToken: optional(text),
  registeredAtMs: count,
})
const PUSH_SHAPES = [PUSH.shape('apnsToken', 'bundleId'), PUSH.shape('fcmToken')]
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

/** Whether a row of `device-keys` or `push-tokens` names the device of a key. */
function isOwner({ userId, deviceId }: RowOf<typeof OWNER>, key: Uint8Array): boolean {
  return userId === userInKey(key) && deviceId === idInKey(key, 1)
}

const NAMED_FOR_ITS_KEY: Relation<{ readonly publicKey: string }> = {
  in: 'device-keys',
  under: (_, { publicKey }) => textKey(publicKey),
  where: isOwner,
  otherwise: 'device-keys does not name it for its public key',
}

/** Active devices, at most ten to a user, however many were removed. */
export const DEVICES = rowTable({
  name: 'devices',
  subject: 'devices',
  holds: 'an active device: public key, where it is in the log, push tokens',
  key: { user: ID, device: ID },
  row: DEVICE,
  // With push tokens from the registration on, without, and with some that came later.
  shapes: [DEVICE.shape('push'), DEVICE.shape(), [...DEVICE.shape(), 'push'], ...PUSH_SHAPES],
  relations: [OF_A_USER, NAMED_FOR_ITS_KEY],
  *disagreements(key, { deviceId, push }, rows) {
    if (deviceId !== idInKey(key, 1)) yield `it says that it is device ${deviceId}`
    for (const [name, token] of tokensOf(push)) {
      const isNamed = rows.holds<RowOf<typeof OWNER>>('push-tokens', tokenKey(name, token), owner =>
        isOwner(owner, key),
      )
      if (!isNamed) yield `push-tokens does not name it for its ${name}`
    }
  },
  remedy: 'restore a backup, or have its user remove the device and sign in on it again',
})

export const DEVICES_REMOVED = rowTable({
  name: 'devices-removed',
  subject: 'devices',
  holds: 'a removed device, whose id is never given to another',
  key: { user: ID, device: ID },
  row: DEVICE,
  relations: [
    OF_A_USER,
    {
      in: 'device-keys',
      under: (_, { publicKey }) => textKey(publicKey),
      where: ({ userId }: RowOf<typeof OWNER>, key) => userId === userInKey(key),
      otherwise: 'device-keys does not name its user for its public key',
    },
  ],
  *disagreements(key, { deviceId }, rows) {
    if (deviceId !== idInKey(key, 1)) yield `it says that it is device ${deviceId}`
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

export const DEVICES_PENDING = rowTable({
  name: 'devices-pending',
  subject: 'devices',
  holds: 'a device whose key is on its way into the log',
  key: { user: ID, device: ID },
  row: PENDING,
  shapes: [PENDING.shape('push'), PENDING.shape(), ...PUSH_SHAPES],
  relations: [OF_A_USER, NAMED_FOR_ITS_KEY],
  *disagreements(key, { deviceId }) {
    if (deviceId !== idInKey(key, 1)) yield `it says that it is device ${deviceId}`
  },
  remedy: 'the registration may not end: have the user register the device again',
})

const OWNER = object({ userId: id<UserId>(), deviceId: id<DeviceId>() })

export const DEVICE_KEYS = rowTable({
  name: 'device-keys',
  subject: 'devices',
  holds: 'whose a public key is',
  key: { 'public key': HASH },
  row: OWNER,
  shapes: [OWNER.shape()],
  relations: [
    {
      in: ['devices', 'devices-pending', 'devices-removed'],
      under: (_, { userId, deviceId }) => idsKey(userId, deviceId),
      where: ({ publicKey }: Pick<Device, 'publicKey'>, key) => textKey(publicKey).equals(key),
      otherwise: (_, { userId, deviceId }) => `device ${userId}/${deviceId} does not have the key`,
    },
  ],
  remedy: 'no other user can register the key, which does no harm where nobody has it',
})

export const PUSH_TOKENS = rowTable({
  name: 'push-tokens',
  subject: 'devices',
  holds: 'which device has a push token',
  key: { token: HASH },
  row: OWNER,
  shapes: [OWNER.shape()],
  relations: [
    {
      in: 'devices',
      under: (_, { userId, deviceId }) => idsKey(userId, deviceId),
      where: ({ push }: Device, key) =>
        tokensOf(push).some(([name, token]) => Buffer.compare(tokenKey(name, token), key) === 0),
      otherwise: (_, { userId, deviceId }) => `device ${userId}/${deviceId} does not have the token`,
    },
  ],
  remedy: 'a phone with the token can’t register it: restore a backup',
})

/** A list whose hash is in the log. */
export type LoggedDeviceList = RowOf<typeof LOGGED_LIST>
const LOGGED_LIST = object({
  list: bytes(),
  seq: count,
  /** In ascending order. Some may have been removed since. */
  deviceIds: listOf(id<DeviceId>()),
  /** The index of the log entry that has the list's hash. */
  index: count,
  /** The entry's hash. */
  vrfHash: bytes(64),
})

export const DEVICE_LISTS = rowTable({
  name: 'device-lists',
  subject: 'devices',
  holds: 'the newest device list, where its hash is in the log',
  key: { user: ID },
  row: LOGGED_LIST,
  relations: [
    OF_A_USER,
    {
      in: 'device-list-chains',
      under: (key, { seq }) => idsKey(userInKey(key), BigInt(seq)),
      where: (chained: RowOf<typeof LIST>, _, { list }) => Buffer.compare(chained.list, list) === 0,
      otherwise: 'device-list-chains does not have it',
    },
  ],
  remedy: 'contacts refuse the list: restore a backup, or have its user start over with a new list',
})

const LIST = object({ list: bytes() })

/** The lists between the last one of seq 0 and the newest, both included. */
export const DEVICE_LIST_CHAINS = rowTable({
  name: 'device-list-chains',
  subject: 'devices',
  holds: 'a device list that the newest follows, or the newest',
  key: { user: ID, seq: ID },
  row: LIST,
  relations: [OF_A_USER],
  remedy: 'contacts who were away refuse the newest list: restore a backup, or have its user start over',
})

export const DEVICE_LISTS_PENDING = rowTable({
  name: 'device-lists-pending',
  subject: 'devices',
  holds: 'a device list on its way into the log',
  key: { user: ID },
  row: LIST,
  relations: [OF_A_USER],
  remedy: 'the list may not be logged: have its user send it again',
})

export const DEVICE_TABLES = [
  DEVICES,
  DEVICES_REMOVED,
  DEVICES_PENDING,
  DEVICE_KEYS,
  PUSH_TOKENS,
  DEVICE_LISTS,
  DEVICE_LIST_CHAINS,
  DEVICE_LISTS_PENDING,
]

/** A key of `push-tokens`. */
export function tokenKey(name: PushTokenName, token: string): Uint8Array {
  return textKey(`${name} ${token}`)
}

function tokensOf(push: PushTokens | undefined): (readonly [PushTokenName, string])[] {
  return PUSH_TOKEN_NAMES.flatMap(name => {
    const token = push?.[name]
    return token === undefined ? [] : [[name, token] as const]
  })
}
