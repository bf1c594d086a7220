/**
 * A fake user's device: signed in with the code from the inbox, registered with a key pair of its own, connected, and
 * connected again whenever the connection is lost. Answering calls is left to `Person`.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Api, causeOf, type Tokens } from './api.ts'
import { DeviceKeys, type KeyHolder } from './call-key.ts'
import type { Directory } from './directory.ts'
import type { Gate } from './gate.ts'
import { type Closing, ConnectionLost, StompClient } from './stomp-client.ts'
import type { SealedKey, Told } from './told.ts'

/** Shared by all fake users of a simulation. */
export interface World {
  /** `http://host:port` */
  readonly url: string
  readonly directory: Directory
  /** Through which sign-ins and connections go. */
  readonly gate: Gate
  readonly stop: AbortSignal
  /** Says what went wrong, as a sentence. */
  readonly trouble: (sentence: string) => void
}

export class Phone {
  readonly api: Api
  readonly userId: string
  readonly displayName: string
  readonly deviceId: string
  /** Connections that were accepted so far. */
  connects = 0
  /** Called with each message to the device, each event once. */
  onTold: (told: Told) => void = () => {}
  /** Called when it has come online or gone offline. */
  onConnection: () => void = () => {}
  /** Called when it will not be online again, with the reason. */
  onShutOut: (reason: string) => void = reason => this.#world.trouble(reason)
  readonly #world: World
  readonly #keys: DeviceKeys
  readonly #topics = new Set<string>()
  /** Ids of events, the oldest first: what was acknowledged on a connection that broke comes again. */
  readonly #known = new Set<string>()
  #client: StompClient | undefined = undefined
  #isOnline = false
  /** Aborted when it is not to be connected any more. */
  #away = new AbortController()
  #waiting: (() => void)[] = []

  private constructor(world: World, api: Api, keys: DeviceKeys, user: SignedIn['user'], deviceId: string) {
    this.#world = world
    this.api = api
    this.#keys = keys
    this.userId = user.userId
    this.displayName = user.displayName
    this.deviceId = deviceId
  }

  /** A new person's phone. */
  static unpack(world: World, displayName: string): Promise<Phone> {
    return world.gate.through(async () => {
      const api = new Api({ url: () => world.url, stop: world.stop })
      const { user } = await signIn(api, displayName)
      const keys = new DeviceKeys()
      const { deviceId } = await api.send<{ deviceId: string }>('POST /app/api/register_device', {
        publicKey: keys.point.toString('base64'),
        deviceInfo: { platform: 'simulator', name: displayName },
      })
      world.directory.add({ name: `${user.userId}_${deviceId}`, key: keys.point })
      return new Phone(world, api, keys, user, deviceId)
    })
  }

  /** `<userId>_<deviceId>` */
  get name(): string {
    return `${this.userId}_${this.deviceId}`
  }

  get isOnline(): boolean {
    return this.#isOnline
  }

  get holder(): KeyHolder {
    return { name: this.name, key: this.#keys.point }
  }

  /** Connects, and again whenever the connection is lost; resolves when it is online for the first time. */
  connect(): Promise<void> {
    this.#away = new AbortController()
    this.#keepConnected(this.#away.signal).catch(error => this.onShutOut(causeOf(error)))
    return this.online()
  }

  /** Resolves when it is online, at once if it is. */
  async online(): Promise<void> {
    while (!this.#isOnline) await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  /** The network is gone without a word, and stays so until `connect`. */
  drop(): void {
    this.#away.abort()
    this.#client?.drop()
  }

  /** Says goodbye. */
  async disconnect(): Promise<void> {
    this.#away.abort()
    await this.#client?.close()
  }

  /** Follows a call live, also on the connections to come. */
  async watch(callId: string): Promise<void> {
    const topic = `${TOPIC}${callId}`
    if (this.#topics.has(topic) || this.#client === undefined) return
    this.#topics.add(topic)
    // A connection that is lost meanwhile subscribes again by itself.
    await this.#subscribe(this.#client, topic).catch(ignoreLoss)
  }

  unwatch(callId: string): void {
    const topic = `${TOPIC}${callId}`
    if (this.#topics.delete(topic)) this.#client?.unsubscribe(topic)
  }

  /** Sends to `/app/call/{callId}/{command}`, again if the connection is lost; rejects with a `Refusal`. */
  async send(destination: string, body: object): Promise<void> {
    for (;;) {
      await this.online()
      try {
        return await this.#client!.send(destination, body)
      } catch (error) {
        ignoreLoss(error)
      }
    }
  }

  seal(callKey: Uint8Array, to: KeyHolder): string {
    return this.#keys.seal(callKey, this.name, to)
  }

  /** A map of keys for these devices. */
  sealAll(callKey: Uint8Array, devices: readonly KeyHolder[]): Record<string, string> {
    return Object.fromEntries(devices.map(to => [to.name, this.seal(callKey, to)]))
  }

  /** Throws unless that device has sealed it for this one. */
  async open({ encryptedAESKey, fromUserId, fromDeviceId }: SealedKey): Promise<Buffer> {
    return this.#keys.open(encryptedAESKey, this.name, await this.deviceOf(fromUserId, fromDeviceId))
  }

  devicesOf(userId: string): Promise<KeyHolder[]> {
    return this.#world.directory.devicesOf(this.api, userId)
  }

  deviceOf(userId: string, deviceId: string): Promise<KeyHolder> {
    return this.#world.directory.deviceOf(this.api, userId, deviceId)
  }

  async #keepConnected(away: AbortSignal): Promise<void> {
    let pauseMs = PAUSE_MS_MIN
    while (!away.aborted) {
      const before = this.connects
      const { isFinal, reason, retryAfterMs } = await this.#stayConnected(away)
      if (away.aborted) return
      if (isFinal) throw new Error(`${this.displayName} is not to come back: ${reason}`)
      pauseMs = this.connects > before ? PAUSE_MS_MIN : Math.min(2 * pauseMs, PAUSE_MS_MAX)
      // Full jitter: phones that lost their connections together come back one by one.
      await sleep(Math.max(retryAfterMs, pauseMs * Math.random()))
    }
  }

  /** Resolves when the connection has ended, or could not be had. */
  async #stayConnected(away: AbortSignal): Promise<Closing> {
    try {
      const client = await this.#world.gate.through(() => this.#openConnection(away))
      const closing = await client.closed
      this.#setOnline(false)
      if (closing.reason === 'token_expired') await this.api.refresh()
      return closing
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      if (error.closing.reason === 'token_expired') await this.api.refresh()
      return error.closing
    }
  }

  async #openConnection(away: AbortSignal): Promise<StompClient> {
    const client = await StompClient.open({
      url: `${this.#world.url.replace('http', 'ws')}/ws`,
      accessToken: await this.api.accessToken(),
      onMessage: body => this.#onMessage(body as Told),
    })
    this.#client = client
    if (away.aborted) client.drop()
    await Promise.all([...QUEUES, ...this.#topics].map(destination => this.#subscribe(client, destination)))
    this.connects += 1
    this.#setOnline(true)
    return client
  }

  /** The topic of an ended call is refused, and the inbox reports the end anyway. */
  async #subscribe(client: StompClient, destination: string): Promise<void> {
    try {
      await client.subscribe(destination)
      const isUnwatched = destination.startsWith(TOPIC) && !this.#topics.has(destination)
      if (isUnwatched) client.unsubscribe(destination)
    } catch (error) {
      if (!destination.startsWith(TOPIC) || error instanceof ConnectionLost) throw error
      this.#topics.delete(destination)
    }
  }

  #setOnline(isOnline: boolean): void {
    this.#isOnline = isOnline
    if (isOnline) for (const resolve of this.#waiting.splice(0)) resolve()
    this.onConnection()
  }

  #onMessage(told: Told): void {
    if (this.#known.has(told.eventId)) return
    this.#known.add(told.eventId)
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.values().next().value!)
    this.onTold(told)
  }
}

interface SignedIn extends Tokens {
  readonly user: { readonly userId: string; readonly displayName: string }
}

async function signIn(api: Api, displayName: string): Promise<SignedIn> {
  const email = `simulator-${randomBytes(8).toString('hex')}@example.org`
  const { challengeId } = await api.send<{ challengeId: string }>('POST /app/api/login', {
    email,
    displayName,
  })
  const otp = await codeFor(api, email)
  const reply = await api.send<SignedIn>('POST /app/api/verify-login', { challengeId, otp })
  api.take(reply)
  return reply
}

/** The mail leaves behind the answer, so it may not be there yet. */
async function codeFor(api: Api, email: string): Promise<string> {
  for (let tries = 0; tries < CODE_TRIES_MAX; tries++) {
    const { items } = await api.send<{ items: readonly { otp?: string }[] }>(`GET /dev/inbox?to=${email}`)
    const otp = items[0]?.otp
    if (otp !== undefined) return otp
    await sleep(CODE_PAUSE_MS)
  }
  throw new Error(`no code for ${email} in /dev/inbox`)
}

/** The connection was lost, and another one is on its way. */
function ignoreLoss(error: unknown): void {
  if (!(error instanceof ConnectionLost)) throw error
}

const QUEUES = ['/user/queue/errors', '/user/queue/account', '/user/queue/contacts', '/user/queue/calls']
const TOPIC = '/topic/call.'
const [PAUSE_MS_MIN, PAUSE_MS_MAX] = [250, 4_000]
const CODE_TRIES_MAX = 200
const CODE_PAUSE_MS = 50
/** Events that are remembered. */
const KNOWN_MAX = 300
