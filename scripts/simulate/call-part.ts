/**
 * One fake user's part in one call: its key, and what an app does by itself: gives the key to those who lost it, takes
 * new keys, and makes them as long as it is the host (docs/calls.md, "After a lost connection", "New keys").
 */

import { causeOf, Refusal } from './api.ts'
import { type KeyHolder, newCallKey } from './call-key.ts'
import type { Phone } from './phone.ts'
import type { CallRecord, Invitation, Participant, RejoinRequest, SealedKey, Told } from './told.ts'

/** A call's key as held by one device. */
export interface HeldKey {
  readonly epoch: number
  readonly bytes: Buffer
}

/** Hears of a part's events. */
export interface PartObserver {
  /** The device has a key: its own, or one that it opened. */
  onKey(part: CallPart, key: HeldKey, isOwn: boolean): void
  /** It asked another device for the key, or gave it away; a sentence without subject. */
  onDeed(part: CallPart, deed: string): void
  /** Something went wrong that should not. */
  onTrouble(part: CallPart, sentence: string): void
}

export class CallPart {
  readonly callId: string
  readonly isVideo: boolean
  /** Resolves when the call ends for this device, with the words for it. */
  readonly over: Promise<string>
  /** Whether its device is in the call. */
  isIn = false
  key: HeldKey | undefined = undefined
  readonly #phone: Phone
  readonly #observer: PartObserver
  #isOver = false
  #resolveOver: (how: string) => void = () => {}
  #hostUserId = ''
  /** To another user's call. */
  #invitation: Invitation | undefined = undefined
  /** Seconds. */
  #keyRotationIn = 600
  /** People who were ever asked into it, the caller included. */
  #people = 2
  readonly #timers = new Set<NodeJS.Timeout>()
  #isRotationDue = false
  /** Answers to a request for the key, while one is under way. */
  #onAcceptance: ((sealed: SealedKey & { readonly keyEpoch: number }) => void) | undefined = undefined

  private constructor(phone: Phone, observer: PartObserver, callId: string, isVideo: boolean) {
    this.#phone = phone
    this.#observer = observer
    this.callId = callId
    this.isVideo = isVideo
    this.over = new Promise(resolve => {
      this.#resolveOver = resolve
    })
  }

  /** Calls these people, on all devices that they have. */
  static async start(
    phone: Phone,
    observer: PartObserver,
    devices: readonly KeyHolder[],
    isVideo: boolean,
  ): Promise<CallPart> {
    const bytes = newCallKey()
    const record = await phone.api.send<CallRecord>('POST /app/api/call/start', {
      calleeIds: [...new Set(devices.map(({ name }) => name.split('_')[0]))],
      encryptedAESKeys: phone.sealAll(bytes, devices),
      isVideo,
    })
    const part = new CallPart(phone, observer, record.callId, isVideo)
    part.#hold({ epoch: record.keyEpoch, bytes }, true)
    await part.#enter(record)
    return part
  }

  /** Another user's call, which rings. */
  static ringing(phone: Phone, observer: PartObserver, invitation: Invitation): CallPart {
    const part = new CallPart(phone, observer, invitation.callId, invitation.isVideo)
    part.#invitation = invitation
    return part
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isHost(): boolean {
    return this.#hostUserId === this.#phone.userId
  }

  /** Waits; resolves with whether the call is still there. */
  async lasts(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const passed = new Promise(resolve => {
      timer = setTimeout(resolve, ms)
    })
    await Promise.race([passed, this.over])
    clearTimeout(timer)
    return !this.#isOver
  }

  /** Says that it rings. */
  ring(eventId: string): Promise<void> {
    return this.#phone.send(`/app/call/${this.callId}/ringing`, { eventId })
  }

  /** Answers. A key that does not open is reported, and the call goes on without it. */
  async join(): Promise<void> {
    const record = await this.#post<CallRecord>('join')
    await this.#enter(record)
    const inviter = record.participants.find(({ userId }) => userId === this.#invitation?.callerId)
    const encryptedAESKey = record.encryptedAESKey ?? this.#keyOfInvitation(record.keyEpoch)
    if (encryptedAESKey === undefined || inviter?.deviceId === undefined) {
      return this.#observer.onTrouble(this, 'has no key for the call')
    }
    const sealed = { encryptedAESKey, fromUserId: inviter.userId, fromDeviceId: inviter.deviceId }
    await this.#take(sealed, record.keyEpoch)
  }

  /** For a join that was repeated, since its answer was lost: the key is given out once. */
  #keyOfInvitation(epoch: number): string | undefined {
    return this.#invitation?.keyEpoch === epoch ? this.#invitation.encryptedAESKey : undefined
  }

  async decline(reason: 'declined' | 'busy' | 'timeout'): Promise<void> {
    await this.#post('decline', { reason })
    this.finish(reason)
  }

  /** Ends a call of two, leaves a larger one. */
  async hangUp(): Promise<void> {
    if (this.#people <= 2) await this.end()
    else await this.leave()
  }

  async end(): Promise<void> {
    await this.#post('end')
    this.finish('hangup')
  }

  async leave(): Promise<void> {
    await this.#post('leave')
    this.finish('left')
  }

  /** The app has died: key and timers are gone, the call is not. */
  forget(): void {
    this.isIn = false
    this.key = undefined
    this.#stopTimers()
  }

  /** Asks those who are in the call for its key, and comes back. Resolves with whether it worked. */
  async comeBack(): Promise<boolean> {
    const acceptance = new Promise<void>(resolve => {
      this.#onAcceptance = sealed => {
        // The first answer that opens counts.
        this.#take(sealed, sealed.keyEpoch).then(() => this.key !== undefined && resolve())
      }
    })
    try {
      const { asked } = await this.#post<{ asked: number }>('request-rejoin')
      this.#observer.onDeed(this, `asks ${asked} other${asked === 1 ? '' : 's'} for the key`)
      await Promise.race([acceptance, this.lasts(REJOIN_MS_MAX)])
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'NO_ACTIVE_PARTICIPANT') throw error
      return await this.#reopen()
    } finally {
      this.#onAcceptance = undefined
    }
    if (this.#isOver || this.key === undefined) return false
    await this.#enter(await this.#post<CallRecord>('rejoin'))
    return true
  }

  /** No device is there to ask, so it begins anew. */
  async #reopen(): Promise<boolean> {
    const record = await this.#post<CallRecord>('rejoin')
    await this.#enter(record)
    this.#hold({ epoch: record.keyEpoch, bytes: newCallKey() }, true)
    return true
  }

  /** Gives everybody in the call a new key. */
  async rotate(reason: 'rotation' | 'leave'): Promise<void> {
    if (this.key === undefined || !this.isIn) return
    const { participants, keyEpoch } = await this.#participants()
    const others = participants.filter(({ userId }) => userId !== this.#phone.userId)
    if (!others.some(({ state }) => state === 'joined')) return
    const devices = (await Promise.all(others.map(other => this.#devicesToTell(other)))).flat()
    const bytes = newCallKey()
    const epoch = keyEpoch + 1
    const body = { epoch, reason, encryptedAESKeys: this.#phone.sealAll(bytes, devices) }
    this.#observer.onKey(this, { epoch, bytes }, true)
    await this.#post('keys', body)
    this.key = { epoch, bytes }
  }

  /** Handles all messages to the device about this call. */
  onTold(told: Told): void {
    switch (told.type) {
      case 'call_ended':
        return this.finish(told.endReason)
      case 'call_cancelled':
      case 'call_missed':
      case 'call_moved':
        return this.finish(told.type.slice('call_'.length).replaceAll('_', ' '))
      case 'call_answered_elsewhere':
        return this.finish(`${told.reason} elsewhere`)
      case 'call_status':
        if (!LIVE.has(told.status)) this.finish(told.status)
        return
      case 'host_changed':
        this.#hostUserId = told.hostUserId
        return this.#startRotation()
      case 'participant_invited':
        this.#people += 1
        return
      case 'participant_left':
        return this.#onLeft()
      case 'participant_request_rejoin':
        return this.#attempt(() => this.#grant(told))
      case 'participant_accept_rejoin':
        return this.#onAcceptance?.(told)
      case 'key_update':
        return this.#attempt(() => this.#take(told, told.epoch))
    }
  }

  /** The call ends for this device. */
  finish(how: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.isIn = false
    this.#stopTimers()
    this.#phone.unwatch(this.callId)
    this.#resolveOver(how)
  }

  async #enter(record: CallRecord): Promise<void> {
    this.isIn = true
    this.#hostUserId = record.hostUserId
    this.#keyRotationIn = record.keyRotationIn
    this.#people = record.participants.length
    this.#startRotation()
    await this.#phone.watch(this.callId)
  }

  #hold(key: HeldKey, isOwn: boolean): void {
    this.key = key
    this.#observer.onKey(this, key, isOwn)
  }

  async #take(sealed: SealedKey, epoch: number): Promise<void> {
    try {
      const bytes = await this.#phone.open(sealed)
      if (!this.#isOver && epoch >= (this.key?.epoch ?? 0)) this.#hold({ epoch, bytes }, false)
    } catch (error) {
      this.#observer.onTrouble(this, `can't open the key: ${causeOf(error)}`)
    }
  }

  /** Verifies who asks, seals the present key for that device, and sends it. */
  async #grant({ userId, deviceId, displayName }: RejoinRequest): Promise<void> {
    if (!this.isIn || this.key === undefined) return
    const { participants } = await this.#participants()
    if (!participants.some(each => each.userId === userId && each.state !== 'removed')) return
    const holder = await this.#phone.deviceOf(userId, deviceId)
    await this.#phone.send(`/app/call/${this.callId}/accept-rejoin`, {
      requesterUserId: userId,
      requesterDeviceId: deviceId,
      encryptedAESKey: this.#phone.seal(this.key.bytes, holder),
    })
    this.#observer.onDeed(this, `gives ${displayName} the key`)
  }

  /** Ringing devices need the new key too: the server no longer gives out an older one. */
  async #devicesToTell({ userId, deviceId, state }: Participant): Promise<KeyHolder[]> {
    if (state === 'joined') return [await this.#phone.deviceOf(userId, deviceId!)]
    return RINGING.has(state) ? this.#phone.devicesOf(userId) : []
  }

  #onLeft(): void {
    if (!this.isHost || !this.isIn || this.#isRotationDue) return
    this.#isRotationDue = true
    this.#after(LEAVES_GATHERED_MS, async () => {
      this.#isRotationDue = false
      await this.rotate('leave')
    })
  }

  #startRotation(): void {
    if (!this.isHost || !this.isIn) return
    this.#after(this.#keyRotationIn * 1_000, async () => {
      this.#startRotation()
      await this.rotate('rotation')
    })
  }

  #after(ms: number, act: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#attempt(act)
    }, ms)
    this.#timers.add(timer)
  }

  #stopTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#isRotationDue = false
  }

  /** Work without a waiting caller; a call may end while it is under way. */
  #attempt(act: () => Promise<void>): void {
    act().catch(error => {
      const isLate = error instanceof Refusal && TOO_LATE.has(error.code)
      if (!isLate) this.#observer.onTrouble(this, causeOf(error))
    })
  }

  #participants(): Promise<Pick<CallRecord, 'participants' | 'keyEpoch'>> {
    return this.#phone.api.send(`GET /app/api/call/${this.callId}/participants`)
  }

  #post<Reply>(command: string, body: object = {}): Promise<Reply> {
    return this.#phone.api.send<Reply>(`POST /app/api/call/${this.callId}/${command}`, body)
  }
}

const LIVE = new Set(['ringing', 'active'])
const RINGING = new Set(['invited', 'ringing'])
/** Refusals of requests overtaken by the call's end or by a faster device. */
const TOO_LATE = new Set([
  'CALL_ENDED',
  'CALL_NOT_FOUND',
  'NOT_PARTICIPANT',
  'NOT_HOST',
  'EPOCH_CONFLICT',
  'DEVICE_LIST_MISMATCH',
])
const REJOIN_MS_MAX = 30_000
const LEAVES_GATHERED_MS = 5_000
