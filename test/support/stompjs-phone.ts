/**
 * A phone with the app on it: its own key pair, the HTTP API, and @stomp/stompjs as it comes. It verifies other devices'
 * keys through the log before it encrypts for them, and remembers everything that reached it.
 */

import { createHash } from 'node:crypto'
import { Client, type IFrame, type IMessage, type StompHeaders, Versions } from '@stomp/stompjs'
import type { Test } from 'tap'
import { Compile } from 'typebox/schema'
import WebSocket from 'ws'
import { LogClient } from '../../src/client/client.ts'
import { EVENTS } from '../../src/schema/event.ts'
import type { EventType } from '../../src/schema/event-form.ts'
import { unknownMembers } from '../../src/schema/shape.ts'
import type { App } from './app.ts'
import {
  hashOfSet,
  type KeyHolder,
  keyMembersOf,
  type OwnDevice,
  openCallKey,
  sealCallKey,
} from './call-key.ts'
import type { Rehearsal } from './rehearsal.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
export type Body = any

export interface Received {
  readonly destination: string
  readonly headers: StompHeaders
  readonly body: Body
  ack(): void
}

export interface ConnectOptions {
  /** For the subscription to calls; messages on other queues are not acknowledged. */
  readonly ack?: 'auto' | 'client' | 'client-individual'
  /** Whether messages of calls are acknowledged as they come. */
  readonly isAcking?: boolean
  readonly since?: string
  readonly isBinary?: boolean
}

export const BUNDLE_ID = 'org.example.callsign'

export class Phone {
  readonly app: App
  readonly userId: string
  readonly displayName: string
  readonly deviceId: string
  readonly self: OwnDevice
  /** Hexadecimal, for its pushes. */
  readonly apnsToken: string
  readonly voipToken: string
  /** Messages that no test has taken yet, oldest first. */
  readonly messages: Received[] = []
  /** Every octet that came over a WebSocket, and every body that came over HTTP. */
  heard = ''
  /** The ERROR frame that ended the last connection, and the code that it was closed with. */
  lastError: IFrame | undefined
  /** The last refusal on its errors queue. */
  lastRefusal: Body
  closeCode: number | undefined
  readonly #log: LogClient
  #client: Client | undefined
  #socket: WebSocket | undefined
  #onNews: (() => void)[] = []
  #receipts = 0

  private constructor(rehearsal: Rehearsal, app: App, user: Body, device: Body, self: OwnDevice) {
    this.app = app
    this.userId = user.userId
    this.displayName = user.displayName
    this.deviceId = device.deviceId
    this.self = self
    this.apnsToken = tokenOf('apns', self)
    this.voipToken = tokenOf('voip', self)
    const { vkey, vrfPublicKey } = rehearsal.server
    // Pinned keys stay; the log's address may change with a restart.
    this.#log = new LogClient({
      vkey,
      vrfPublicKey,
      url: 'https://log.invalid',
      fetch: (url, init) => fetch(String(url).replace('https://log.invalid', this.app.http), init),
    })
  }

  /** A phone of a person who signs in with a provider; the same subject again is another phone of the same person. */
  static async unpack(rehearsal: Rehearsal, subject: string): Promise<Phone> {
    const app = rehearsal.app()
    const name = subject[0]!.toUpperCase() + subject.slice(1)
    const login = await rehearsal.googleLogin(subject, { name })
    const { user } = app.take(await app.get(200, 'POST /app/api/login', login))
    const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
    const spki = Buffer.from(await crypto.subtle.exportKey('spki', keys.publicKey))
    const device = await app.get(201, 'POST /app/api/register_device', { publicKey: spki.toString('base64') })
    const publicKey = new Uint8Array(spki)
    const self = { name: `${user.userId}_${device.deviceId}`, publicKey, privateKey: keys.privateKey }
    const phone = new Phone(rehearsal, app, user, device, self)
    await app.get(204, 'PUT /app/api/devices/current/push', {
      apnsToken: phone.apnsToken,
      apnsVoipToken: phone.voipToken,
      apnsEnvironment: 'production',
      bundleId: BUNDLE_ID,
    })
    return phone
  }

  /** The body of an answer with this status. */
  async get(status: number, methodAndPath: string, body?: unknown): Promise<Body> {
    const answer = await this.app.send(methodAndPath, body)
    this.heard += answer.text
    if (answer.status === status) return answer.body
    throw new Error(`${methodAndPath} answers ${answer.status}, not ${status}: ${answer.text}`)
  }

  /** Connects and subscribes to its queues; resolves when the server has said that it has the subscriptions. */
  async connect(options: ConnectOptions = {}): Promise<void> {
    const { ack = 'client-individual', isAcking = true, since, isBinary = false } = options
    this.lastError = undefined
    this.closeCode = undefined
    const url = `${this.app.http.replace('http', 'ws')}/ws`
    const client = new Client({
      brokerURL: url,
      webSocketFactory: () => this.#open(url),
      connectHeaders: { Authorization: `Bearer ${this.app.accessToken}` },
      reconnectDelay: 0,
      forceBinaryWSFrames: isBinary,
    })
    this.#client = client
    await new Promise<void>((resolve, reject) => {
      client.onConnect = () => resolve()
      client.onStompError = frame => {
        this.lastError = frame
      }
      client.onWebSocketClose = ({ code }: { code: number }) => {
        this.closeCode = code
        reject(new Error(`closed with ${code}: ${this.lastError?.body}`))
        this.#tellNews()
      }
      client.activate()
    })
    await this.subscribe('/user/queue/errors')
    await this.subscribe('/user/queue/contacts')
    await this.subscribe('/user/queue/account')
    const resumed = since === undefined ? {} : { since }
    await this.subscribe('/user/queue/calls', { ack, ...resumed }, isAcking && ack !== 'auto')
  }

  /** Resolves once the server has taken the subscription, rejects with the code of its refusal. */
  async subscribe(destination: string, headers: StompHeaders = {}, isAcking = false): Promise<void> {
    const receipt = this.#nextReceipt()
    this.#stomp.subscribe(destination, message => this.#onMessage(message, isAcking), {
      ...headers,
      receipt,
    })
    await this.#answered(receipt)
  }

  /** Subscribes to the call's live events. */
  watch(callId: string): Promise<void> {
    return this.subscribe(`/topic/call.${callId}`)
  }

  /** Sends to `/app/call/{callId}/{command}`; rejects with the code of a refusal. */
  async send(destination: string, body?: unknown): Promise<void> {
    const receipt = this.#nextReceipt()
    this.#stomp.publish({
      destination,
      headers: { receipt },
      body: body === undefined ? '' : JSON.stringify(body),
    })
    await this.#answered(receipt)
  }

  /** Resolves when everything that the server had sent on the connection so far is here. */
  async settled(): Promise<void> {
    await this.subscribe('/user/queue/errors')
  }

  /** Takes the first message of this type, now or when it comes. */
  async next(type: string): Promise<Received> {
    await this.#until(() => this.messages.some(({ body }) => body.type === type), `a ${type}`)
    const at = this.messages.findIndex(({ body }) => body.type === type)
    return this.messages.splice(at, 1)[0]!
  }

  /** Types of call events that no test has taken. */
  get untaken(): string[] {
    return this.messages
      .filter(({ destination }) => destination.includes('call'))
      .map(({ body }) => body.type)
  }

  /** The network is gone, without a word. */
  async drop(): Promise<void> {
    this.#socket!.terminate()
    await this.closed()
  }

  async disconnect(): Promise<void> {
    await this.#client?.deactivate()
  }

  async closed(): Promise<void> {
    await this.#until(() => this.closeCode !== undefined, 'the end of the connection')
  }

  /** The devices of these people, each with the key that the log proves. Throws for one that it does not. */
  async devicesOf(...userIds: readonly string[]): Promise<KeyHolder[]> {
    const { users } = await this.get(200, `GET /app/api/user/publicKeys?userIds=${userIds.join(',')}`)
    const devices = users.flatMap(({ userId, devices }: Body) =>
      devices.map((device: Body) => ({ ...device, userId })),
    ) as Body[]
    const proofs = await this.#log.lookUpAll(
      devices.map(({ userId, deviceId, publicKeyHash: vrfHash }) => ({ userId, deviceId, vrfHash })),
    )
    return devices.map(({ userId, deviceId, publicKey }, at) => {
      const proof = proofs[at]!
      if (proof.kind !== 'verified' || proof.publicKey !== publicKey) throw new Error(JSON.stringify(proof))
      return holderOf(userId, deviceId, publicKey)
    })
  }

  /** One device of a user, likewise. */
  async deviceOf(userId: string, deviceId: string): Promise<KeyHolder> {
    const device = (await this.devicesOf(userId)).find(({ name }) => name === `${userId}_${deviceId}`)
    if (device === undefined) throw new Error(`${userId} has no device ${deviceId}`)
    return device
  }

  /** The map of keys for these devices. */
  async sealed(
    callKey: Uint8Array<ArrayBuffer>,
    devices: readonly KeyHolder[],
  ): Promise<Record<string, string>> {
    const setHash = await hashOfSet(await keyMembersOf([this.self, ...devices]))
    const sealFor = (to: KeyHolder) => sealCallKey({ callKey, setHash }, this.self, to, BINDING)
    const entries = devices.map(async to => [to.name, await sealFor(to)] as const)
    const map = Object.fromEntries(await Promise.all(entries))
    for (const value of Object.values(map)) this.app.hide(value)
    return map
  }

  /** The call's key, sealed by this device of a user. */
  async open(sealed: string, userId: string, deviceId: string): Promise<Uint8Array> {
    return (await openCallKey(sealed, await this.deviceOf(userId, deviceId), this.self, BINDING)).callKey
  }

  #open(url: string): WebSocket {
    const socket = new WebSocket(url, Versions.default.protocolVersions())
    socket.on('message', data => {
      this.heard += String(data)
    })
    this.#socket = socket
    return socket
  }

  get #stomp(): Client {
    if (this.#client === undefined) throw new Error('not connected')
    return this.#client
  }

  #nextReceipt(): string {
    this.#receipts += 1
    return `receipt-${this.#receipts}`
  }

  /** RECEIPT, or a refusal on the errors queue, or the end of the connection. */
  async #answered(receipt: string): Promise<void> {
    let isReceived = false
    this.#stomp.watchForReceipt(receipt, () => {
      isReceived = true
      this.#tellNews()
    })
    const refusalOf = () => this.messages.findIndex(({ body }) => body.receiptId === receipt)
    await this.#until(() => isReceived || refusalOf() >= 0 || this.closeCode !== undefined, receipt)
    if (isReceived) return
    const [refusal] = this.messages.splice(refusalOf(), refusalOf() < 0 ? 0 : 1)
    this.lastRefusal = refusal?.body
    throw new Error(refusal?.body.problem.code ?? `closed with ${this.closeCode}: ${this.lastError?.body}`)
  }

  #onMessage(message: IMessage, isAcking: boolean): void {
    const { headers } = message
    const body = JSON.parse(message.body)
    this.messages.push({ destination: headers.destination!, headers, body, ack: () => message.ack() })
    if (isAcking) message.ack()
    this.#tellNews()
  }

  #tellNews(): void {
    for (const resolve of this.#onNews.splice(0)) resolve()
  }

  async #until(isSo: () => boolean, what: string): Promise<void> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#tellNews()
    }, PATIENCE_MS)
    while (!isSo()) {
      await new Promise<void>(resolve => this.#onNews.push(resolve))
      if (isLate) {
        const there = this.messages.map(({ body }) => JSON.stringify(body)).join('\n')
        throw new Error(
          `${this.displayName} waits for ${what} and has\n${there}\n${this.lastError?.body ?? ''}`,
        )
      }
    }
    clearTimeout(timer)
  }
}

/** Makes two people contacts, one asking and the other accepting. */
export async function befriend(one: Phone, other: Phone): Promise<void> {
  await one.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: other.userId })
  await other.get(200, 'POST /app/api/friend-request/accept', { userId: one.userId })
}

/** Whether a body is of the form that the AsyncAPI document gives it, and nothing more. */
export function isAsDocumented(t: Test, { body }: Received): void {
  const schema = EVENTS[body.type as EventType]?.schema
  t.same(
    [...Compile(schema).Errors(body)[1], ...unknownMembers(schema, body)],
    [],
    `${body.type} as documented`,
  )
}

function holderOf(userId: string, deviceId: string, publicKey: string): KeyHolder {
  return { name: `${userId}_${deviceId}`, publicKey: new Uint8Array(Buffer.from(publicKey, 'base64')) }
}

function tokenOf(kind: string, { name }: OwnDevice): string {
  return createHash('sha256').update(`${kind} ${name}`).digest('hex')
}

const PATIENCE_MS = 120_000

/** Of all calls of these phones: they look at the server, which can't tell. */
const BINDING = { callId: '0', epoch: 1 }
