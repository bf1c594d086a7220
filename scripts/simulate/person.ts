/** A fake user whom a real one can befriend and call: a phone, and how its owner behaves. */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, type CallState, hasCode } from '../../src/app/app.ts'
import type { Behaviour, SimulatorState } from '../../src/operations/console/events.ts'
import { awaitAnswer, beCalled, beInCall, type Pauses } from './behaviour.ts'
import { type Phone, sentenceOf } from './phone.ts'

/** Hears of people's deeds. */
export interface PersonObserver {
  /** `deed` is a sentence without its subject. */
  onDeed(person: Person, deed: string): void
  onTrouble(sentence: string): void
  onCount(what: 'started' | 'answered' | 'ended' | 'failed'): void
  onContact(person: Person, userId: string): void
  /** The person's app is in this call, or rings for it. */
  onCall(person: Person, call: Call): void
  /** It is in none any more. */
  onNoCall(person: Person): void
}

/** A person's part in one call, which outlives restarts of their app. */
export class CallPart {
  call: Call
  /** The person is about to leave it, and says so when that is done. */
  isLeft = false
  readonly #over = new AbortController()

  constructor(call: Call) {
    this.call = call
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  end(): void {
    this.#over.abort()
  }

  /** Waits; resolves with whether the call is still there. */
  lasts(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.#over.signal }).catch(() => false)
  }
}

type Shown = SimulatorState['people'][number]

export class Person {
  readonly phone: Phone
  readonly behaviour: Behaviour
  readonly pauses: Pauses
  /** Its own share link. */
  readonly shareLink: string
  readonly #observer: PersonObserver
  #doing = 'idle'
  #part: CallPart | undefined = undefined
  #wasOnline = true
  /** On the way home: nothing is begun any more. */
  #isGoing = false

  constructor(
    phone: Phone,
    behaviour: Behaviour,
    shareLink: string,
    pauses: Pauses,
    observer: PersonObserver,
  ) {
    this.phone = phone
    this.behaviour = behaviour
    this.shareLink = shareLink
    this.pauses = pauses
    this.#observer = observer
    phone.on('connection', () => this.#showConnection())
    phone.on('friend_request', ({ userId }) => this.#attempt(phone.app.contacts.accept(userId)))
    phone.on('contact_added', ({ userId, displayName }) => {
      this.#say(`is a contact of ${displayName} now`)
      observer.onContact(this, userId)
    })
    phone.on('ringing', call => this.#onRinging(call))
    phone.on('resumed', call => this.#onResumed(call))
    phone.on('participant_request_rejoin', ({ callId, displayName }) => {
      if (this.#part?.call.callId === callId) this.#say(`gives ${displayName} the key`)
    })
    phone.on('call_ended', ({ callId, endReason }) => {
      // The app does not know a call that ended while it was away.
      if (this.#part?.call.callId === callId) this.#finish(this.#part, endReason)
    })
    phone.on('error', error => this.#fail(error))
    phone.on('signed-out', error => this.#fail(error))
  }

  get name(): string {
    return this.phone.displayName
  }

  get shown(): Shown {
    const { userId, displayName, isOnline } = this.phone
    const { behaviour, shareLink } = this
    return { userId, displayName, behaviour, isOnline, doing: this.#doing, shareLink }
  }

  /** Asks the share token's maker to be a contact, or accepts when they have asked. */
  async befriend(shareToken: string): Promise<void> {
    try {
      const { contacts } = this.phone.app
      const reply = await contacts.request({ link: shareToken }, 'I am a simulated user')
      if (!('user' in reply)) return
      const { status, user } = reply
      if (status === 'accepted') this.#observer.onContact(this, user.userId)
      else this.#say(`asks ${user.displayName} to be a contact: accept it`)
    } catch (error) {
      if (!hasCode(error, 'ALREADY_FRIENDS')) throw error
    }
  }

  /** Calls a contact. */
  async call(userId: string, isVideo: boolean): Promise<void> {
    if (this.#part !== undefined) throw new Error(`${this.name} is in a call already`)
    const call = await this.phone.app.call([userId], { video: isVideo })
    this.#observer.onCount('started')
    const part = this.#begin(call, 'calling')
    this.#say(`has made a key, epoch 1, fingerprint ${call.fingerprint}`)
    this.#say(`calls${isVideo ? ' with video' : ''}`)
    this.#attempt(awaitAnswer(this, this.behaviour, part))
  }

  /** Hangs up politely and disconnects. */
  async go(): Promise<void> {
    this.#isGoing = true
    const part = this.#part
    if (part !== undefined && this.phone.isOnline) await leave(part.call).catch(() => {})
    if (part !== undefined) this.#finish(part, 'went home')
    await this.phone.disconnect()
  }

  /** The gateway has what this person sends. */
  onMedia(): void {
    const { call } = this.#part ?? {}
    if (call !== undefined) this.#say(`sends silence${call.isVideo ? ' and a moving mark' : ''}`)
  }

  // A behaviour's acts.

  async answer(part: CallPart): Promise<void> {
    await part.call.answer()
    this.#observer.onCount('answered')
    this.#does('in a call', 'answers')
  }

  async decline(part: CallPart, reason: 'declined' | 'timeout'): Promise<void> {
    await this.#leave(part, reason, () => part.call.decline(reason))
  }

  hangUp(part: CallPart): Promise<void> {
    return leave(part.call)
  }

  /** Ends their own call unless a callee has answered it. */
  async giveUp(part: CallPart): Promise<void> {
    if (this.#doing === 'calling') await this.#leave(part, 'hangup', () => part.call.end())
  }

  /** The connection is lost, with all that the app knew. */
  drop(): void {
    this.#does('offline', 'loses the connection and the key')
    this.#observer.onNoCall(this)
    this.phone.drop({ isForgetful: this.behaviour === 'drop' })
    this.#showConnection()
  }

  async reconnect(): Promise<void> {
    if (!this.#isGoing) await this.phone.connect()
  }

  /** The call goes on without them. */
  lose(part: CallPart): void {
    this.#finish(part, 'lost it')
  }

  /** The app does that by itself. */
  async rejoin(part: CallPart): Promise<void> {
    while (!part.isOver && this.#doing !== 'in a call') await this.phone.app.once('changed')
  }

  // Events of its calls.

  #onRinging(call: Call): void {
    const { caller, isVideo } = call
    if (this.#part !== undefined || this.#isGoing) {
      this.#say(`is busy: ${caller.displayName} calls`)
      return this.#attempt(call.decline('busy'))
    }
    this.#say(`rings: ${caller.displayName} calls${isVideo ? ' with video' : ''}`)
    this.#attempt(beCalled(this, this.behaviour, this.#begin(call, 'ringing')))
  }

  /** The app has started again in a call, and comes back to it by itself. */
  #onResumed(call: Call): void {
    if (this.#part?.call.callId !== call.callId) return
    this.#does('rejoining', 'is back and wants into the call again')
    this.#part.call = call
    this.#follow(this.#part, call)
  }

  #begin(call: Call, doing: string): CallPart {
    const part = new CallPart(call)
    this.#part = part
    this.#doing = doing
    this.#follow(part, call)
    return part
  }

  #follow(part: CallPart, call: Call): void {
    this.#observer.onCall(this, call)
    call.on('key', ({ epoch, fingerprint, fromUserId }) => {
      const has = fromUserId === this.phone.userId ? 'has made a' : 'has the'
      this.#say(`${has} key, epoch ${epoch}, fingerprint ${fingerprint}`)
    })
    call.on('state', state => this.#onState(part, state))
    call.on('error', error => this.#fail(error))
    call.on('ended', ({ reason }) => {
      // An app that restarts leaves the call behind.
      if (call === part.call && !part.isLeft && this.#doing !== 'offline')
        this.#finish(part, reason.replaceAll('_', ' '))
    })
  }

  #onState(part: CallPart, state: CallState): void {
    if (state === 'rejoining') {
      const isOther = ({ state, userId }: Call['participants'][number]) =>
        state === 'joined' && userId !== this.phone.userId
      const asked = part.call.participants.filter(isOther).length
      this.#say(`asks ${asked} other${asked === 1 ? '' : 's'} for the key`)
    } else if (state === 'keyless') this.#finish(part, 'nobody gave the key')
    else if (state !== 'active') return
    else if (this.#doing === 'rejoining') this.#does('in a call', 'is in the call again')
    else if (this.#doing === 'calling') {
      this.#observer.onCount('answered')
      this.#does('in a call', 'is answered')
      this.#attempt(beInCall(this, this.behaviour, part))
    }
  }

  async #leave(part: CallPart, how: string, act: () => Promise<void>): Promise<void> {
    part.isLeft = true
    await act().finally(() => this.#finish(part, how))
  }

  #finish(part: CallPart, how: string): void {
    if (part.isOver) return
    part.end()
    this.#part = undefined
    this.#observer.onNoCall(this)
    this.#observer.onCount('ended')
    this.#does('idle', `is out of the call: ${how}`)
  }

  #attempt(deed: Promise<unknown>): void {
    deed.catch(error => this.#fail(error))
  }

  #fail(error: unknown): void {
    if (hasCode(error, ...TOO_LATE) || this.#isGoing) return
    this.#observer.onCount('failed')
    this.#observer.onTrouble(`${this.name}: ${sentenceOf(error)}`)
  }

  #showConnection(): void {
    const { isOnline } = this.phone
    if (isOnline === this.#wasOnline) return
    this.#wasOnline = isOnline
    this.#say(isOnline ? 'is online' : 'is offline')
  }

  #does(doing: string, deed: string): void {
    this.#doing = doing
    this.#say(deed)
  }

  #say(deed: string): void {
    this.#observer.onDeed(this, deed)
  }
}

/** Ends a call of two, leaves a larger one. */
async function leave(call: Call): Promise<void> {
  if (call.isIncoming && call.state === 'ringing') await call.decline()
  else await (call.participants.length > 2 ? call.leave() : call.end())
}

/** The call, or the request, was over when they got round to it. */
const TOO_LATE = [
  'CALL_ENDED',
  'CALL_NOT_FOUND',
  'CALL_NOT_ACTIVE',
  'REQUEST_CLOSED',
  'REQUEST_NOT_FOUND',
] as const
