/**
 * Joins the parts of the page for the person who is signed in to this tab: the views' buttons, and signing in and
 * out.
 */

import { possessionMessage } from '../../src/client/client.ts'
import { Calls } from './calls.ts'
import { Contacts, isTokenGone, sharedToken, tokenIn } from './contacts.ts'
import { base64FromBytes, bytesFromBase64, deviceKeyOf, forgetDeviceKey, signWith } from './device-key.ts'
import { Devices } from './devices.ts'
import { KeyLog } from './key-log.ts'
import { OwnList } from './own-list.ts'
import { Problem, Session, type SignedIn, sentenceOf } from './session.ts'
import { type Event, Socket } from './socket.ts'
import {
  type Challenge,
  type Connection,
  type Device,
  SIGNED_OUT,
  type State,
  type Store,
  type User,
  type WaitingDevice,
} from './state.ts'
import { holdName, isOwnTab, mayKeep, namesTaken, releaseName } from './tabs.ts'

/** A signed-in person's parts. */
interface Person {
  readonly contacts: Contacts
  readonly calls: Calls
  readonly socket: Socket
  readonly keyLog: KeyLog
  readonly ownList: OwnList
}

interface ChallengeReply {
  readonly challengeId: string
  readonly sentTo: string
  readonly otpLength: number
  readonly resendIn: number
}

interface DeviceReply {
  readonly deviceId: string
  readonly publicKeyHash: string
}

export class App {
  readonly #store: Store
  readonly #session = new Session()
  readonly #devices: Devices
  #person: Person | undefined
  #token = sharedToken(location)
  /** The fragment of the link with the token. */
  #fragment = location.hash

  constructor(store: Store) {
    this.#store = store
    this.#devices = new Devices(store, this.#session)
    this.#session.onOver = sentence => this.#leave(sentence)
  }

  get #state(): State {
    return this.#store.state
  }

  /** Shows the sign-in, or goes on with the person whom this tab was signed in as. */
  async start(): Promise<void> {
    if (!window.isSecureContext) return this.#store.update({ stage: 'unusable' })
    if (!mayKeep()) return this.#store.update({ stage: 'forgetful' })
    if (!(await isOwnTab())) {
      this.#session.drop()
      sessionStorage.clear()
      this.#store.say('good', 'This tab is a copy of another: it can be somebody else.')
    }
    if (!this.#session.isSignedIn) return this.#showSignIn()
    await this.act('start', async () => this.#enter(await this.#session.request<User>('GET', 'user')))
    if (this.#state.stage === 'starting') await this.#showSignIn()
  }

  /** Runs what a button does: the button waits, and what goes wrong is said. */
  async act(name: string, action: () => Promise<void> | void): Promise<void> {
    if (this.#state.doing.has(name)) return
    this.#store.update({ doing: new Set([...this.#state.doing, name]) })
    try {
      await action()
    } catch (error) {
      this.#store.say('bad', sentenceOf(error))
    } finally {
      this.#store.update({ doing: new Set([...this.#state.doing].filter(one => one !== name)) })
    }
  }

  get contacts(): Contacts {
    return this.#signedIn.contacts
  }

  get calls(): Calls {
    return this.#signedIn.calls
  }

  async askForCode(identifier: string, displayName: string): Promise<void> {
    const body = { identifier, ...(displayName === '' ? {} : { displayName }) }
    const reply = await this.#session.request<ChallengeReply>('POST', 'login', body)
    this.#store.update({ stage: 'code', notices: [], challenge: challengeOf(reply, identifier) })
  }

  async askForAnotherCode(): Promise<void> {
    const { challengeId, identifier } = this.#challenge
    const reply = await this.#session.request<ChallengeReply>('POST', 'resend-otp', { challengeId })
    this.#store.update({ challenge: challengeOf({ ...reply, challengeId }, identifier) })
    this.#store.say('good', 'Another code is on its way; the last one is void.')
  }

  /** The newest code that the development server has sent to the address. */
  async fetchCode(): Promise<string> {
    const { identifier } = this.#challenge
    // As the server writes numbers; an address has none of these.
    const to = identifier.startsWith('+') ? identifier.replace(/[\s().-]/g, '') : identifier
    const path = `/dev/inbox?to=${encodeURIComponent(to)}`
    const { items } = await this.#session.request<{ items: readonly { otp?: string }[] }>('GET', path)
    const otp = items.find(item => item.otp !== undefined)?.otp
    if (otp === undefined)
      throw new Error('There is no code in the inbox yet. Look into the terminal, or try again.')
    return otp
  }

  async signIn(otp: string): Promise<void> {
    const { challengeId } = this.#challenge
    try {
      const reply = await this.#session.request<SignedIn>('POST', 'verify-login', { challengeId, otp })
      this.#session.take(reply)
      await this.#enter(reply.user)
    } catch (error) {
      if (error instanceof Problem && error.code === 'CHALLENGE_GONE') await this.#showSignIn()
      throw error
    }
  }

  async goBack(): Promise<void> {
    await this.#showSignIn()
  }

  async signOut(): Promise<void> {
    if (this.#state.call !== undefined) await this.calls.leave().catch(() => {})
    await this.#session.request('POST', 'logout').catch(() => {})
    this.#session.drop()
    this.#leave(undefined)
  }

  /** Removes another device. If that makes room for this one, it is registered now. */
  async removeDevice(device: Device): Promise<void> {
    await this.#devices.remove(device)
    const { stage, user } = this.#state
    if (stage === 'crowded' && user !== undefined) return this.#enter(user)
    await this.#onDevicesLoaded()
  }

  /** Brings the connection to this tab; another tab of the same person has had it. */
  connectHere(): void {
    this.#signedIn.socket.connect()
  }

  async askByToken(): Promise<void> {
    const { invitedBy } = this.#state
    if (invitedBy !== undefined) await this.contacts.ask(invitedBy.token)
  }

  putInvitationAway(): void {
    this.#store.update({ invitedBy: undefined })
  }

  async copyLink(): Promise<void> {
    await navigator.clipboard.writeText(this.#state.shareLink ?? '')
    this.#store.say('good', 'The link is copied.')
  }

  /** The user typed or pasted a link, or its token alone. */
  async openLink(text: string): Promise<void> {
    this.#token = tokenIn(text)
    this.#fragment = text.includes('#') ? text.slice(text.indexOf('#')) : ''
    if (this.#token === undefined) throw new Error('That is no share link: it has no token in it.')
    await this.#resolveToken()
  }

  /** Another link was opened in this tab. */
  async onHashChange(): Promise<void> {
    this.#token = sharedToken(location)
    this.#fragment = location.hash
    if (this.#person !== undefined) await this.act('share', () => this.#resolveToken())
  }

  dismiss(id: number): void {
    this.#store.dismiss(id)
  }

  async #showSignIn(): Promise<void> {
    this.#store.update({ stage: 'signed-out', challenge: undefined, namesTaken: await namesTaken() })
  }

  async #enter(user: User): Promise<void> {
    const registered = await this.#register(user).catch(error => {
      if (!(error instanceof Problem && error.code === 'DEVICE_LIMIT')) throw error
    })
    if (registered === undefined) return this.#askForRoom(user)
    const { keyLog, ownList } = registered
    holdName(user.displayName)
    const contacts = new Contacts(this.#store, this.#session, keyLog, user.userId)
    const socket = new Socket(this.#session, {
      onConnected: () => void this.#onConnected(),
      onConnection: connection => this.#onConnection(connection),
      onEvent: event => this.#onEvent(event),
      onTrouble: sentence => this.#store.say('bad', sentence),
      onSignedOut: sentence => {
        this.#session.drop()
        this.#leave(sentence)
      },
    })
    const calls = new Calls(this.#store, this.#session, socket, keyLog, user.userId)
    this.#person = { contacts, socket, keyLog, calls, ownList }
    const { userId, displayName } = user
    this.#store.update({ stage: 'signed-in', challenge: undefined, user: { userId, displayName } })
    socket.connect()
    await this.#resolveToken()
    await this.#checkOwnKey()
  }

  /** Puts a device on the person's list, which they have compared the codes for. */
  async approve(device: WaitingDevice): Promise<void> {
    await this.#signedIn.ownList.approve(device)
    this.#store.say('good', `${device.name} is on your device list now.`)
    await this.contacts.renewLink()
  }

  /** Makes this device the only one on the person's list. */
  async startOver(): Promise<void> {
    await this.#signedIn.ownList.startOver()
    await this.contacts.renewLink()
  }

  /** Shows the digits to compare with a contact. */
  async showCode({ userId }: User): Promise<void> {
    const code = await this.#signedIn.keyLog.codeWith(userId)
    this.#store.update({ codes: new Map(this.#state.codes).set(userId, code) })
  }

  async #askForRoom({ userId, displayName }: User): Promise<void> {
    await this.#devices.load()
    this.#store.update({ stage: 'crowded', challenge: undefined, user: { userId, displayName } })
  }

  /** Registers this browser's key for the person: the same key again is the same device. */
  async #register({ userId }: User): Promise<Pick<Person, 'keyLog' | 'ownList'>> {
    const { log } = await this.#session.request<{ log: { vkey: string; vrfPublicKey: string } }>(
      'GET',
      'meta',
    )
    const deviceInfo = { platform: 'web', name: browserName() }
    let key = await deviceKeyOf(userId)
    const register = async () => {
      const { publicKey, signing } = key
      const possession = await signWith(signing, possessionMessage(bytesFromBase64(this.#session.challenge)))
      const signingMembers = { signingKey: signing.publicKey, possession: base64FromBytes(possession) }
      const body = { publicKey, ...signingMembers, deviceInfo }
      return this.#session.request<DeviceReply>('POST', 'register_device', body)
    }
    const device = await register().catch(async error => {
      if (!(error instanceof Problem && isOfAnother(error))) throw error
      await forgetDeviceKey(userId)
      key = await deviceKeyOf(userId)
      return register()
    })
    const { deviceId, publicKeyHash } = device
    const own = { userId, deviceId, publicKeyHash, publicKey: key.publicKey }
    const say = this.#store.say.bind(this.#store)
    const keyLog = new KeyLog(this.#session, log, own, key.privateKey, say)
    const ownList = new OwnList({ store: this.#store, session: this.#session, keyLog, userId, deviceId, key })
    return { keyLog, ownList }
  }

  async #checkOwnKey(): Promise<void> {
    this.#store.update({ ownKey: { kind: 'checking' } })
    this.#store.update({ ownKey: await this.#signedIn.keyLog.checkOwn() })
  }

  async #resolveToken(): Promise<void> {
    if (this.#token === undefined) return
    try {
      await this.contacts.resolve(this.#token, this.#fragment)
    } catch (error) {
      if (!isTokenGone(error)) throw error
      this.#store.say('bad', 'The link is not good any more: ask for a new one.')
    }
    // Else it would be asked again with each reload.
    this.#token = undefined
    history.replaceState(undefined, '', location.pathname)
  }

  async #onConnected(): Promise<void> {
    try {
      await Promise.all([
        this.#loadDevices(),
        this.contacts.load(),
        this.calls.loadHistory(),
        this.calls.onConnected(),
      ])
    } catch (error) {
      this.#store.say('bad', sentenceOf(error))
    }
  }

  async #loadDevices(): Promise<void> {
    await this.#devices.load()
    await this.#onDevicesLoaded()
  }

  async #onDevicesLoaded(): Promise<void> {
    await this.#signedIn.ownList.load()
    await this.contacts.renewLink()
  }

  #onConnection(connection: Connection): void {
    this.#store.update({ connection })
    if (connection === 'elsewhere') this.#person?.calls.stopRinging()
  }

  async #onEvent(event: Event): Promise<void> {
    const badge = event.type === 'badge' ? event : event.badge
    if (badge !== undefined) this.#store.update({ missedCalls: badge.missedCalls })
    switch (event.type) {
      case 'badge':
        return
      case 'contact_added':
        this.#store.say('good', `${event.displayName} is a contact now.`)
        return this.contacts.load()
      case 'friend_request':
      case 'friend_request_cancelled':
      case 'contact_removed':
        return this.contacts.load()
      case 'device_added':
        await this.#devices.onAdded(event)
        return this.#onDevicesLoaded()
      case 'device_removed':
        await this.#devices.onRemoved(event)
        return this.#onDevicesLoaded()
      case 'device_list_changed':
      case 'device_list_reset':
        return this.#onDevicesLoaded()
      case 'device_push_lost':
        return this.#store.say('bad', `${event.name} gets no pushes any more: another device took its token.`)
      default:
        return this.calls.onEvent(event)
    }
  }

  /** Back to the sign-in. */
  #leave(sentence: string | undefined): void {
    this.#person?.calls.close()
    void this.#person?.socket.disconnect()
    this.#person = undefined
    this.#store.update({ ...SIGNED_OUT, stage: 'starting', doing: this.#state.doing })
    if (sentence !== undefined) this.#store.say('bad', sentence)
    void releaseName().then(() => this.#showSignIn())
  }

  get #signedIn(): Person {
    if (this.#person === undefined) throw new Error('You are signed out.')
    return this.#person
  }

  get #challenge(): Challenge {
    const { challenge } = this.#state
    if (challenge === undefined) throw new Error('There is no code on its way: begin again.')
    return challenge
  }
}

function challengeOf(
  { challengeId, sentTo, otpLength, resendIn }: ChallengeReply,
  identifier: string,
): Challenge {
  return { challengeId, identifier, sentTo, otpLength, resendAtMs: Date.now() + resendIn * 1000 }
}

/** Whether the server knows the device's key as another person's, or with another signing key than this browser has. */
function isOfAnother({ code, members }: Problem): boolean {
  const errors = members.errors as readonly { readonly code: string }[] | undefined
  return code === 'KEY_IN_USE' || errors?.some(fault => fault.code === 'ANOTHER_KEY') === true
}

/** The name that the person's other devices show for this new one. */
function browserName(): string {
  const [, name = 'browser'] = BROWSERS.find(([mark]) => navigator.userAgent.includes(mark)) ?? []
  return `${name}, development client`
}

/** Edge and Opera call themselves Chrome too, and Chrome calls itself Safari. */
const BROWSERS = [
  ['Firefox/', 'Firefox'],
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
