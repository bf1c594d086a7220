/**
 * A test user's device in a drill: signed in, with a key in the log, connected to a node, and to another node when that
 * is lost. It acknowledges each message, and its ledger keeps promised and received messages.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { CallsignError } from '../../src/app/callsign-error.ts'
import type { StompFrame } from '../../src/app/connection/stomp.ts'
import { StompSocket } from '../../src/app/connection/stomp-socket.ts'
import {
  type KeyBinding,
  type KeyHolder,
  keyHolder,
  makeCallKey,
  sealCallKey,
} from '../../src/app/devices/call-key.ts'
import { type DeviceKeys, webCryptoKeys } from '../../src/app/devices/device-keys.ts'
import { hashOfSet, keyMembersOf } from '../../src/app/devices/key-members.ts'
import type { Addressed, BodyOf, OperationName, ReplyOf } from '../../src/app/session/operations.ts'
import { withTextIds } from '../../src/app/session/server.ts'
import { Session } from '../../src/app/session/session.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'
import type { QueueEvent, RegisterDeviceReply } from '../../src/app/wire.ts'
import { packCallKey } from '../../src/client/client.ts'
import { ClusterFetch, type ClusterFetchOptions, serverAt, type Timed } from './cluster-fetch.ts'
import { InboxLedger } from './inbox-ledger.ts'
import type { RegisteredKey } from './registrar.ts'
import type { NodeAddresses, TestIdentifier } from './settings.ts'

export interface PhoneOptions extends ClusterFetchOptions {
  readonly login: TestIdentifier
}

export class DrillPhone {
  readonly userId: string
  readonly deviceId: string
  /** This device, then the user's other ones, which get sealed keys too: they can't open them. */
  readonly holders: readonly KeyHolder[]
  readonly key: RegisteredKey
  readonly inbox = new InboxLedger()
  /** Keys that came, by their message: whether they are what the caller sealed. */
  readonly sealed = new Map<string, string>()
  readonly #cluster: ClusterFetch
  readonly #session: Session
  readonly #keys: DeviceKeys
  readonly #away = new AbortController()
  #accessToken = ''
  #socket: StompSocket | undefined
  #connecting: Promise<void> | undefined

  private constructor(
    cluster: ClusterFetch,
    session: Session,
    keys: DeviceKeys,
    { deviceId, publicKeyHash }: RegisterDeviceReply,
    others: string[],
  ) {
    this.#cluster = cluster
    this.#session = session
    this.#keys = keys
    this.userId = session.userId!
    this.deviceId = deviceId
    this.holders = [deviceId, ...others].map(each => keyHolder(this.userId, each, keys.publicKey))
    this.key = { userId: this.userId, deviceId, publicKey: keys.publicKey, vrfHash: publicKeyHash }
  }

  /** Signs in, removes devices that an earlier drill has left, ends its calls, and registers a device. */
  static async signIn(options: PhoneOptions): Promise<DrillPhone> {
    const { place, login } = options
    const cluster = new ClusterFetch(options)
    const storage = memoryStorage()
    const session = await Session.open(cluster.server, storage)
    const { identifier, code: otp } = login
    const challenge = await session.login({ identifier, displayName: `Drill ${place + 1}` })
    if (!challenge.verified) await session.verifyLogin({ challengeId: challenge.challengeId, otp })
    const others: string[] = []
    const { items } = await session.request('GET devices', undefined)
    for (const { deviceId, name } of items) {
      if (name === DEVICE_NAME) await session.request('DELETE devices/{deviceId}', undefined, { deviceId })
      else others.push(deviceId)
    }
    const keys = await webCryptoKeys(storage)(session.userId!)
    // Not `registerDevice` of the SDK: its device list would outlast the drill, and shut out the user's other devices.
    const device = await session.request('POST register_device', {
      publicKey: keys.publicKey,
      deviceInfo: { platform: 'drill', name: DEVICE_NAME },
    })
    const phone = new DrillPhone(cluster, session, keys, device, others)
    await phone.hangUp()
    return phone
  }

  /** `<userId>_<deviceId>` */
  get name(): string {
    return `${this.userId}_${this.deviceId}`
  }

  /** Unless they are contacts. */
  async befriend(other: DrillPhone): Promise<void> {
    const { items } = await this.#session.request('GET friend', undefined)
    if (items.some(({ userId }) => userId === other.userId)) return
    try {
      await this.#session.request('POST friend-request/by-id', { targetUserId: other.userId })
    } catch (error) {
      // An earlier drill may have ended between request and answer.
      if (!(error instanceof CallsignError) || error.status !== 409) throw error
    }
    await other.#session.request('POST friend-request/accept', { userId: this.userId })
  }

  /** A new key for these devices, as `call/start` and `keys` take it. */
  async sealNew(devices: readonly KeyHolder[], binding: KeyBinding) {
    const self = { ...this.holders[0]!, keys: this.#keys }
    const keyMembers = keyMembersOf([self, ...devices])
    const key = { callKey: makeCallKey(), setHash: hashOfSet(keyMembers), sealedAtMs: Date.now() }
    const sealFor = (to: KeyHolder) => sealCallKey(packCallKey(key), self, to, binding)
    const entries = devices.map(async to => [to.name, await sealFor(to)] as const)
    return { keyMembers, encryptedAESKeys: Object.fromEntries(await Promise.all(entries)) }
  }

  /** Resolves with the reply, and when the attempt that brought it was sent. Rejects with `CallsignError`. */
  change<Name extends OperationName>(
    operation: Name,
    body: BodyOf<Name>,
    ...addressed: Addressed<Name>
  ): Promise<Timed<ReplyOf<Name>>> {
    return this.#cluster.timed(() => this.#session.request(operation, body, ...addressed))
  }

  /** One request to one node: its status and code, such as `410 CALL_ENDED`. */
  async outcomeAt<Name extends 'GET user' | 'GET call/{callId}'>(
    node: NodeAddresses,
    operation: Name,
    ...[params = {}]: Addressed<Name>
  ): Promise<string> {
    // A node that has lost the session is to say so itself, also after the SDK has heard it.
    this.#accessToken = await this.#session.accessToken().catch(() => this.#accessToken)
    const addressed = [params, { authorization: `Bearer ${this.#accessToken}` }] as Addressed<Name>
    try {
      await serverAt(node).request(operation, undefined, ...addressed)
      return '200'
    } catch (error) {
      if (!(error instanceof CallsignError)) throw error
      return error.code === 'NO_ANSWER' ? error.message : `${error.status} ${error.code}`
    }
  }

  /** Connects, and again whenever the connection is lost, until `leave`. */
  connect(): void {
    this.#connecting ??= this.#keepConnected()
  }

  /** Loses the connection and connects to its own node: unacknowledged messages come again. */
  reconnectAtHome(): void {
    this.#cluster.goHome()
    this.#socket?.abandon()
  }

  /** Removes the device, which ends the session. */
  async leave(): Promise<void> {
    this.#away.abort()
    this.#socket?.abandon()
    await this.#session.request('DELETE devices/{deviceId}', undefined, { deviceId: this.deviceId })
  }

  async #keepConnected(): Promise<void> {
    const { signal } = this.#away
    while (!signal.aborted && !this.#cluster.stop.aborted) {
      try {
        const { url } = this.#cluster
        const accessToken = await this.#session.accessToken()
        const socket = this.#open(url, accessToken)
        this.#socket = socket
        if (signal.aborted) socket.abandon()
        const { reason } = await socket.closed
        if (reason === 'token_expired') await this.#session.renew(accessToken)
      } catch {
        // The next node is tried.
      }
      await sleep(PAUSE_MS * (0.5 + Math.random()))
      this.#cluster.moveOn()
    }
  }

  #open(url: string, accessToken: string): StompSocket {
    const socket: StompSocket = new StompSocket({
      webSocket: WebSocket,
      url: `${url.replace('http', 'ws')}/ws`,
      accessToken,
      heartBeatMs: [BEAT_MS, BEAT_MS],
      answerWithinMs: ANSWER_MS_MAX,
      onConnected: () => {
        const queue = { id: 'calls', destination: '/user/queue/calls', ack: 'client-individual' }
        socket.request('SUBSCRIBE', queue).catch(() => {})
      },
      onMessage: frame => this.#onMessage(socket, frame),
    })
    return socket
  }

  #onMessage(socket: StompSocket, { headers, body }: StompFrame): void {
    const event: QueueEvent = JSON.parse(body, withTextIds)
    const message = messageName(event)
    if ('encryptedAESKey' in event) this.sealed.set(message, event.encryptedAESKey)
    this.inbox.receive(message)
    // Without an answer it comes again.
    const acknowledged = socket.request('ACK', { id: headers.get('ack') ?? '' })
    acknowledged.then(() => this.inbox.settle(message)).catch(() => {})
  }

  /** Ends calls that it is still in. */
  async hangUp(): Promise<void> {
    const { items } = await this.#session.request('GET call/history', undefined)
    for (const { callId, status } of items) {
      if (status !== 'active') continue
      await this.#session.request('POST call/end', { callId }).catch(error => {
        // The other one has ended it.
        if (!(error instanceof CallsignError) || error.status === 500) throw error
      })
    }
  }
}

/** Tells a message apart from every other one to the device. */
function messageName(event: QueueEvent): string {
  if (event.type === 'key_update') return keyUpdateName(event.callId, event.epoch)
  if ('callId' in event && ONCE.has(event.type)) return `${event.type} of call ${event.callId}`
  return `${event.type} ${event.eventId}`
}

export function keyUpdateName(callId: string, epoch: number): string {
  return `key_update ${epoch} of call ${callId}`
}

const ONCE = new Set(['call_invitation', 'call_ended'])
const DEVICE_NAME = 'callsign drill'
/** Between attempts: the measure is the cluster's pause, not the client's. */
const PAUSE_MS = 250
const ANSWER_MS_MAX = 5_000
const BEAT_MS = 10_000
