/** One user of a calling app on one device: sign-in, contacts, devices and calls. */

import { fullJitterMs } from '../back-off.ts'
import { type Active, endingBy, saysSuspended } from './active.ts'
import type { Call, CallPerson } from './calls/call.ts'
import { Calls, readKept, type StartOptions } from './calls/calls.ts'
import { KeyExchange } from './calls/key-exchange.ts'
import { type PushAction, Pushes } from './calls/push.ts'
import { CallsignError, hasCode, isAllowed } from './callsign-error.ts'
import type { CallsignEvents } from './callsign-events.ts'
import { type CallsignOptions, logOf } from './callsign-options.ts'
import { Connection } from './connection/connection.ts'
import type { ConnectionState } from './connection/phase.ts'
import { Contacts } from './contacts.ts'
import { type DeviceKeysOf, webCryptoKeys } from './devices/device-keys.ts'
import { DeviceRegistration, type RegisteredDevice } from './devices/device-registration.ts'
import { Devices } from './devices/devices.ts'
import type { KeyEvent } from './devices/key-log.ts'
import { OwnDeviceList } from './devices/own-device-list.ts'
import { Emitter } from './emitter.ts'
import { Names } from './names.ts'
import { Account } from './session/account.ts'
import { CodeSignIn, type SignInOptions, type WaitingSignIn } from './session/code-sign-in.ts'
import type { Addressed, BodyOf, OperationName, ReplyOf } from './session/operations.ts'
import { addPasskey, browserPasskeys, signInByPasskey } from './session/passkeys.ts'
import { Profile } from './session/profile.ts'
import { Server } from './session/server.ts'
import { Session } from './session/session.ts'
import { Sessions } from './session/sessions.ts'
import { type Confirm, isSignedInBy, keepAddress } from './session/sign-in.ts'
import { type ProofNeeded, StepUp } from './session/step-up.ts'
import { UserTokens } from './session/user-tokens.ts'
import type { Badge, LoginMethod, QueueEvent, SignedIn, User } from './wire.ts'

export class Callsign extends Emitter<CallsignEvents> {
  /** The keys of the log that are built into the app. */
  readonly pins: CallsignOptions['pins']
  readonly server: string
  readonly #options: CallsignOptions
  readonly #server: Server
  readonly #keysOf: DeviceKeysOf
  #session: Promise<Session> | undefined
  #beginning: Promise<Active> | undefined
  #active: Active | undefined
  #profile = new Profile()
  #connections = 0
  /** A sign-in that is under way when the app is closed does not connect. */
  #closings = 0
  readonly #pushes: Pushes

  constructor(options: CallsignOptions) {
    super()
    this.#options = { passkeys: browserPasskeys(), ...options }
    this.#server = new Server({ ...options, url: options.server })
    this.#keysOf = options.keysOf ?? webCryptoKeys(options.storage)
    ;({ pins: this.pins, server: this.server } = options)
    this.#pushes = new Pushes(options)
  }

  /** Undefined until it was read from the server. */
  get user(): User | undefined {
    return this.#profile.user
  }

  /** Why this device may do little yet: its user has to approve it (`devices.listState` has the code). Undefined once it may do all. */
  get restriction(): User['restriction'] {
    return this.user?.restriction
  }

  /** For the badge of the app; undefined until the server has said it. */
  get badge(): Badge | undefined {
    return this.#profile.badge
  }

  get userId(): string | undefined {
    return this.#active?.device.userId
  }

  get deviceId(): string | undefined {
    return this.#active?.device.deviceId
  }

  get connection(): ConnectionState {
    return this.#active?.connection.state ?? 'off'
  }

  /** Attempts to connect that failed in a row: after a few, say that there is no connection. */
  get connectionFailures(): number {
    return this.#active?.connection.failures ?? 0
  }

  /** Those that ring, and the one that this device is in. */
  get calls(): readonly Call[] {
    return this.#active?.calls.all ?? []
  }

  get contacts(): Contacts {
    return this.#assertActive().contacts
  }

  get devices(): Devices {
    return this.#assertActive().devices
  }

  /** Where the user is signed in. */
  get sessions(): Sessions {
    return this.#assertActive().sessions
  }

  get account(): Account {
    return this.#assertActive().account
  }

  /** The calls of before. */
  get history(): Pick<Calls, 'history' | 'markHistorySeen' | 'forgetHistory'> {
    return this.#assertActive().calls
  }

  /** The time by the server's clock. */
  nowMs(): number {
    return this.#server.nowMs()
  }

  /**
   * Goes on with the session in the storage. Resolves with the user's id, undefined without one. Works without
   * a network, too, once this device is registered.
   */
  async resume(): Promise<string | undefined> {
    const session = await this.#openSession()
    return session.userId === undefined ? undefined : (await this.#begin(session)).device.userId
  }

  /**
   * Signs in by a code to an email address or phone number, makes this device's keys and registers them. Goes on with the
   * session in the storage where it is of the same address; rejects with `ALREADY_SIGNED_IN` where it is of another. Where
   * the account has other devices it rejects with `SIGN_IN_WAITING`, to go on with `finishSignIn`.
   */
  signIn(address: string, confirm: Confirm, more: SignInOptions = {}): Promise<User> {
    return this.#signInBy(address, session => this.#codeSignIn(session).signIn(address, confirm, more))
  }

  /** A sign-in of this app that waits for its owner, also from before a restart. */
  async waitingSignIn(): Promise<WaitingSignIn | undefined> {
    return this.#codeSignIn(await this.#openSession()).waiting()
  }

  /**
   * Waits, as long as it takes, until a device of the user approves the sign-in, or its time has passed, and resolves as
   * `signIn`. Rejects with `SIGN_IN_REFUSED`, or with `SIGN_IN_GONE` where none waits any more.
   */
  async finishSignIn(): Promise<User> {
    const closings = this.#closings
    const session = await this.#openSession()
    const { signedIn, address } = await this.#codeSignIn(session).finish(() => closings !== this.#closings)
    return this.#welcome(session, signedIn, address, closings)
  }

  /** Signs in by what an identity provider has signed, such as Google's ID token. */
  signInByProvider(
    provider: string,
    signed: Pick<BodyOf<'POST platform-login'>, 'idToken' | 'authorizationCode' | 'nonce' | 'displayName'>,
  ): Promise<User> {
    return this.#signInBy(provider, session => session.platformLogin({ ...signed, platform: provider }))
  }

  /** Signs in by a passkey, which waits for no other device. Rejects with `PASSKEY_CANCELLED` where the person gives none. */
  signInByPasskey(): Promise<User> {
    return this.#signInBy('passkey', session => signInByPasskey(session, this.#options.passkeys))
  }

  /**
   * Signs in by a token that the app's own backend got from the server: each is good once, for a minute. Rejects with
   * `ALREADY_SIGNED_IN` where there is a session, which `resume` goes on with. May wait as `signIn` does.
   */
  signInByToken(token: string): Promise<User> {
    return this.#signInBy(token, session => this.#codeSignIn(session).signInByToken(token))
  }

  /** Makes a passkey of this device, or of the person's password manager, a login method; `label` is what they call it. */
  async addPasskey({ label }: { readonly label?: string } = {}): Promise<LoginMethod> {
    return addPasskey(await this.#openSession(), this.#options.passkeys, label)
  }

  /** Ends the session on the server. Keys stay: the next sign-in of this user is the same device. */
  async signOut({ allDevices = false } = {}): Promise<void> {
    const session = await this.#openSession()
    if (session.userId !== undefined) await session.logout({ allDevices })
    await this.#end()
  }

  /** Calls contacts. Rejects, and nothing rings, unless all their devices verify. */
  call(people: readonly (string | Pick<CallPerson, 'userId'>)[], options: StartOptions = {}): Promise<Call> {
    const userIds = people.map(one => (typeof one === 'string' ? one : one.userId))
    return this.#assertActive().calls.start(userIds, options)
  }

  /** Brings a call of the user to this device: from another device, or one that they had left or missed. */
  join(callId: string): Promise<Call> {
    return this.#assertActive().calls.join(callId)
  }

  /** Any operation of docs/openapi.json, also before this device is registered; `GET meta` also without a session. */
  async request<Name extends OperationName>(
    operation: Name,
    body: BodyOf<Name>,
    ...addressed: Addressed<Name>
  ): Promise<ReplyOf<Name>> {
    const from = operation === 'GET meta' ? this.#server : await this.#openSession()
    return from.request(operation, body, ...addressed)
  }

  /** Subscribes to a topic, also after each reconnection. Resolves with the function that ends it. */
  watch(destination: string, listener: (message: unknown) => void): Promise<() => void> {
    return this.#assertActive().connection.watch(destination, listener)
  }

  /** Sends a message to a destination. Rejects with the server's refusal, or with `OFFLINE`. */
  send(destination: string, body: unknown): Promise<void> {
    return this.#assertActive().connection.send(destination, body)
  }

  /** A JWT that shows a service of the operator who the user is, good for a minute at least (docs/build/backend.md). */
  async tokenFor(audience: string): Promise<string> {
    return this.#assertActive().userTokens.for(audience)
  }

  /** Credentials for the relay of media, for one call. */
  relay(): Promise<ReplyOf<'GET /credentials'>> {
    return this.request('GET /credentials', undefined)
  }

  /** Says how to show a push. Does not wait for the network; the connection is made beside. */
  async onPush(payload: Readonly<Record<string, unknown>>): Promise<PushAction> {
    await this.resume()
    const active = this.#active
    const judged = active && (await this.#pushes.judge(payload, active.device, this.#server))
    if (active === undefined || judged === undefined) return { show: 'nothing' }
    active.connection.connect()
    active.calls.onPush(judged.action, judged.members)
    return judged.action
  }

  /** Connects here in place of another tab, which has the state `elsewhere` then; also comes back from there. */
  takeOver(): void {
    this.#assertActive().connection.connect({ takeOver: true })
  }

  /** Disconnects, and keeps the session for the next start. Calls go on without this device. */
  async close(): Promise<void> {
    this.#closings += 1
    await this.#session?.catch(() => {})
    await this.#beginning?.catch(() => {})
    await this.#end()
  }

  #codeSignIn(session: Session): CodeSignIn {
    return new CodeSignIn(this.#server, session, this.#options.storage, this.#keysOf)
  }

  #assertActive(): Active {
    if (this.#active !== undefined) return this.#active
    throw new CallsignError('SIGNED_OUT', 'You are signed out.')
  }

  #openSession(): Promise<Session> {
    this.#session ??= Session.open(this.#server, this.#options.storage)
      .then(session => {
        session.onOver(
          error => void this.#end(endingBy(error.members.reason)).then(() => this.emit('signed-out', error)),
        )
        const ask = (proof: ProofNeeded) => this.emit('proof-needed', proof, proof.refuse)
        session.proveBy(new StepUp(session, this.#keysOf, this.#options.passkeys, ask))
        return session
      })
      .catch(error => {
        this.#session = undefined
        throw error
      })
    return this.#session
  }

  async #signInBy(method: string, signIn: (session: Session) => Promise<SignedIn>): Promise<User> {
    const closings = this.#closings
    const session = await this.#openSession()
    if (session.userId !== undefined) return this.#goOn(session, method, closings)
    return this.#welcome(session, await signIn(session), method, closings)
  }

  async #goOn(session: Session, address: string, closings: number): Promise<User> {
    if (!(await isSignedInBy(this.#options.storage, session.userId, address))) {
      throw new CallsignError('ALREADY_SIGNED_IN', 'Another user is signed in. Sign out first, or resume.')
    }
    if (closings === this.#closings) await this.#begin(session)
    return this.#profile.user ?? (await new Account(session).read())
  }

  async #welcome(session: Session, { user }: SignedIn, address: string, closings: number): Promise<User> {
    await keepAddress(this.#options.storage, user.userId, address)
    if (closings !== this.#closings) return user
    this.#profile.user = user
    const { account } = await this.#begin(session, { isNew: true })
    // Its device may be one that the user's list names.
    if (user.restriction !== undefined) await this.#readUser(account).catch(error => this.#report(error))
    return this.#profile.user ?? user
  }

  /** Once for all who ask at the same time. */
  #begin(session: Session, { isNew = false } = {}): Promise<Active> {
    this.#beginning ??= this.#beginNow(session, isNew).catch(error => {
      this.#beginning = undefined
      throw error
    })
    return this.#beginning
  }

  async #beginNow(session: Session, isNew: boolean): Promise<Active> {
    const registration = new DeviceRegistration(this.#server, session, this.#options.storage, this.#keysOf)
    const known = await registration.known()
    const registering = registration.register(await this.#pushes.detailsFor(session.userId))
    // A device that is known can ring without a network, or an answer; a new session has no device before.
    const reported = known && registering.catch(error => this.#report(error))
    if (isNew) await reported
    const active = await this.#activate(session, registration, known ?? (await registering))
    this.#active = active
    active.connection.connect()
    this.#changed()
    return active
  }

  async #activate(
    session: Session,
    registration: DeviceRegistration,
    device: RegisteredDevice,
  ): Promise<Active> {
    // A third of the SDK, which a bundler may load later.
    const { KeyLog } = await import('./devices/key-log.ts')
    const { storage, webSocket, onReset = 'ask' } = this.#options
    const server = this.#server
    const { userId, deviceId } = device
    // Each connection reads it again, and says why where it can't.
    const kept = await readKept(storage, userId).catch(() => ({}))
    const onEvent = (event: KeyEvent) => this.emit('keys', event)
    const log = logOf(this.#options)
    const keyLog = new KeyLog({ server, session, storage, device, log, onEvent, onReset })
    const exchange = new KeyExchange(keyLog, session)
    const devices = new Devices(session, keyLog, new OwnDeviceList(server, session, device, keyLog), () =>
      this.#changed(),
    )
    const account = new Account(session)
    const names: Names = new Names(() => this.#onNames())
    const contacts = new Contacts(session, keyLog, names)
    const connection = new Connection({
      server,
      session,
      tabLock: `callsign ${this.#options.server} ${userId}_${deviceId}`,
      ...(webSocket && { webSocket }),
      listener: {
        onState: state => {
          if (state !== 'connected') calls.onDisconnected()
          if (state === 'elsewhere') calls.closeAll('moved')
          this.emit('connection', state)
          this.#changed()
        },
        onConnected: () => void this.#onConnected().catch(error => this.#report(error)),
        onEvent: event => this.#onEvent(event),
        onDeviceMissing: async () => void (await registration.register()),
        onTrouble: error => this.#report(error),
      },
    })
    const calls = new Calls({
      ...{ server, session, connection, exchange, names, userId, deviceId, storage, kept },
      onRinging: call => this.emit('ringing', call),
      onResumed: call => this.emit('resumed', call),
      onChanged: () => this.#changed(),
      onLeftOut: device => onEvent({ kind: 'left-out', ...device }),
    })
    void keyLog.checkOwn().catch(error => this.#report(error))
    const sessions = new Sessions(session, device)
    const userTokens = new UserTokens(session, server.platform.nowMs)
    return { device, account, connection, calls, contacts, names, devices, sessions, userTokens }
  }

  async #onConnected(): Promise<void> {
    const { connection, calls, account, contacts, devices } = this.#assertActive()
    const { platform } = this.#server
    const turn = ++this.#connections
    const isSame = () => turn === this.#connections && connection.state === 'connected'
    for (let failures = 1; isSame(); failures++) {
      try {
        const isAll = await isAllowed(calls.onConnected())
        await this.#readUser(account)
        await devices.load()
        if (isAll) await contacts.loadNames()
        // The server ends the connection once the device is approved.
        return isAll ? this.emit('ready', undefined) : undefined
      } catch (error) {
        this.#report(error)
        if (hasCode(error, 'KEYS_REFUSED')) return
      }
      await platform.wait(fullJitterMs(READ_AGAIN, failures, platform.random()))
    }
  }

  async #readUser(account: Account): Promise<void> {
    const profile = this.#profile
    // Else the user has signed out.
    if ((await profile.read(account)) && this.#profile === profile) this.#changed()
  }

  #onNames(): void {
    this.#active?.calls.onNames()
    this.#changed()
  }

  async #onEvent(event: QueueEvent): Promise<void> {
    const { calls, devices, names, sessions } = this.#assertActive()
    if (sessions.isOwnStart(event)) return
    names.onEvent(event)
    this.#profile.onEvent(event)
    try {
      // Before the connection ends, which says only that the session has ended.
      if (saysSuspended(event)) calls.closeAll('suspended')
      await calls.onMessage(event)
      await devices.onMessage(event)
    } finally {
      this.emit(event.type, event as never)
      this.#changed()
    }
  }

  async #end(ending: ReturnType<typeof endingBy> = 'left'): Promise<void> {
    const active = this.#active
    this.#active = this.#beginning = undefined
    this.#profile = new Profile()
    active?.calls.closeAll(ending)
    await active?.connection.disconnect()
    this.#changed()
  }

  #changed(): void {
    this.emit('changed', undefined)
  }

  #report(error: unknown): void {
    if (hasCode(error, 'SIGNED_OUT', 'OFFLINE')) return
    this.emit('error', error instanceof CallsignError ? error : new CallsignError('INTERNAL', String(error)))
  }
}

const READ_AGAIN = { firstMs: 10_000, maxMs: 600_000 }
