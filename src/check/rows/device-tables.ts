/** Devices in each of their states, whose each public key is, which device has each push token, and device lists. */

import {
  type Device,
  type KeyOwner,
  type PendingDevice,
  PUSH_TOKEN_NAMES,
  type PushTokens,
} from '../../domain/devices/device.ts'
import { SignalError } from '../../errors.ts'
import { encodeBase64 } from '../../log/base64.ts'
import { DEVICE_LIST_SLOT, type DeviceList, deviceListHash, parseDeviceList } from '../../log/device-list.ts'
import { equalHashes } from '../../log/hash.ts'
import type {
  ChainedDeviceList,
  LoggedDeviceList,
  PendingDeviceList,
} from '../../store/devices/device-list-store.ts'
import { DEVICE_SHAPES, OWNER_SHAPES, PENDING_SHAPES, tokenKey } from '../../store/devices/device-store.ts'
import { idInKey, idsKey, textKey, userInKey } from '../../store/engine/keys.ts'
import { isOwner } from './account-tables.ts'
import { bytes, count, type Form, id, listOf, record, text } from './form.ts'
import type { StoredRows } from './stored-rows.ts'
import { byBeginning, byIds, type TableCheck, tableCheck } from './table-check.ts'

const KEY = [16]
const USER_KEY = [8]
const HASH = [32]
const push = record(
  { registeredAtMs: count },
  { apnsToken: text, apnsVoipToken: text, apnsEnvironment: text, bundleId: text, fcmToken: text },
)
const device: Form = record(
  {
    deviceId: id,
    info: record({ platform: text }),
    publicKey: text,
    keyAlgorithm: text,
    publicKeyIndex: count,
    publicKeyHash: text,
    createdAtMs: count,
    lastSeenAtMs: count,
  },
  { signingKey: text, push, removedAtMs: count },
)
const owner = record({ userId: id, deviceId: id })

export const DEVICE_TABLES: Readonly<Record<string, TableCheck>> = {
  devices: tableCheck<Device>({
    shapes: DEVICE_SHAPES,
    key: KEY,
    keyAs: byIds,
    form: device,
    *disagreements(key, value, rows) {
      const { deviceId, publicKey, push } = value
      const userId = userInKey(key)
      yield* strangenessOf(key, value, rows)
      if (!isOwner(rows, 'device-keys', textKey(publicKey), { userId, deviceId })) {
        yield 'device-keys does not name it for its public key'
      }
      for (const [name, token] of tokensOf(push)) {
        const isNamed = isOwner(rows, 'push-tokens', tokenKey(name, token), { userId, deviceId })
        if (!isNamed) yield `push-tokens does not name it for its ${name}`
      }
    },
    remedy: 'restore a backup, or have its user remove the device and sign in on it again',
  }),
  'devices-removed': tableCheck<Device>({
    key: KEY,
    keyAs: byIds,
    form: device,
    *disagreements(key, value, rows) {
      yield* strangenessOf(key, value, rows)
      if (rows.has('devices', key)) yield 'the device is in devices too'
      if (!isOwner(rows, 'device-keys', textKey(value.publicKey), { userId: userInKey(key) })) {
        yield 'device-keys does not name its user for its public key'
      }
    },
    remedy: 'another user could register its key: restore a backup',
  }),
  'devices-pending': tableCheck<PendingDevice>({
    shapes: PENDING_SHAPES,
    key: KEY,
    keyAs: byIds,
    form: record(
      {
        deviceId: id,
        sessionId: bytes(),
        info: record({ platform: text }),
        publicKey: text,
        keyAlgorithm: text,
        startedAtMs: count,
      },
      { signingKey: text, deviceList: bytes(), push, replacesDeviceId: id },
    ),
    *disagreements(key, { deviceId, publicKey }, rows) {
      const userId = userInKey(key)
      if (deviceId !== idInKey(key, 1)) yield `it says that it is device ${deviceId}`
      if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
      if (!isOwner(rows, 'device-keys', textKey(publicKey), { userId, deviceId })) {
        yield 'device-keys does not name it for its public key'
      }
    },
    remedy: 'the registration may not end: have the user register the device again',
  }),
  'device-keys': tableCheck<KeyOwner>({
    shapes: OWNER_SHAPES,
    key: HASH,
    keyAs: byBeginning,
    form: owner,
    *disagreements(key, { userId, deviceId }, rows) {
      const isKey = ({ publicKey }: { readonly publicKey: string }) => textKey(publicKey).equals(key)
      const tables = ['devices', 'devices-pending', 'devices-removed']
      if (!tables.some(table => rows.holds(table, idsKey(userId, deviceId), isKey))) {
        yield `device ${userId}/${deviceId} does not have the key`
      }
    },
    remedy: 'no other user can register the key, which does no harm where nobody has it',
  }),
  'push-tokens': tableCheck<KeyOwner>({
    shapes: OWNER_SHAPES,
    key: HASH,
    keyAs: byBeginning,
    form: owner,
    *disagreements(key, { userId, deviceId }, rows) {
      const hasToken = rows.holds<Device>('devices', idsKey(userId, deviceId), ({ push }) =>
        tokensOf(push).some(([name, token]) => Buffer.from(tokenKey(name, token)).equals(key)),
      )
      if (!hasToken) yield `device ${userId}/${deviceId} does not have the token`
    },
    remedy: 'a phone with the token can’t register it: restore a backup',
  }),
  'device-lists': tableCheck<LoggedDeviceList>({
    key: USER_KEY,
    keyAs: byIds,
    form: record({ list: bytes(), seq: count, deviceIds: listOf(id), index: count, vrfHash: bytes(64) }),
    *disagreements(key, { list: octets, seq, deviceIds, index, vrfHash }, rows) {
      const userId = userInKey(key)
      const list = yield* listIn(key, octets, rows)
      if (list !== undefined) {
        const isSame = deviceIds.join() === list.devices.map(({ deviceId }) => deviceId).join()
        if (seq !== list.seq || !isSame) yield 'its seq and device ids are not those of its list'
      }
      const logged = rows.loggedKey(index)
      const isLogged =
        logged?.userId === userId &&
        logged.deviceId === DEVICE_LIST_SLOT &&
        logged.publicKey === encodeBase64(deviceListHash(octets)) &&
        Buffer.from(logged.vrfHash).equals(vrfHash)
      if (!isLogged) yield `entry ${index} of the log is not its hash`
      const isChained = rows.holds<ChainedDeviceList>(
        'device-list-chains',
        idsKey(userId, BigInt(seq)),
        chained => equalHashes(chained.list, octets),
      )
      if (!isChained) yield 'device-list-chains does not have it'
    },
    remedy: 'contacts refuse the list: restore a backup, or have its user start over with a new list',
  }),
  'device-list-chains': tableCheck<ChainedDeviceList>({
    key: KEY,
    keyAs: byIds,
    form: record({ list: bytes() }),
    *disagreements(key, { list: octets }, rows) {
      const [userId, seq] = [userInKey(key), idInKey(key, 1)]
      const list = yield* listIn(key, octets, rows)
      if (list === undefined) return
      if (BigInt(list.seq) !== seq) yield `its key says seq ${seq}, its list ${list.seq}`
      const follows = (next: ChainedDeviceList) =>
        equalHashes(deviceListHash(octets), parseDeviceList(next.list).previousHash)
      const isNewest = rows.holds<LoggedDeviceList>('device-lists', idsKey(userId), newest =>
        equalHashes(newest.list, octets),
      )
      if (!isNewest && !rows.holds('device-list-chains', idsKey(userId, seq + 1n), follows))
        yield 'it is not the newest list, and no list follows it'
    },
    remedy: 'contacts who were away refuse the newest list: restore a backup, or have its user start over',
  }),
  'device-lists-pending': tableCheck<PendingDeviceList>({
    key: USER_KEY,
    keyAs: byIds,
    form: record({ list: bytes() }),
    *disagreements(key, { list }, rows) {
      yield* listIn(key, list, rows)
    },
    remedy: 'the list may not be logged: have its user send it again',
  }),
}

/** The list of a row, undefined where it is none. */
function* listIn(
  key: Buffer,
  octets: Uint8Array,
  rows: StoredRows,
): Generator<string, DeviceList | undefined> {
  const userId = userInKey(key)
  if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
  try {
    const list = parseDeviceList(octets)
    if (list.userId !== userId) yield `its list is of user ${list.userId}`
    return list
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    yield 'its list is not a device list'
    return undefined
  }
}

function* strangenessOf(key: Buffer, value: Device, rows: StoredRows): Iterable<string> {
  const { deviceId, publicKey, publicKeyHash, publicKeyIndex } = value
  const userId = userInKey(key)
  if (deviceId !== idInKey(key, 1)) yield `it says that it is device ${deviceId}`
  if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
  const logged = rows.loggedKey(publicKeyIndex)
  const isLogged =
    logged?.userId === userId &&
    logged.deviceId === deviceId &&
    logged.publicKey === publicKey &&
    Buffer.from(logged.vrfHash).equals(Buffer.from(publicKeyHash, 'base64'))
  if (!isLogged) yield `entry ${publicKeyIndex} of the log is not its key`
}

function tokensOf(push: PushTokens | undefined) {
  return PUSH_TOKEN_NAMES.flatMap(name => {
    const token = push?.[name]
    return token === undefined ? [] : [[name, token] as const]
  })
}
