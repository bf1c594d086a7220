/**
 * A test user's device in a drill: signed in, with a key in the log, connected to a node, and to another one when that is
 * lost. It acknowledges each message, and its ledger keeps what was promised and what came.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type KeyHolder, keyHolder, sealCallKey } from '../../src/app/call-key.ts'
import { type DeviceKeys, webCryptoKeys } from '../../src/app/device-keys.ts'
import { withTextIds } from '../../src/app/server.ts'
import type { StompFrame } from '../../src/app/stomp.ts'
import { StompSocket } from '../../src/app/stomp-socket.ts'
import { memoryStorage } from '../../src/app/storage.ts'
import type { QueueEvent } from '../../src/app/wire.ts'
import { Api, Refusal, type Tokens } from './api.ts'
import { InboxLedger } from './inbox-ledger.ts'
import type { RegisteredKey } from './registrar.ts'
import type { NodeAddresses, TestIdentifier } from './settings.ts'

export interface PhoneOptions {
  readonly nodes: readonly NodeAddresses[]
  /** Its place among the phones: it prefers one node, its neighbour the next. */
  readonly place: number
  readonly login: TestIdentifier
  readonly stop: AbortSignal
}

export class DrillPhone {
  readonly userId: string
  readonly deviceId: string
  /** Also of the user's other devices, which get sealed keys too. */
  readonly deviceNames: readonly string[]
  readonly key: RegisteredKey
  readonly inbox = new InboxLedger()
  /** Keys that came, by their message: whether they are what the caller sealed. */
  readonly sealed = new Map<string, string>()
  readonly #api: PhoneApi
  readonly #keys: DeviceKeys
  readonly #away = new AbortController()
  #socket: StompSocket | undefined
  #connecting: Promise<void> | undefined

  private constructor(api: PhoneApi, keys: DeviceKeys, userId: string, device: Registered, others: string[]) {
    this.#api = api
    this.#keys = keys
    this.userId = userId
    this.deviceId = device.deviceId
    this.deviceNames = [this.name, ...others.map(deviceId => `${userId}_${deviceId}`)]
    this.key = {
      userId,
      deviceId: device.deviceId,
      publicKey: keys.publicKey,
      vrfHash: device.publicKeyHash,
    }
  }

  /** Signs in, removes devices that an earlier drill has left, ends its calls, and registers a device. */
  static async signIn(options: PhoneOptions): Promise<DrillPhone> {
    const api = new PhoneApi(options)
    const { identifier, code } = options.login
    const kind = identifier.includes('@') ? 'email' : 'phone'
    const { challengeId } = await api.send<{ challengeId: string }>('POST /app/api/login', {
      [kind]: identifier,
      displayName: `Drill ${options.place + 1}`,
    })
    const reply = await api.send<SignedIn>('POST /app/api/verify-login', { challengeId, otp: code })
    api.take(reply)
    const others: string[] = []
    const { items } = await api.send<{ items: readonly ListedDevice[] }>('GET /app/api/devices')
    for (const { deviceId, name } of items) {
      if (name === DEVICE_NAME) await api.send(`DELETE /app/api/devices/${deviceId}`)
      else others.push(deviceId)
    }
    const { userId } = reply.user
    const keys = await webCryptoKeys(memoryStorage())(userId)
    const device = await api.send<Registered>('POST /app/api/register_device', {
      publicKey: keys.publicKey,
      deviceInfo: { platform: 'drill', name: DEVICE_NAME },
    })
    const phone = new DrillPhone(api, keys, userId, device, others)
    await phone.#hangUp()
    return phone
  }

  /** `<userId>_<deviceId>` */
  get name(): string {
    return `${this.userId}_${this.deviceId}`
  }

  get holder(): KeyHolder {
    return keyHolder(this.userId, this.deviceId, this.#keys.publicKey)
  }

  /** Unless they are contacts. */
  async befriend(other: DrillPhone): Promise<void> {
    const { items } = await this.#api.send<{ items: readonly { userId: string }[] }>('GET /app/api/friend')
    if (items.some(({ userId }) => userId === other.userId)) return
    try {
      await this.#api.send('POST /app/api/friend-request/by-id', { targetUserId: other.userId })
    } catch (error) {
      // An earlier drill may have ended between request and answer.
      if (!(error instanceof Refusal) || error.status !== 409) throw error
    }
    await other.#api.send('POST /app/api/friend-request/accept', { userId: this.userId })
  }

  seal(callKey: Uint8Array, to: KeyHolder): Promise<string> {
    return sealCallKey(callKey, { ...this.holder, keys: this.#keys }, to)
  }

  /** Resolves with the reply, and when the request was sent that brought it. Throws `Refusal` and `NoAnswer`. */
  change<Reply>(methodAndPath: string, body: object = {}): Promise<Changed<Reply>> {
    return this.#api.change<Reply>(methodAndPath, body)
  }

  /** One request to one node: its status and code, such as `410 CALL_ENDED`. */
  outcomeAt(node: NodeAddresses, path: string): Promise<string> {
    return this.#api.outcomeAt(node, path)
  }

  /** Connects, and again whenever the connection is lost, until `leave`. */
  connect(): void {
    this.#connecting ??= this.#keepConnected()
  }

  /** Loses the connection and connects to its own node: what was not acknowledged comes again. */
  reconnectAtHome(): void {
    this.#api.goHome()
    this.#socket?.abandon()
  }

  /** Removes the device, which ends the session. */
  async leave(): Promise<void> {
    this.#away.abort()
    this.#socket?.abandon()
    await this.#api.send(`DELETE /app/api/devices/${this.deviceId}`)
  }

  async #keepConnected(): Promise<void> {
    const { signal } = this.#away
    let url = this.#api.ownUrl
    while (!signal.aborted && !this.#api.stop.aborted) {
      try {
        const socket = this.#open(url, await this.#api.accessToken())
        this.#socket = socket
        if (signal.aborted) socket.abandon()
        const { reason } = await socket.closed
        if (reason === 'token_expired') await this.#api.refresh()
      } catch {
        // The next node is tried.
      }
      await sleep(PAUSE_MS * (0.5 + Math.random()))
      url = this.#api.nextUrl()
    }
  }

  #open(url: string, accessToken: string): StompSocket {
    const socket: StompSocket = new StompSocket({
      webSocket: WebSocket,
      url: `${url.replace('http', 'ws')}/ws`,
      accessToken,
      heartBeatMs: [BEAT_MS, BEAT_MS],
      answerWithinMs: READ_MS_MAX,
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

  /** Ends calls that an earlier drill has left. */
  async #hangUp(): Promise<void> {
    const { items } = await this.#api.send<{ items: readonly { callId: string; status: string }[] }>(
      'GET /app/api/call/history',
    )
    for (const { callId, status } of items) {
      if (status === 'active' || status === 'ringing') {
        await this.#api.send('POST /app/api/call/end', { callId }).catch(() => {})
      }
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

export interface Changed<Reply> {
  readonly reply: Reply
  /** `performance.now()` when the request that was answered left. */
  readonly sentAtMs: number
}

/** Uses its own node, and the next one after each request without an answer. One request at a time. */
class PhoneApi {
  readonly stop: AbortSignal
  readonly #api: Api
  readonly #nodes: readonly NodeAddresses[]
  readonly #place: number
  #at: number
  #isFirst = true
  #sentAtMs = 0

  constructor({ nodes, place, stop }: PhoneOptions) {
    this.stop = stop
    this.#nodes = nodes
    this.#place = place
    this.#at = place
    this.#api = new Api({ url: () => this.#urlOfAttempt(), stop, pauseMsMax: PAUSE_MS })
  }

  take(tokens: Tokens): void {
    this.#api.take(tokens)
  }

  send<Reply>(methodAndPath: string, body?: object): Promise<Reply> {
    this.#isFirst = true
    return this.#api.send<Reply>(methodAndPath, body)
  }

  async change<Reply>(methodAndPath: string, body: object): Promise<Changed<Reply>> {
    const reply = await this.send<Reply>(methodAndPath, body)
    return { reply, sentAtMs: this.#sentAtMs }
  }

  accessToken(): Promise<string> {
    return this.#api.accessToken()
  }

  refresh(): Promise<void> {
    return this.#api.refresh()
  }

  nextUrl(): string {
    this.#at += 1
    return this.#url
  }

  /** The next node is its own. */
  goHome(): void {
    this.#at = this.#place + this.#nodes.length - 1
  }

  get ownUrl(): string {
    return this.#url
  }

  async outcomeAt({ url }: NodeAddresses, path: string): Promise<string> {
    try {
      const answer = await fetch(url + path, {
        headers: { authorization: `Bearer ${await this.accessToken()}` },
        redirect: 'error',
        signal: AbortSignal.timeout(READ_MS_MAX),
      })
      const text = await answer.text()
      const [, code] = /"code":"(\w+)"/.exec(text) ?? []
      return answer.ok || code === undefined ? `${answer.status}` : `${answer.status} ${code}`
    } catch (error) {
      return isTimeout(error) ? `no answer in ${READ_MS_MAX / 1_000} s` : 'no connection'
    }
  }

  get #url(): string {
    return this.#nodes[this.#at % this.#nodes.length]!.url
  }

  #urlOfAttempt(): string {
    if (!this.#isFirst) this.#at += 1
    this.#isFirst = false
    this.#sentAtMs = performance.now()
    return this.#url
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}

interface SignedIn extends Tokens {
  readonly user: { readonly userId: string }
}

interface Registered {
  readonly deviceId: string
  readonly publicKeyHash: string
}

interface ListedDevice {
  readonly deviceId: string
  readonly name?: string
}

const ONCE = new Set(['call_invitation', 'call_ended'])
const DEVICE_NAME = 'callsign drill'
/** Between attempts: what is measured is the cluster's pause, not the client's. */
const PAUSE_MS = 250
const READ_MS_MAX = 5_000
const BEAT_MS = 10_000
