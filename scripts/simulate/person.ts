/** A fake user whom a real one can befriend and call: a phone, and how its owner behaves. */

import type { Behaviour, SimulatorState } from '../../src/operations/console/events.ts'
import { causeOf, Refusal } from './api.ts'
import { type Actor, awaitAnswer, beCalled, beInCall, type Pauses } from './behaviour.ts'
import { fingerprintOf } from './call-key.ts'
import { CallPart, type HeldKey, type PartObserver } from './call-part.ts'
import type { Phone } from './phone.ts'
import type { Invitation, Told } from './told.ts'

/** Hears of people's deeds. */
export interface PersonObserver {
  /** `deed` is a sentence without its subject. */
  onDeed(person: Person, deed: string): void
  onTrouble(sentence: string): void
  onCount(what: 'started' | 'answered' | 'ended' | 'failed'): void
  onContact(person: Person, userId: string): void
}

type Shown = SimulatorState['people'][number]

export class Person implements Actor, PartObserver {
  readonly phone: Phone
  readonly behaviour: Behaviour
  readonly pauses: Pauses
  /** Its own share link. */
  readonly shareLink: string
  readonly #observer: PersonObserver
  #doing = 'idle'
  #part: CallPart | undefined = undefined
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
    phone.onTold = told => this.#onTold(told)
    phone.onConnection = () => this.#say(phone.isOnline ? 'is online' : 'is offline')
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
      const { status, user } = await this.phone.api.send<{
        readonly status: string
        readonly user: { readonly userId: string; readonly displayName: string }
      }>('POST /app/api/friend-request/by-token', { token: shareToken, message: 'I am a simulated user' })
      if (status === 'accepted') this.#observer.onContact(this, user.userId)
      else this.#say(`asks ${user.displayName} to be a contact: accept it`)
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'ALREADY_FRIENDS') throw error
    }
  }

  /** Calls a contact. */
  async call(userId: string, isVideo: boolean): Promise<void> {
    if (this.#part !== undefined) throw new Error(`${this.name} is in a call already`)
    const devices = await this.phone.devicesOf(userId)
    if (devices.length === 0)
      throw new Error(`${this.name} can't call user ${userId}: no contact, or no device`)
    const part = await CallPart.start(this.phone, this, devices, isVideo)
    this.#observer.onCount('started')
    this.#begin(part, 'calling', awaitAnswer(this, this.behaviour, part))
    this.#say(`calls${isVideo ? ' with video' : ''}`)
  }

  /** Hangs up politely and disconnects. */
  async go(): Promise<void> {
    this.#isGoing = true
    const part = this.#part
    if (part !== undefined && this.phone.isOnline) {
      await (part.isIn ? part.hangUp() : part.decline('declined')).catch(() => {})
    }
    part?.finish('went home')
    await this.phone.disconnect()
  }

  // A behaviour's acts.

  async answer(part: CallPart): Promise<void> {
    await part.join()
    this.#observer.onCount('answered')
    this.#does('in a call', 'answers')
  }

  async decline(part: CallPart, reason: 'declined' | 'timeout'): Promise<void> {
    await part.decline(reason)
  }

  hangUp(part: CallPart): Promise<void> {
    return part.hangUp()
  }

  async giveUp(part: CallPart): Promise<void> {
    if (this.#doing === 'calling') await part.end()
  }

  drop(part: CallPart): void {
    part.forget()
    this.#does('offline', 'loses the connection and the key')
    this.phone.drop()
  }

  async reconnect(): Promise<void> {
    if (!this.#isGoing) await this.phone.connect()
  }

  lose(part: CallPart): void {
    part.finish('lost it')
  }

  async rejoin(part: CallPart): Promise<void> {
    if (part.isOver) return
    this.#does('rejoining', 'is back and wants into the call again')
    if (await part.comeBack()) this.#does('in a call', 'is in the call again')
    else if (!part.isOver) part.finish('nobody gave the key')
  }

  // Events of its calls.

  onKey({ callId }: CallPart, { epoch, bytes }: HeldKey, isOwn: boolean): void {
    const fingerprint = fingerprintOf(bytes, callId, epoch)
    this.#say(`${isOwn ? 'has made a' : 'has the'} key, epoch ${epoch}, fingerprint ${fingerprint}`)
  }

  onDeed(_part: CallPart, deed: string): void {
    this.#say(deed)
  }

  onTrouble(_part: CallPart, sentence: string): void {
    this.#fail(sentence)
  }

  #onTold(told: Told): void {
    switch (told.type) {
      case 'friend_request':
        return this.#attempt(this.#accept(told.userId))
      case 'contact_added':
        this.#say(`is a contact of ${told.displayName} now`)
        return this.#observer.onContact(this, told.userId)
      case 'call_invitation':
        return this.#onInvitation(told)
      case 'participant_joined':
        this.#onJoined(told.callId, told.participant.userId)
    }
    if ('callId' in told && told.callId === this.#part?.callId) this.#part.onTold(told)
  }

  #onInvitation(invitation: Invitation): void {
    if (invitation.callId === this.#part?.callId) return
    const part = CallPart.ringing(this.phone, this, invitation)
    if (this.#part !== undefined || this.#isGoing) {
      this.#say(`is busy: ${invitation.callerName} calls`)
      return this.#attempt(part.decline('busy'))
    }
    this.#say(`rings: ${invitation.callerName} calls${invitation.isVideo ? ' with video' : ''}`)
    this.#attempt(part.ring(invitation.eventId))
    this.#begin(part, 'ringing', beCalled(this, this.behaviour, part))
  }

  /** A callee has answered this person's call. */
  #onJoined(callId: string, userId: string): void {
    const part = this.#part
    if (part?.callId !== callId || this.#doing !== 'calling' || userId === this.phone.userId) return
    this.#observer.onCount('answered')
    this.#does('in a call', 'is answered')
    this.#attempt(beInCall(this, this.behaviour, part))
  }

  async #accept(userId: string): Promise<void> {
    await this.phone.api.send('POST /app/api/friend-request/accept', { userId })
  }

  #begin(part: CallPart, doing: string, behaving: Promise<void>): void {
    this.#part = part
    this.#doing = doing
    this.#attempt(behaving)
    part.over.then(how => {
      this.#part = undefined
      this.#observer.onCount('ended')
      this.#does('idle', `is out of the call: ${how}`)
    })
  }

  #attempt(deed: Promise<void>): void {
    deed.catch(error => {
      const isLate = error instanceof Refusal && TOO_LATE.has(error.code)
      if (!isLate && !this.#isGoing) this.#fail(causeOf(error))
    })
  }

  #fail(sentence: string): void {
    this.#observer.onCount('failed')
    this.#observer.onTrouble(`${this.name}: ${sentence}`)
  }

  #does(doing: string, deed: string): void {
    this.#doing = doing
    this.#say(deed)
  }

  #say(deed: string): void {
    this.#observer.onDeed(this, deed)
  }
}

/** The call, or the request, was over when they got round to it. */
const TOO_LATE = new Set([
  'CALL_ENDED',
  'CALL_NOT_FOUND',
  'CALL_NOT_ACTIVE',
  'REQUEST_CLOSED',
  'REQUEST_NOT_FOUND',
])
