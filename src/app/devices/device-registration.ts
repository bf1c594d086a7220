/** Registers this device, with the user's first device list where it is their only one. */

import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { possessionMessage, signInMessage } from '../../log/signing-messages.ts'
import { CallsignError, hasCode } from '../callsign-error.ts'
import { randomId } from '../random-id.ts'
import type { BodyOf, ReplyOf } from '../session/operations.ts'
import type { Server } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { DeviceKeys, DeviceKeysOf } from './device-keys.ts'
import { listedDevice, signedList } from './signed-list.ts'

/** Facts about the device that the app may send at each start. */
export type DeviceDetails = Pick<BodyOf<'POST register_device'>, 'deviceInfo' | 'push'>

export interface RegisteredDevice {
  readonly userId: string
  readonly deviceId: string
  /** The name of the device's entry in the log. */
  readonly publicKeyHash: string
  readonly keys: DeviceKeys
}

/** Registration of the keys of the user who is signed in. */
export class DeviceRegistration {
  readonly #server: Server
  readonly #session: Session
  readonly #storage: AppStorage
  readonly #keysOf: DeviceKeysOf

  constructor(server: Server, session: Session, storage: AppStorage, keysOf: DeviceKeysOf) {
    this.#server = server
    this.#session = session
    this.#storage = storage
    this.#keysOf = keysOf
  }

  /**
   * Registers the user's keys; the same keys again are the same device. Call it at each start and after each sign-in.
   * Rejects with `DEVICE_KEYS_LOST` where the keys of the device that was registered are gone.
   */
  async register(details: DeviceDetails = {}): Promise<RegisteredDevice> {
    const { userId, keys, known } = await this.#read()
    // Once registered, the device goes by `OwnDeviceList`: a server that left the list out would get one of this device alone.
    const deviceList = known === undefined ? await this.#firstListOf(userId, keys) : undefined
    const { deviceId, publicKeyHash } = await register(this.#session, keys, details, deviceList)
    const device: KnownDevice = { publicKey: keys.publicKey, deviceId, publicKeyHash }
    await writeStored(this.#storage, deviceKey(userId), device)
    await writeStored(this.#storage, firstListKey(userId), null)
    return { userId, deviceId, publicKeyHash, keys }
  }

  /**
   * The user's device as it was registered last, without asking the server. Undefined where it was not. Rejects with
   * `DEVICE_KEYS_LOST`.
   */
  async known(): Promise<RegisteredDevice | undefined> {
    const { userId, keys, known } = await this.#read()
    return known && { userId, deviceId: known.deviceId, publicKeyHash: known.publicKeyHash, keys }
  }

  async #read() {
    const { userId } = this.#session
    if (userId === undefined) throw new CallsignError('SIGNED_OUT', 'You are signed out.')
    const known = await readStored<KnownDevice>(this.#storage, deviceKey(userId), isKnownDevice)
    const keys = await this.#keysOf(userId)
    if (known !== undefined && known.publicKey !== keys.publicKey) {
      const sentence = 'The keys of this device are gone from its storage. Start over as a new device.'
      throw new CallsignError('DEVICE_KEYS_LOST', sentence, { members: { key: deviceKey(userId) } })
    }
    return { userId, keys, known }
  }

  /** Base64 of the list, undefined where the user has one or has other devices. */
  async #firstListOf(userId: string, keys: DeviceKeys): Promise<string | undefined> {
    const { users } = await this.#session.request('GET user/publicKeys', undefined)
    const own = users.find(user => user.userId === userId)
    if (own === undefined || own.deviceList !== undefined) return undefined
    if (own.devices.some(({ publicKey }) => publicKey !== keys.publicKey)) return undefined
    const kept = await readStored<FirstList>(this.#storage, firstListKey(userId), isFirstList)
    if (kept?.publicKey === keys.publicKey) return kept.list
    const deviceId = own.devices[0]?.deviceId ?? randomId()
    const device = listedDevice({ deviceId, publicKey: keys.publicKey, signingKey: keys.signingKey })
    const list = await signedList({ userId, deviceId, keys }, [device], this.#server.nowMs())
    const first: FirstList = { publicKey: keys.publicKey, list }
    await writeStored(this.#storage, firstListKey(userId), first)
    return list
  }
}

/** Shows a challenge of a sign-in that this is a device of the user; undefined where it was never registered as one. */
export async function deviceProof(
  storage: AppStorage,
  keysOf: DeviceKeysOf,
  userId: string | undefined,
  challenge: Uint8Array,
): Promise<BodyOf<'POST verify-login'>['device']> {
  if (userId === undefined) return undefined
  const known = await readStored<KnownDevice>(storage, deviceKey(userId), isKnownDevice)
  if (known === undefined) return undefined
  const keys = await keysOf(userId)
  // New keys: the old ones are lost, and prove nothing.
  if (keys.publicKey !== known.publicKey) return undefined
  const signature = encodeBase64(await keys.sign(signInMessage(challenge)))
  return { userId, deviceId: known.deviceId, signature }
}

/** The device that this storage was last registered as. */
interface KnownDevice {
  readonly publicKey: string
  readonly deviceId: string
  readonly publicKeyHash: string
}

/** A list that may have reached the server: the same one is sent until there is an answer. */
interface FirstList {
  readonly publicKey: string
  readonly list: string
}

async function register(
  session: Session,
  keys: DeviceKeys,
  details: DeviceDetails,
  deviceList: string | undefined,
): Promise<ReplyOf<'POST register_device'>> {
  const { publicKey, signingKey } = keys
  const challenge = decodeBase64(session.challenge ?? '')
  const possession = encodeBase64(await keys.sign(possessionMessage(challenge)))
  const body = { ...details, publicKey, signingKey, possession }
  if (deviceList === undefined) return session.request('POST register_device', body)
  try {
    return await session.request('POST register_device', { ...body, deviceList })
  } catch (error) {
    if (!isListRefused(error)) throw error
    // Another device of the user has been faster.
    return session.request('POST register_device', body)
  }
}

function isListRefused(error: unknown): boolean {
  if (hasCode(error, 'DEVICE_LIST_CONFLICT')) return true
  if (!hasCode(error, 'VALIDATION_FAILED')) return false
  const { errors } = error.members
  return Array.isArray(errors) && errors.some(fault => fault?.pointer === '/deviceList')
}

function isKnownDevice({ publicKey, deviceId, publicKeyHash }: Readonly<Record<string, unknown>>): boolean {
  return [publicKey, deviceId, publicKeyHash].every(each => typeof each === 'string')
}

function isFirstList({ publicKey, list }: Readonly<Record<string, unknown>>): boolean {
  return typeof publicKey === 'string' && typeof list === 'string'
}

function deviceKey(userId: string): string {
  return `device.${userId}`
}

function firstListKey(userId: string): string {
  return `first-list.${userId}`
}
