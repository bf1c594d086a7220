/**
 * Calls of this device, as `docs/calls.md` has them: start, answer, leave, end, and the key in all of it, which is made or
 * opened here and never stored. A reload loses it: then the others are asked for it.
 */

import { makeCallKey } from './call-key.ts'
import { CallKeys } from './call-keys.ts'
import { type CallRecord, endingOf, isOver, phaseOf, startOf } from './call-record.ts'
import type { Bytes } from './device-key.ts'
import { KeyExchange } from './key-exchange.ts'
import type { KeyLog } from './key-log.ts'
import { Media } from './media.ts'
import { Ringing } from './ringing.ts'
import { Problem, type Session, sentenceOf } from './session.ts'
import type { Event, Socket } from './socket.ts'
import type { Call, Participant, PastCall, Store } from './state.ts'

export class Calls {
  readonly media: Media
  readonly #store: Store
  readonly #session: Session
  readonly #socket: Socket
  readonly #exchange: KeyExchange
  readonly #ringing: Ringing
  readonly #userId: string
  readonly #keys = new CallKeys()
  #unwatch: (() => void) | undefined
  #rotationTimer: ReturnType<typeof setTimeout> | undefined
  #askTimer: ReturnType<typeof setTimeout> | undefined
  /** Who has asked for the key while this tab did not have it either. */
  readonly #askers = new Set<string>()

  constructor(store: Store, session: Session, socket: Socket, keyLog: KeyLog, userId: string) {
    this.#store = store
    this.#session = session
    this.#socket = socket
    this.#userId = userId
    this.#exchange = new KeyExchange(keyLog, userId)
    this.#ringing = new Ringing(store, session, socket, this.#exchange, userId)
    this.media = new Media(store, session, socket, this.#keys, keyLog.self.name)
  }

  /** Calls these contacts. The key is made here and encrypted for each of their devices, if all of them verify. */
  async start(calleeIds: readonly string[], isVideo: boolean): Promise<void> {
    const key = makeCallKey()
    const record = await withFreshDevices(async () => {
      const encryptedAESKeys = await this.#exchange.sealForUsers(key, calleeIds)
      return this.#post<CallRecord>('start', { calleeIds, encryptedAESKeys, isVideo })
    })
    this.#store.update({ marked: new Set() })
    await this.#enter(record, key)
  }

  /** Brings more contacts into the call, with its present key. */
  async invite(calleeIds: readonly string[]): Promise<void> {
    const { callId } = this.#present
    const held = this.#keys.newest(callId)
    if (held === undefined) throw new Error('This tab does not have the call’s key yet.')
    await withFreshDevices(async () => {
      const encryptedAESKeys = await this.#exchange.sealForUsers(held.key, calleeIds)
      this.#show(await this.#post<CallRecord>(`${callId}/invite`, { calleeIds, encryptedAESKeys }))
    })
    this.#store.update({ marked: new Set() })
  }

  /** Answers; a call that this tab is in is left for it. */
  async answer(callId: string): Promise<void> {
    const invitation = this.#ringing.find(callId)
    if (invitation === undefined) return
    const opened = await invitation.opened
    if (this.#store.state.call !== undefined) await this.leave()
    const record = await this.#post<CallRecord>(`${callId}/join`)
    this.#ringing.stop(callId)
    const { encryptedAESKey } = record
    // The key may have been renewed while it rang; one that is older is not given out any more.
    if (encryptedAESKey === undefined) return this.#recover(record)
    const isSame = encryptedAESKey === invitation.sealed
    await this.#enter(record, isSame ? opened : await this.#exchange.openFromAny(record, encryptedAESKey))
  }

  async decline(callId: string): Promise<void> {
    await this.#ringing.decline(callId, 'declined')
    await this.loadHistory()
  }

  /** Leaves; the others go on. */
  async leave(): Promise<void> {
    await this.#post(`${this.#present.callId}/leave`)
    await this.#close('You left the call.')
  }

  /** Ends it for all, or gives up before anybody has answered. */
  async end(): Promise<void> {
    const { status, endReason } = await this.#post<CallRecord>(`${this.#present.callId}/end`)
    await this.#close(endingOf(status, endReason))
  }

  async remove(userId: string): Promise<void> {
    await this.#post(`${this.#present.callId}/remove`, { userId })
  }

  /** A new key for all who are in the call; the host's business. */
  async renewKey(reason: 'rotation' | 'leave' = 'rotation'): Promise<void> {
    const { callId } = this.#present
    const key = makeCallKey()
    const { epoch, keyRotationIn } = await withFreshDevices(async () => {
      const record = await this.#get(callId)
      const epoch = record.keyEpoch + 1
      const encryptedAESKeys = await this.#exchange.sealForCall(key, record)
      await this.#socket.send(`/app/call/${callId}/keys`, { epoch, reason, encryptedAESKeys })
      return { epoch, keyRotationIn: record.keyRotationIn }
    })
    await this.#hold(callId, epoch, key)
    this.#planRotation(keyRotationIn * 1000)
  }

  /** Comes back into a call that was left, or whose key is gone with a reload. */
  async rejoin(callId: string): Promise<void> {
    try {
      await this.#recover(await this.#get(callId))
    } catch (error) {
      await this.loadHistory()
      throw error
    }
  }

  /** After each connection: what rings, and the call that this tab was in. */
  async onConnected(): Promise<void> {
    const { items } = await this.#session.request<{ items: readonly CallRecord[] }>('GET', 'call/pending')
    for (const record of items) this.#ringing.onPending(record)
    const callId = this.#store.state.call?.callId ?? sessionStorage.getItem(PRESENT)
    if (callId === null) return
    try {
      const record = await this.#get(callId)
      if (isOver(record)) await this.#close(endingOf(record.status, record.endReason))
      else if (this.#keys.has(callId)) await this.#watch(record)
      else await this.#resume(record)
    } catch (error) {
      if (!(error instanceof Problem) || isUnreachable(error)) throw error
      await this.#close(sentenceOf(error))
    }
  }

  /** A message of the queue of calls. */
  async onEvent(event: Event): Promise<void> {
    switch (event.type) {
      case 'call_invitation':
        return this.#ringing.onInvitation(event)
      case 'call_cancelled':
      case 'call_missed':
      case 'call_answered_elsewhere':
        this.#ringing.onOver(event)
        return this.loadHistory()
      case 'call_moved':
        if (this.#isPresent(event)) await this.#close('The call goes on on another device of yours.')
        return
      case 'call_ended':
        if (this.#isPresent(event)) await this.#close(endingOf(event.status, event.endReason))
        return
      case 'participant_request_rejoin':
        return this.#grant(event)
      case 'participant_accept_rejoin':
        return this.#onGranted(event)
      case 'key_update':
        return this.#onKeyUpdate(event)
    }
  }

  async loadHistory(): Promise<void> {
    const path = 'call/history?limit=30'
    const { items } = await this.#session.request<{ items: readonly PastCall[] }>('GET', path)
    this.#store.update({ history: items })
  }

  async markSeen(): Promise<void> {
    await this.#session.request('POST', 'call/history/seen')
    this.#store.update({ missedCalls: 0 })
  }

  /** Another tab of this device has the connection: what rings, rings there. */
  stopRinging(): void {
    this.#ringing.stopAll()
  }

  /** The tab's user is signed out. */
  close(): void {
    this.#ringing.stopAll()
    this.#forget()
  }

  async #enter(record: CallRecord, key: Bytes): Promise<void> {
    const fingerprint = await this.#keys.hold(record.callId, record.keyEpoch, key)
    this.#begin(record, { phase: phaseOf(record), fingerprint })
    // Without a connection it is watched after the next one.
    await this.#watch(record).catch(unlessUnreachable)
    // Over meanwhile, or left.
    if (!this.#isPresent(record)) return
    await this.media.open(record.callId, record.isVideo)
    await this.loadHistory()
  }

  #begin(record: CallRecord, { phase, fingerprint }: Pick<Call, 'phase' | 'fingerprint'>): void {
    const { callId, isVideo, participants, hostUserId, keyEpoch } = record
    sessionStorage.setItem(PRESENT, callId)
    const startedAtMs = startOf(record)
    const call = { callId, isVideo, phase, participants, hostUserId, keyEpoch, fingerprint, startedAtMs }
    this.#store.update({ call })
    this.#planRotation(record.keyRotationIn * 1000)
  }

  /** Subscribes to the call's topic, then reads the call: what came before is in the record, what comes after is told. */
  async #watch({ callId }: CallRecord): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = await this.#socket.watch(`/topic/call.${callId}`, event => this.#onTopic(event))
    this.#show(await this.#get(callId))
    await this.media.connect()
  }

  /** What the record says of the call, in place of what is shown. */
  #show(record: CallRecord): void {
    const { call } = this.#store.state
    if (call?.callId !== record.callId) return
    const isComingBack = call.phase === 'asking' || call.phase === 'keyless'
    const phase = isComingBack ? call.phase : phaseOf(record)
    const { participants, hostUserId } = record
    this.#store.updateCall({ phase, participants, hostUserId, startedAtMs: startOf(record) })
    this.#keepMedia()
  }

  #onTopic(event: Event): void {
    if (!this.#isPresent(event)) return
    switch (event.type) {
      case 'participant_joined':
        this.#showParticipant(event.participant)
        if (this.#present.phase !== 'ringing') return
        return this.#store.updateCall({ phase: 'active', startedAtMs: Date.now() })
      case 'participant_left':
        this.#showParticipant(event.participant)
        return this.#onLeft(event.participant)
      case 'participant_invited':
      case 'participant_ringing':
      case 'participant_declined':
        return this.#showParticipant(event.participant)
      case 'host_changed':
        return this.#store.updateCall({ hostUserId: event.hostUserId })
      case 'call_status':
        return this.#onStatus(event)
    }
  }

  #showParticipant(participant: Participant): void {
    const { participants } = this.#present
    const isKnown = participants.some(({ userId }) => userId === participant.userId)
    const replaced = participants.map(one => (one.userId === participant.userId ? participant : one))
    this.#store.updateCall({ participants: isKnown ? replaced : [...participants, participant] })
    this.#keepMedia()
  }

  #keepMedia(): void {
    const joined = this.#present.participants.filter(({ state }) => state === 'joined')
    this.media.keepOnly(new Set(joined.map(({ userId, deviceId }) => `${userId}_${deviceId}`)))
  }

  #onLeft({ userId, state }: Participant): void {
    if (userId !== this.#userId) this.#planRotation(AFTER_LEAVING_MS, 'leave')
    else if (state === 'removed') void this.#close(endingOf('removed'))
  }

  /** The queue says why it is over, if it comes to this device; a moment later it is over without. */
  #onStatus({ callId, status }: Event): void {
    if (status === 'ringing' || status === 'active') return
    setTimeout(() => {
      if (this.#store.state.call?.callId === callId) void this.#close(endingOf(status))
    }, REASON_WAIT_MS)
  }

  async #close(sentence: string): Promise<void> {
    this.#forget()
    this.#store.say('good', sentence)
    await this.loadHistory()
  }

  /** Wipes the key and closes media. */
  #forget(): void {
    clearTimeout(this.#rotationTimer)
    clearTimeout(this.#askTimer)
    this.#unwatch?.()
    this.#unwatch = undefined
    this.media.close()
    this.#keys.wipe()
    this.#askers.clear()
    sessionStorage.removeItem(PRESENT)
    this.#store.update({ call: undefined })
  }

  async #hold(callId: string, epoch: number, key: Bytes): Promise<void> {
    const fingerprint = await this.#keys.hold(callId, epoch, key)
    if (this.#store.state.call?.callId === callId) this.#store.updateCall({ keyEpoch: epoch, fingerprint })
  }

  async #onKeyUpdate(event: Event): Promise<void> {
    if (!this.#isPresent(event)) return
    const { callId, epoch, encryptedAESKey, fromUserId, fromDeviceId } = event
    const key = await this.#exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
    if (this.#isAsking(callId)) return this.#return(callId, epoch, key)
    await this.#hold(callId, epoch, key)
  }

  /** The host makes a new key when its time is over, and a little after somebody left, for several who leave at once. */
  #planRotation(afterMs: number, reason: 'rotation' | 'leave' = 'rotation'): void {
    clearTimeout(this.#rotationTimer)
    this.#rotationTimer = setTimeout(() => {
      const { call } = this.#store.state
      const isThere = ({ state, userId }: Participant) => state === 'joined' && userId !== this.#userId
      const isDue = call?.hostUserId === this.#userId && call.phase === 'active'
      if (!isDue || !call.participants.some(isThere)) return
      this.renewKey(reason).catch(error => this.#store.say('bad', sentenceOf(error)))
    }, afterMs)
  }

  /** The page was reloaded: it knows the call, and not its key. */
  async #resume(record: CallRecord): Promise<void> {
    if (record.status === 'active') return this.#recover(record)
    if (record.initiatorId !== this.#userId) return sessionStorage.removeItem(PRESENT)
    // The key that the others were sent went with the page, and there is nobody in the call to have it from.
    await this.#post(`${record.callId}/end`)
    await this.#close('The page was reloaded while it rang: the key is gone, so the call was given up.')
  }

  async #recover(record: CallRecord): Promise<void> {
    const { callId } = record
    this.#begin(record, { phase: 'asking', fingerprint: undefined })
    try {
      const { expiresIn } = await this.#post<{ expiresIn: number }>(`${callId}/request-rejoin`)
      clearTimeout(this.#askTimer)
      this.#askTimer = setTimeout(() => void this.#onNobodyGrants(callId), expiresIn * 1000)
      await this.#giveUpWhenAllAsk(callId)
    } catch (error) {
      if (error instanceof Problem && error.code === 'NO_ACTIVE_PARTICIPANT') {
        return this.#returnWithNewKey(callId)
      }
      this.#forget()
      throw error
    }
  }

  async #onNobodyGrants(callId: string): Promise<void> {
    if (!this.#isAsking(callId) || this.#present.phase === 'keyless') return
    this.#store.updateCall({ phase: 'keyless' })
    if (this.#present.hostUserId !== this.#userId) return
    await this.#returnWithNewKey(callId).catch(error => this.#store.say('bad', sentenceOf(error)))
  }

  /** Nobody has the key any more: whoever is host makes another one. */
  async #returnWithNewKey(callId: string): Promise<void> {
    const record = await this.#post<CallRecord>(`${callId}/rejoin`)
    this.#store.updateCall({ hostUserId: record.hostUserId })
    if (record.hostUserId !== this.#userId) return this.#store.updateCall({ phase: 'keyless' })
    clearTimeout(this.#askTimer)
    await this.renewKey()
    const { epoch, key } = this.#keys.newest(callId)!
    await this.#enter({ ...record, keyEpoch: epoch }, key)
  }

  /** When all others ask too, nobody will answer: there is no need to wait for it. */
  async #giveUpWhenAllAsk(callId: string): Promise<void> {
    if (!this.#isAsking(callId)) return
    const others = this.#present.participants.filter(
      one => one.state === 'joined' && one.userId !== this.#userId,
    )
    if (others.every(({ userId }) => this.#askers.has(userId))) await this.#onNobodyGrants(callId)
  }

  /** Somebody in the call has lost the key: they get it, when their device verifies. */
  async #grant({ callId, userId, deviceId, displayName, publicKeyHash }: Event): Promise<void> {
    const held = this.#keys.newest(callId)
    if (held === undefined) {
      this.#askers.add(userId)
      return this.#giveUpWhenAllAsk(callId)
    }
    const { participants } = await this.#get(callId)
    const asker = participants.find(one => one.userId === userId)
    if (asker === undefined || asker.state === 'removed') return
    const encryptedAESKey = await this.#exchange.sealForDevice(held.key, userId, deviceId, publicKeyHash)
    const answer = { requesterUserId: userId, requesterDeviceId: deviceId, encryptedAESKey }
    await this.#socket.send(`/app/call/${callId}/accept-rejoin`, answer)
    const isOwn = userId === this.#store.state.user?.userId
    this.#store.say(
      'good',
      isOwn
        ? 'Another device of yours comes in: this tab has given it the key.'
        : `${displayName} comes back: this tab has given them the key.`,
    )
  }

  /** Takes the first answer that opens. */
  async #onGranted(event: Event): Promise<void> {
    const { callId, encryptedAESKey, keyEpoch, fromUserId, fromDeviceId } = event
    if (!this.#isAsking(callId)) return
    const key = await this.#exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
    if (this.#isAsking(callId)) await this.#return(callId, keyEpoch, key)
  }

  async #return(callId: string, epoch: number, key: Bytes): Promise<void> {
    clearTimeout(this.#askTimer)
    this.#askers.clear()
    this.#store.updateCall({ phase: 'active' })
    const record = await this.#post<CallRecord>(`${callId}/rejoin`)
    await this.#enter({ ...record, keyEpoch: epoch }, key)
  }

  get #present(): Call {
    const { call } = this.#store.state
    if (call === undefined) throw new Error('There is no call any more.')
    return call
  }

  #isPresent({ callId }: { readonly callId: string }): boolean {
    return this.#store.state.call?.callId === callId
  }

  #isAsking(callId: string): boolean {
    const { call } = this.#store.state
    return call?.callId === callId && (call.phase === 'asking' || call.phase === 'keyless')
  }

  #get(callId: string): Promise<CallRecord> {
    return this.#session.request('GET', `call/${callId}`)
  }

  #post<Reply>(command: string, body?: object): Promise<Reply> {
    return this.#session.request('POST', `call/${command}`, body)
  }
}

/** Once more when somebody's devices, or the epoch, have changed meanwhile. */
async function withFreshDevices<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof Problem) || !OUTDATED.has(error.code)) throw error
    return act()
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof Problem && UNREACHABLE.has(error.code)
}

function unlessUnreachable(error: unknown): void {
  if (!isUnreachable(error)) throw error
}

const OUTDATED: ReadonlySet<string> = new Set(['DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT'])
const UNREACHABLE: ReadonlySet<string> = new Set(['OFFLINE', 'NO_ANSWER'])
/** In this tab's storage: the call that it is in. */
const PRESENT = 'callsign.call'
const AFTER_LEAVING_MS = 5_000
const REASON_WAIT_MS = 1_000
