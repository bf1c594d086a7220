/** Devices and device lists: their keys and hashes must equal those in the log. */

import type { Device } from '../../domain/devices/device.ts'
import { SignalError } from '../../errors.ts'
import { encodeBase64 } from '../../log/base64.ts'
import { DEVICE_LIST_SLOT, type DeviceList, deviceListHash, parseDeviceList } from '../../log/device-list.ts'
import { equalHashes } from '../../log/hash.ts'
import type { LoggedDeviceList } from '../../store/devices/device-tables.ts'
import { idInKey, idsKey, userInKey } from '../../store/engine/keys.ts'
import type { StoredRows } from './stored-rows.ts'

export function* unloggedKey(key: Buffer, value: Device, rows: StoredRows): Iterable<string> {
  const { deviceId, publicKey, publicKeyHash, publicKeyIndex } = value
  const logged = rows.loggedKey(publicKeyIndex)
  const isLogged =
    logged?.userId === userInKey(key) &&
    logged.deviceId === deviceId &&
    logged.publicKey === publicKey &&
    Buffer.from(logged.vrfHash).equals(Buffer.from(publicKeyHash, 'base64'))
  if (!isLogged) yield `entry ${publicKeyIndex} of the log is not its key`
}

export function* unloggedList(key: Buffer, value: LoggedDeviceList, rows: StoredRows): Iterable<string> {
  const { list: octets, seq, deviceIds, index, vrfHash } = value
  const list = yield* listIn(key, octets)
  if (list !== undefined) {
    const isSame = deviceIds.join() === list.devices.map(({ deviceId }) => deviceId).join()
    if (seq !== list.seq || !isSame) yield 'its seq and device ids are not those of its list'
  }
  const logged = rows.loggedKey(index)
  const isLogged =
    logged?.userId === userInKey(key) &&
    logged.deviceId === DEVICE_LIST_SLOT &&
    logged.publicKey === encodeBase64(deviceListHash(octets)) &&
    Buffer.from(logged.vrfHash).equals(vrfHash)
  if (!isLogged) yield `entry ${index} of the log is not its hash`
}

export function* brokenChain(key: Buffer, { list: octets }: StoredList, rows: StoredRows): Iterable<string> {
  const [userId, seq] = [userInKey(key), idInKey(key, 1)]
  const list = yield* listIn(key, octets)
  if (list === undefined) return
  if (BigInt(list.seq) !== seq) yield `its key says seq ${seq}, its list ${list.seq}`
  const follows = (next: StoredList) =>
    equalHashes(deviceListHash(octets), parseDeviceList(next.list).previousHash)
  const isNewest = rows.holds<LoggedDeviceList>('device-lists', idsKey(userId), newest =>
    equalHashes(newest.list, octets),
  )
  if (!isNewest && !rows.holds('device-list-chains', idsKey(userId, seq + 1n), follows))
    yield 'it is not the newest list, and no list follows it'
}

export function* strangeList(key: Buffer, { list }: StoredList): Iterable<string> {
  yield* listIn(key, list)
}

/** The list of a row; undefined for other octets. */
function* listIn(key: Buffer, octets: Uint8Array): Generator<string, DeviceList | undefined> {
  try {
    const list = parseDeviceList(octets)
    if (list.userId !== userInKey(key)) yield `its list is of user ${list.userId}`
    return list
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    yield 'its list is not a device list'
    return undefined
  }
}

interface StoredList {
  readonly list: Uint8Array
}
