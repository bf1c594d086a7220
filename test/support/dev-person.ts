/** A person on an ordinary development server: the code comes from its inbox, and the device has a push token. */

import { randomBytes, randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { App, newPublicKey } from './app.ts'
import { SocketClient } from './socket-client.ts'
import { proveByCode } from './step-up.ts'

export class DevPerson {
  readonly app: App
  readonly email: string
  readonly userId: string
  readonly deviceId: string

  private constructor(app: App, email: string, userId: string, deviceId: string) {
    this.app = app
    this.email = email
    this.userId = userId
    this.deviceId = deviceId
  }

  /** Signs in by a code to `<name>@example.org` and registers a device, whose key goes into the log. */
  static async signIn(http: string, name: string): Promise<DevPerson> {
    const app = new App(http)
    const email = `${name.toLowerCase()}@example.org`
    const { challengeId } = await app.get(200, 'POST /app/api/login', { email, displayName: name })
    const otp = await codeFor(app, email)
    const { user } = app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
    const device = { publicKey: newPublicKey('P-256 SPKI'), push: { fcmToken: randomUUID() } }
    const { deviceId } = await app.get(201, 'POST /app/api/register_device', device)
    return new DevPerson(app, email, user.userId, deviceId)
  }

  get device(): string {
    return `${this.userId}_${this.deviceId}`
  }

  /** Proves once more who the person is, by a code. */
  async prove(): Promise<void> {
    const used = await codeFor(this.app, this.email)
    await proveByCode(this.app, () => codeFor(this.app, this.email, used))
  }

  async befriend(other: DevPerson): Promise<void> {
    await this.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: other.userId })
    await other.app.get(200, 'POST /app/api/friend-request/accept', { userId: this.userId })
  }

  /** Calls these people, with bytes in place of the call's key: a server can't tell. Gives the id of the call. */
  async call(...callees: readonly DevPerson[]): Promise<string> {
    const encryptedAESKeys = Object.fromEntries(
      callees.map(({ device }) => [device, randomBytes(113).toString('base64')]),
    )
    const calleeIds = callees.map(({ userId }) => userId)
    const start = { calleeIds, encryptedAESKeys, isVideo: true }
    return (await this.app.get(201, 'POST /app/api/call/start', start)).callId
  }

  /** Its device is connected until the test ends. */
  async connect(t: Test): Promise<SocketClient> {
    const peer = await SocketClient.connect('websocket', this.app.http, this.app.accessToken!)
    t.teardown(() => peer.destroy())
    return peer
  }
}

/** The code leaves after the answer to the request that asked for it. */
export async function codeFor(app: App, email: string, used?: string): Promise<string> {
  for (;;) {
    const { items } = await app.get(200, `GET /dev/inbox?to=${encodeURIComponent(email)}`)
    const fresh = items.find(({ otp }: { otp?: string }) => otp !== undefined && otp !== used)
    if (fresh !== undefined) return fresh.otp
    await new Promise(resolve => setImmediate(resolve))
  }
}
