/** A fake user's device: an app on the SDK, which can lose its network and its memory, and starts again. */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { Callsign, CallsignError, type CallsignEvents, memoryStorage } from '../../src/app/app.ts'
import { sentCode } from '../../src/app/development.ts'
import { fullJitterMs } from '../../src/back-off.ts'
import type { PublishedKeys } from '../../src/client/client.ts'
import { messageOf } from '../../src/errors.ts'
import type { Gate } from './gate.ts'

/** Shared by all fake users of a simulation. */
export interface World {
  /** `http://host:port` */
  readonly url: string
  /** As the server names them: a simulator has no other source, an app has them built in. */
  readonly pins: PublishedKeys
  /** Through which sign-ins and connections go. */
  readonly gate: Gate
  readonly stop: AbortSignal
  /** Says what went wrong, as a sentence. */
  readonly trouble: (sentence: string) => void
}

/** One run of the app. The network is gone once it is cut. */
interface Run {
  readonly app: Callsign
  readonly cut: AbortController
}

export class Phone {
  readonly displayName: string
  /** Connections that were accepted so far. */
  connects = 0
  /** How often the app was started. */
  starts = 0
  isOnline = false
  /** When the app asked last for a call to be started (`performance.now()`). */
  calledAtMs = 0
  readonly #world: World
  readonly #storage = memoryStorage()
  readonly #listeners: ((app: Callsign) => void)[] = []
  #run: Run

  private constructor(world: World, displayName: string) {
    this.#world = world
    this.displayName = displayName
    this.#run = this.#newRun()
    this.on('connection', state => {
      this.isOnline = state === 'connected'
      if (this.isOnline) this.connects += 1
    })
  }

  /** A new person's phone, signed in and online; once `given` is aborted no more are unpacked. */
  static unpack(world: World, displayName: string, given?: AbortSignal): Promise<Phone> {
    return world.gate.through(async () => {
      given?.throwIfAborted()
      const phone = new Phone(world, displayName)
      const email = `simulator-${randomBytes(8).toString('hex')}@example.org`
      await phone.app.signIn(email, () => sentCode(world.url, email), { displayName })
      await Promise.race([phone.#listed(), phone.app.once('error').then(error => Promise.reject(error))])
      return phone
    })
  }

  get app(): Callsign {
    return this.#run.app
  }

  get userId(): string {
    return this.app.userId ?? ''
  }

  /** As `Callsign.on`, of the app as it runs now and after each further start. */
  on<Name extends keyof CallsignEvents>(name: Name, listener: (event: CallsignEvents[Name]) => void): void {
    const listen = (app: Callsign) => {
      app.on(name, event => {
        if (app === this.app) listener(event)
      })
    }
    this.#listeners.push(listen)
    listen(this.app)
  }

  /** Starts the app again; resolves when it is online. */
  connect(): Promise<void> {
    return this.#world.gate.through(async () => {
      await this.app.resume()
      await this.online()
    })
  }

  /** Resolves when it is online, at once if it is. */
  async online(): Promise<void> {
    while (!this.isOnline) await this.app.once('connection')
  }

  /** Resolves when the app has done all that it does at its start: it reads its device list last. */
  async #listed(): Promise<void> {
    while (this.app.devices.listState === undefined) await this.app.once('changed')
  }

  /** The battery is empty: without a word, the network and all that was in memory are gone until `connect`. */
  drop({ isForgetful = false } = {}): void {
    const { app, cut } = this.#run
    // An app that was away when its call was given up has nothing to resume.
    if (isForgetful) void this.#storage.put(`call.${this.userId}`, null)
    cut.abort()
    this.isOnline = false
    this.#run = this.#newRun()
    void app.close()
  }

  /** Says goodbye. */
  async disconnect(): Promise<void> {
    await this.app.close()
  }

  #newRun(): Run {
    this.starts += 1
    const { url, pins } = this.#world
    const cut = new AbortController()
    const app = new Callsign({
      server: url,
      pins,
      storage: this.#storage,
      device: { deviceInfo: { platform: 'simulator', name: this.displayName } },
      fetch: (url, init) => this.#fetch(`${url}`, init, cut.signal),
      webSocket: socketsUntil(cut.signal),
      answerWithinMs: PATIENCE_MS,
      // No person is there to ask.
      onReset: 'go-on',
    })
    for (const listen of this.#listeners) listen(app)
    return { app, cut }
  }

  /** Asks again until the server is back. */
  async #fetch(url: string, init: RequestInit | undefined, cut: AbortSignal): Promise<Response> {
    if (url.endsWith('/call/start')) this.calledAtMs = performance.now()
    for (let failures = 1; ; failures++) {
      if (cut.aborted) throw new Error('the network is gone')
      try {
        const answer = await fetch(url, init)
        // Rates are what a simulation is to report, not to wait for.
        if (answer.status !== 429) return answer
        return new Response(answer.body, { status: 429, headers: { 'retry-after': '3600' } })
      } catch (error) {
        if (init?.signal?.aborted || this.#world.stop.aborted) throw error
      }
      // Phones that got no answer together ask one by one.
      await sleep(fullJitterMs(BACK_OFF, failures, Math.random()))
    }
  }
}

/** WebSockets that break, without a word, when the network is cut. */
function socketsUntil(cut: AbortSignal) {
  return class extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { perMessageDeflate: false })
      const breakOff = () => this.terminate()
      cut.addEventListener('abort', breakOff)
      this.once('close', () => cut.removeEventListener('abort', breakOff))
      if (cut.aborted) breakOff()
    }
  }
}

/** A sentence about a failure, with its code. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof CallsignError)) return messageOf(error)
  return isRate(error) ? RATES : `${error.code}: ${error.message}`
}

/** Refused by the rates of the server, or of its log. */
export function isRate({ status, members }: CallsignError): boolean {
  return status === 429 || members.status === 429
}

const RATES = 'too many requests for the rates of the server; start it with CALLSIGN_RATE_LIMITS=off'
/** A server that has not been back for so long is not coming back. */
const PATIENCE_MS = 120_000
const BACK_OFF = { firstMs: 100, maxMs: 3_000 }
