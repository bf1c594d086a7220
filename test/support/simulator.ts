/** Runs the simulator as a process of its own, and plays the one real person that its people are for. */

import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Client, Versions } from '@stomp/stompjs'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { randomId } from '../../src/app/random-id.ts'
import type { SimulatorCommand } from '../../src/operations/console/events.ts'
import { type Answer, App } from './app.ts'
import {
  type CallKey,
  fingerprintOf,
  hashOfSet,
  type KeyHolder,
  keyMembersOf,
  type OwnDevice,
  openCallKey,
  sealCallKey,
} from './call-key.ts'
import { spawnBound, startedProgram } from './programs.ts'

export class RunningSimulator {
  readonly lines: string[] = []
  stderr = ''
  readonly #child: ChildProcess
  readonly #ended: Promise<number | NodeJS.Signals>
  #onNews: (() => void)[] = []
  #hasEnded = false

  constructor(t: Test, http: string, args: readonly string[]) {
    const script = startedProgram('scripts/simulate')
    const child = spawnBound(process.execPath, ['--enable-source-maps', script, '--url', http, ...args], {})
    this.#child = child
    createInterface({ input: child.stdout }).on('line', line => {
      this.lines.push(line)
      this.#tellNews()
    })
    child.stderr.setEncoding('utf8').on('data', text => {
      this.stderr += text
    })
    this.#ended = new Promise(resolve => {
      child.once('close', (code, signal) => {
        this.#hasEnded = true
        this.#tellNews()
        resolve(code ?? signal ?? 'SIGKILL')
      })
    })
    t.teardown(() => child.kill('SIGKILL'))
  }

  /** The first line like that, now or when it comes. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    for (let at = 0; ; at++) {
      while (at >= this.lines.length) {
        if (this.#hasEnded) throw new Error(`no ${pattern} in\n${this.lines.join('\n')}\n${this.stderr}`)
        await new Promise<void>(resolve => this.#onNews.push(resolve))
      }
      const match = pattern.exec(this.lines[at]!)
      if (match !== null) return match
    }
  }

  /** The next state that is so, of what `--json` prints. */
  async state(isSo: (state: Answer['body']) => boolean): Promise<Answer['body']> {
    for (let at = 0; ; at++) {
      while (at >= this.lines.length) await new Promise<void>(resolve => this.#onNews.push(resolve))
      const state = JSON.parse(this.lines[at]!)
      if (isSo(state)) return state
    }
  }

  tell(command: SimulatorCommand): void {
    this.write(`${JSON.stringify(command)}\n`)
  }

  write(text: string | Uint8Array): void {
    this.#child.stdin!.write(text)
  }

  closeInput(): void {
    this.#child.stdin!.end()
  }

  /** Resolves with how it ended. */
  ended(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals> {
    if (signal !== undefined) this.#child.kill(signal)
    return this.#ended
  }

  #tellNews(): void {
    for (const resolve of this.#onNews.splice(0)) resolve()
  }
}

/** A person with a key pair, who does by HTTP all that an app does. */
export class RealUser {
  readonly app: App
  readonly userId: string
  readonly self: OwnDevice

  private constructor(app: App, userId: string, self: OwnDevice) {
    this.app = app
    this.userId = userId
    this.self = self
  }

  /** Signs in with a code that is known. */
  static async signIn(http: string, email: string, otp: string): Promise<RealUser> {
    const app = new App(http)
    const { challengeId } = await app.get(200, 'POST /app/api/login', { email, displayName: 'Rita Real' })
    const { user } = app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
    const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
    const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
    const registered = { publicKey: Buffer.from(publicKey).toString('base64') }
    const { deviceId } = await app.get(201, 'POST /app/api/register_device', registered)
    const name = `${user.userId}_${deviceId}`
    return new RealUser(app, user.userId, { name, publicKey, privateKey: keys.privateKey })
  }

  /** A link that lets other users ask to be contacts. */
  async shareLink(): Promise<string> {
    return (await this.app.get(201, 'POST /app/api/share-token', {})).url
  }

  /** Accepts every open request; resolves with the askers' ids by name. */
  async acceptAll(): Promise<Map<string, string>> {
    const { items } = await this.app.get(200, 'GET /app/api/friend-request')
    const ids = new Map<string, string>()
    for (const { user } of items) {
      await this.app.get(200, 'POST /app/api/friend-request/accept', { userId: user.userId })
      ids.set(user.displayName, user.userId)
    }
    return ids
  }

  /** The only device of a contact. */
  async deviceOf(userId: string): Promise<KeyHolder> {
    const { users } = await this.app.get(200, `GET /app/api/user/publicKeys?userIds=${userId}`)
    const [{ deviceId, publicKey }] = users[0].devices
    return { name: `${userId}_${deviceId}`, publicKey: Uint8Array.from(Buffer.from(publicKey, 'base64')) }
  }

  /** Calls them with a new key. */
  async call(userId: string): Promise<CallKey & { readonly callId: string }> {
    const callKey = Uint8Array.from(randomBytes(32))
    const to = await this.deviceOf(userId)
    const callId = randomId()
    const keyMembers = await keyMembersOf([this.self, to])
    const key = { callKey, setHash: await hashOfSet(keyMembers) }
    const encryptedAESKeys = { [to.name]: await sealCallKey(key, this.self, to, { callId, epoch: 1 }) }
    const body = { callId, calleeIds: [userId], encryptedAESKeys, keyMembers, isVideo: false }
    await this.app.get(201, 'POST /app/api/call/start', body)
    return { callId, ...key }
  }

  /** Gives a call's key to the device that asks for it. */
  async grant(callId: string, key: CallKey): Promise<void> {
    const { userId: requesterUserId, deviceId: requesterDeviceId, nonce } = await this.#nextAsk()
    const to = await this.deviceOf(requesterUserId)
    const binding = { callId, epoch: 1, nonce: Uint8Array.from(Buffer.from(nonce, 'base64')) }
    const encryptedAESKey = await sealCallKey(key, this.self, to, binding)
    const body = { requesterUserId, requesterDeviceId, encryptedAESKey, epoch: 1 }
    await this.app.get(202, `POST /app/api/call/${callId}/accept-rejoin`, body)
  }

  /** A `participant_request_rejoin`, now or when it comes. */
  async #nextAsk(): Promise<Answer['body']> {
    const brokerURL = `${this.app.http.replace('http', 'ws')}/ws`
    const client = new Client({
      brokerURL,
      webSocketFactory: () => new WebSocket(brokerURL, Versions.default.protocolVersions()),
      connectHeaders: { Authorization: `Bearer ${this.app.accessToken}` },
    })
    const ask = new Promise<Answer['body']>(resolve => {
      client.onConnect = () => {
        client.subscribe('/user/queue/calls', ({ body }) => {
          const event = JSON.parse(body)
          if (event.type === 'participant_request_rejoin') resolve(event)
        })
      }
    })
    client.activate()
    return ask.finally(() => client.deactivate())
  }

  /** Answers a call; resolves with the fingerprint of its key. */
  async answer(callId: string, callerId: string): Promise<string> {
    const { encryptedAESKey } = await this.app.get(200, `POST /app/api/call/${callId}/join`)
    const caller = await this.deviceOf(callerId)
    const binding = { callId, epoch: 1 }
    return fingerprintOf(await openCallKey(encryptedAESKey, caller, this.self, binding), binding)
  }

  /** The newest row of the call history. */
  async lastCall(): Promise<Answer['body']> {
    return (await this.app.get(200, 'GET /app/api/call/history')).items[0]
  }
}
