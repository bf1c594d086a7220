/**
 * Checks a device's keys for other devices (contract 4.4). The server can't read a key; it can check that each
 * required device gets one, and that each looks encrypted.
 */

import { hash } from 'node:crypto'
import type { FieldError } from '../../errors.ts'
import { type DeviceId, parseUint64, type UserId } from '../ids.ts'
import type { CallDeviceRef } from './call.ts'
import { type CallRefused, refused, type SentKeyMap } from './call-command.ts'
import type { KeySlice } from './call-notice.ts'

/** A map of keys whose entries are of the right form. */
export interface KeyMap {
  readonly kind: 'key-map'
  readonly slices: readonly KeySlice[]
  readonly slicesOf: ReadonlyMap<UserId, readonly KeySlice[]>
}

/**
 * The slices of a map whose entries are of the right form; they may still be for the wrong devices. Refused with
 * `PLAINTEXT_KEY_SUSPECTED` when a value has the length of an unencrypted key, else with `VALIDATION_FAILED`; both
 * name the entries.
 */
export function readKeyMap(map: SentKeyMap): KeyMap | CallRefused {
  const names = Object.keys(map)
  if (names.length > ENTRIES_MAX) {
    return invalid([fault('', 'TOO_MANY', `not more than ${ENTRIES_MAX} entries`)])
  }
  const slices: KeySlice[] = []
  const slicesOf = new Map<UserId, KeySlice[]>()
  const faults: FieldError[] = []
  const values = new Set<string>()
  for (const name of names) {
    const encryptedAESKey = map[name]!
    const device = parseKeyMapName(name)
    const isCopy = values.has(encryptedAESKey)
    const problem = isCopy ? COPIED : faultOfKey(encryptedAESKey)
    values.add(encryptedAESKey)
    if (device === undefined) faults.push(fault('', 'FORMAT', 'an entry is not named <userId>_<deviceId>'))
    else if (problem !== undefined) faults.push(fault(`/${name}`, problem.code, problem.detail))
    else {
      const { userId, deviceId } = device
      const slice = { userId, deviceId, encryptedAESKey }
      slices.push(slice)
      const known = slicesOf.get(userId)
      if (known === undefined) slicesOf.set(userId, [slice])
      else known.push(slice)
    }
  }
  return faults.length === 0 ? { kind: 'key-map', slices, slicesOf } : invalid(faults)
}

/** Why this text is no encrypted key, under the pointer of its own; undefined when it may be one. */
export function refusalOfKey(encryptedAESKey: string, pointer: string): CallRefused | undefined {
  const problem = faultOfKey(encryptedAESKey)
  return problem === undefined ? undefined : invalid([{ pointer, ...problem }])
}

/**
 * Why the slices do not match exactly these devices; the optional ones may be absent (contract 4.4, 3). The refusal names
 * the seq of each device list in `listSeqs`.
 */
export function refusalOfDevices(
  keys: KeyMap,
  required: readonly CallDeviceRef[],
  optional: readonly CallDeviceRef[],
  listSeqs: ReadonlyMap<UserId, number> = new Map(),
): CallRefused | undefined {
  // Names take longer to write than all the rest, and are for refusals.
  if (areFor(keys, required, optional)) return undefined
  const given = new Set(keys.slices.map(keyMapName))
  const needed = new Set(required.map(keyMapName))
  const allowed = new Set([...needed, ...optional.map(keyMapName)])
  const missing = [...needed].filter(name => !given.has(name))
  const extra = [...given].filter(name => !allowed.has(name))
  if (missing.length === 0 && extra.length === 0) return undefined
  const detail = `the keys miss ${missing.length} devices and name ${extra.length} others; fetch the devices again`
  const deviceListSeqs = Object.fromEntries([...listSeqs].map(([userId, seq]) => [String(userId), seq]))
  const members = { missing, extra, ...(listSeqs.size > 0 && { deviceListSeqs }) }
  return refused('DEVICE_LIST_MISMATCH', detail, { members })
}

function areFor(
  { slices, slicesOf }: KeyMap,
  required: readonly CallDeviceRef[],
  optional: readonly CallDeviceRef[],
): boolean {
  const sliceOf = ({ userId, deviceId }: CallDeviceRef) =>
    slicesOf.get(userId)?.find(slice => slice.deviceId === deviceId)
  const meant = new Set<KeySlice>()
  for (const device of required) {
    const slice = sliceOf(device)
    if (slice === undefined) return false
    meant.add(slice)
  }
  for (const device of optional) {
    const slice = sliceOf(device)
    if (slice !== undefined) meant.add(slice)
  }
  return meant.size === slices.length
}

/** `<userId>_<deviceId>`, a device's name in a map of keys. */
export function keyMapName({ userId, deviceId }: CallDeviceRef): string {
  return `${userId}_${deviceId}`
}

/** SHA-256 of a map and of the members sent with it. Nothing else of a map is kept, since it has keys. */
export function digestOfKeys(map: SentKeyMap, saidWith: readonly (string | number | boolean)[]): Uint8Array {
  let text = JSON.stringify(saidWith)
  for (const name of Object.keys(map).sort()) {
    const key = map[name]!
    text += `${name.length} ${name}${key.length} ${key}`
  }
  return Buffer.from(hash('sha256', text, 'binary'), 'latin1')
}

function parseKeyMapName(name: string): CallDeviceRef | undefined {
  const end = name.indexOf('_')
  const userId = parseUint64(name.slice(0, Math.max(0, end)))
  const deviceId = parseUint64(name.slice(end + 1))
  if (userId === undefined || deviceId === undefined) return undefined
  return { userId: userId as UserId, deviceId: deviceId as DeviceId }
}

function faultOfKey(text: string): Omit<FieldError, 'pointer'> | undefined {
  // Before anything of its length is decoded.
  if (text.length > KEY_CHARS_MAX) return WRONG_LENGTH
  const length = DECODED.write(text, 'base64')
  if (DECODED.toString('base64', 0, length) !== text) return NOT_BASE64
  if (length === PLAIN_KEY_BYTES) return PLAINTEXT
  const isOfLength = length >= KEY_BYTES_MIN && length <= KEY_BYTES_MAX
  return isOfLength ? undefined : WRONG_LENGTH
}

function invalid(errors: readonly FieldError[]): CallRefused {
  const isPlaintext = errors.some(({ code }) => code === PLAINTEXT.code)
  return isPlaintext
    ? refused('PLAINTEXT_KEY_SUSPECTED', 'a key of 32 bytes is not encrypted', { errors })
    : refused('VALIDATION_FAILED', 'the keys break a rule', { errors })
}

/** Points to the whole map where an entry's name can't be a pointer. */
function fault(pointer: string, code: string, detail: string): FieldError {
  return { pointer: `/encryptedAESKeys${pointer}`, code, detail }
}

/** As many as 32 people have devices. */
export const ENTRIES_MAX = 320
/** A session key itself, in the clear. */
const PLAIN_KEY_BYTES = 32
/** Bare RSA-2048 has 256 bytes, HPKE on P-256 with a set and a checkpoint 262. */
const KEY_BYTES_MIN = 64
const KEY_BYTES_MAX = 1_024
const KEY_CHARS_MAX = 4 * Math.ceil(KEY_BYTES_MAX / 3)
/** Room for what one text stands for. */
const DECODED = Buffer.allocUnsafeSlow(KEY_CHARS_MAX)

const NOT_BASE64 = { code: 'FORMAT', detail: 'not canonical base64' }
const WRONG_LENGTH = {
  code: 'LENGTH',
  detail: `an encrypted key has ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`,
}
const PLAINTEXT = { code: 'PLAINTEXT', detail: 'as long as a key that nobody encrypted' }
const COPIED = { code: 'DUPLICATE', detail: 'the same as another device has' }
