/**
 * Calls of this device (see `docs/calls.md`): start, answer, leave, end. Their keys are made or opened here and never
 * stored. A reload loses the key: then this tab asks the other devices for it.
 */

import { makeCallKey } from './call-key.ts'
import { CallKeys } from './call-keys.ts'
import { type CallRecord, endingOf, isOver, phaseOf, startOf } from './call-record.ts'
import { CallRequests, withFreshDevices } from './call-requests.ts'
import type { Bytes } from './device-key.ts'
import { KeyExchange } from './key-exchange.ts'
import type { KeyLog } from './key-log.ts'
import { Media } from './media.ts'
import { Rejoining } from './rejoining.ts'
import { Ringing } from './ringing.ts'
import { serverNowMs } from './server-clock.ts'
import { Problem, type Session, sentenceOf } from './session.ts'
import type { Event, Socket } from './socket.ts'
import type { Call, KeyAsk, Participant, PastCall, Store } from './state.ts'

export class Calls {
  readonly media: Media
  readonly #store: Store
  readonly #session: Session
  readonly #requests: CallRequests
  readonly #socket: Socket
  readonly #exchange: KeyExchange
  readonly #ringing: Ringing
  readonly #rejoining: Rejoining
  readonly #userId: string
  readonly #keys = new CallKeys()
  #unwatch: (() => void) | undefined
  #rotationTimer: ReturnType<typeof setTimeout> | undefined

  constructor(store: Store, session: Session, socket: Socket, keyLog: KeyLog, userId: string) {
    this.#store = store
    this.#session = session
    this.#requests = new CallRequests(session)
    this.#socket = socket
    this.#userId = userId
    this.#exchange = new KeyExchange(keyLog, userId)
    this.#ringing = new Ringing(store, this.#requests, socket, this.#exchange, userId)
    this.#rejoining = new Rejoining({
      ...{ store, socket, requests: this.#requests, exchange: this.#exchange, keys: this.#keys, userId },
      begin: record => this.#begin(record, { phase: 'asking', fingerprint: undefined }),
      enter: (record, key) => this.#enter(record, key),
      renewKey: () => this.renewKey(),
      giveUp: () => this.#forget(),
    })
    this.media = new Media(store, session, socket, this.#keys, keyLog.self.name)
  }

  /** Calls these contacts. The key is made here and encrypted for each of their devices, if all of them verify. */
  async start(calleeIds: readonly string[], isVideo: boolean): Promise<void> {
    const key = makeCallKey()
    const record = await withFreshDevices(async () => {
      const encryptedAESKeys = await this.#exchange.sealForUsers(key, calleeIds)
      return this.#requests.post<CallRecord>('start', { calleeIds, encryptedAESKeys, isVideo })
    })
    this.#store.update({ marked: new Set() })
    await this.#enter(record, key)
  }

  /** Brings more contacts into the call, with its present key. */
  async invite(calleeIds: readonly string[]): Promise<void> {
    const { callId } = this.#store.presentCall
    const held = this.#keys.newest(callId)
    if (held === undefined) throw new Error('This tab does not have the call’s key yet.')
    await withFreshDevices(async () => {
      const encryptedAESKeys = await this.#exchange.sealForUsers(held.key, calleeIds)
      this.#show(await this.#requests.post<CallRecord>(`${callId}/invite`, { calleeIds, encryptedAESKeys }))
    })
    this.#store.update({ marked: new Set() })
  }

  /** Answers; a call that this tab is in is left for it. */
  async answer(callId: string): Promise<void> {
    const invitation = this.#ringing.find(callId)
    if (invitation === undefined) return
    const opened = await invitation.opened
    if (this.#store.state.call !== undefined) await this.leave()
    const record = await this.#join(callId)
    this.#ringing.stop(callId)
    const { encryptedAESKey } = record
    // The key may have been renewed while it rang; one that is older is not given out any more.
    if (encryptedAESKey === undefined) return this.#rejoining.ask(record)
    const isSame = encryptedAESKey === invitation.sealed
    await this.#enter(record, isSame ? opened : await this.#exchange.openFromAny(record, encryptedAESKey))
  }

  /** A call that the device is in and this tab knows nothing of is left for it. */
  async #join(callId: string): Promise<CallRecord> {
    const join = () => this.#requests.post<CallRecord>(`${callId}/join`)
    return join().catch(async error => {
      if (!(error instanceof Problem) || error.code !== 'ALREADY_IN_CALL') throw error
      await this.#requests.post(`${error.members.callId}/leave`)
      return join()
    })
  }

  async decline(callId: string): Promise<void> {
    await this.#ringing.decline(callId, 'declined')
    await this.loadHistory()
  }

  /** Leaves; the call goes on without this device. */
  async leave(): Promise<void> {
    await this.#requests.post(`${this.#store.presentCall.callId}/leave`)
    await this.#close('You left the call.')
  }

  /** Ends it for all, or gives up before a callee has answered. */
  async end(): Promise<void> {
    const { callId } = this.#store.presentCall
    const { status, endReason } = await this.#requests.post<CallRecord>(`${callId}/end`)
    await this.#close(endingOf(status, endReason))
  }

  async remove(userId: string): Promise<void> {
    await this.#requests.post(`${this.#store.presentCall.callId}/remove`, { userId })
  }

  /** A new key for all who are in the call; the host's business. */
  async renewKey(reason: 'rotation' | 'leave' = 'rotation'): Promise<void> {
    const { callId } = this.#store.presentCall
    const key = makeCallKey()
    const { epoch, keyRotationIn } = await withFreshDevices(async () => {
      const record = await this.#requests.get(callId)
      const epoch = record.keyEpoch + 1
      const encryptedAESKeys = await this.#exchange.sealForCall(key, record)
      await this.#socket.send(`/app/call/${callId}/keys`, { epoch, reason, encryptedAESKeys })
      return { epoch, keyRotationIn: record.keyRotationIn }
    })
    await this.#hold(callId, epoch, key)
    this.#planRotation(keyRotationIn * 1000)
  }

  /** The person says that a device which asks for the key is who it says. */
  grantKey(ask: KeyAsk): Promise<void> {
    return this.#rejoining.grant(ask)
  }

  refuseKey(ask: KeyAsk): void {
    this.#rejoining.refuse(ask)
  }

  /** Comes back into a call that was left, or whose key is gone with a reload. */
  async rejoin(callId: string): Promise<void> {
    try {
      await this.#rejoining.ask(await this.#requests.get(callId))
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
      const record = await this.#requests.get(callId)
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
        if (this.#store.isPresent(event)) await this.#close('The call goes on on another device of yours.')
        return
      case 'call_ended':
        if (this.#store.isPresent(event)) await this.#close(endingOf(event.status, event.endReason))
        return
      case 'participant_request_rejoin':
        return this.#rejoining.onAsked(event)
      case 'participant_accept_rejoin':
        return this.#rejoining.onGranted(event)
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
    if (!this.#store.isPresent(record)) return
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

  /** Subscribes to the call's topic, then reads the call: earlier events are in the record, later ones arrive. */
  async #watch({ callId }: CallRecord): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = await this.#socket.watch(`/topic/call.${callId}`, event => this.#onTopic(event))
    this.#show(await this.#requests.get(callId))
    await this.media.connect()
  }

  /** Shows the record's state of the call. */
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
    if (!this.#store.isPresent(event)) return
    switch (event.type) {
      case 'participant_joined':
        this.#showParticipant(event.participant)
        if (this.#store.presentCall.phase !== 'ringing') return
        return this.#store.updateCall({ phase: 'active', startedAtMs: serverNowMs() })
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
    const { participants } = this.#store.presentCall
    const isKnown = participants.some(({ userId }) => userId === participant.userId)
    const replaced = participants.map(one => (one.userId === participant.userId ? participant : one))
    this.#store.updateCall({ participants: isKnown ? replaced : [...participants, participant] })
    this.#keepMedia()
  }

  #keepMedia(): void {
    const joined = this.#store.presentCall.participants.filter(({ state }) => state === 'joined')
    this.media.keepOnly(new Set(joined.map(({ userId, deviceId }) => `${userId}_${deviceId}`)))
  }

  #onLeft({ userId, state }: Participant): void {
    if (userId !== this.#userId) this.#planRotation(AFTER_LEAVING_MS, 'leave')
    else if (state === 'removed') void this.#close(endingOf('removed'))
  }

  /** The queue gives the reason of the end, if it reaches this device; a moment later the call ends without. */
  #onStatus({ callId, status }: Event): void {
    if (status === 'ringing' || status === 'active') return
    setTimeout(() => {
      if (this.#store.isPresent({ callId })) void this.#close(endingOf(status))
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
    this.#rejoining.stop()
    this.#store.update({ keyAsks: [] })
    this.#unwatch?.()
    this.#unwatch = undefined
    this.media.close()
    this.#keys.wipe()
    sessionStorage.removeItem(PRESENT)
    this.#store.update({ call: undefined })
  }

  async #hold(callId: string, epoch: number, key: Bytes): Promise<void> {
    const fingerprint = await this.#keys.hold(callId, epoch, key)
    if (this.#store.isPresent({ callId })) this.#store.updateCall({ keyEpoch: epoch, fingerprint })
  }

  async #onKeyUpdate(event: Event): Promise<void> {
    if (!this.#store.isPresent(event)) return
    const { callId, epoch, encryptedAESKey, fromUserId, fromDeviceId } = event
    const key = await this.#exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
    if (this.#rejoining.isAsking(callId)) return this.#rejoining.comeBack(callId, epoch, key)
    await this.#hold(callId, epoch, key)
  }

  /**
   * The host makes a new key when its time has run out, and a little after a participant left, for several who leave
   * at once.
   */
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
    if (record.status === 'active') return this.#rejoining.ask(record)
    if (record.initiatorId !== this.#userId) return sessionStorage.removeItem(PRESENT)
    // The sent key went with the page, and no device in the call has it.
    await this.#requests.post(`${record.callId}/end`)
    await this.#close('The page was reloaded while it rang: the key is gone, so the call was given up.')
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof Problem && UNREACHABLE.has(error.code)
}

function unlessUnreachable(error: unknown): void {
  if (!isUnreachable(error)) throw error
}

const UNREACHABLE: ReadonlySet<string> = new Set(['OFFLINE', 'NO_ANSWER'])
/** In this tab's storage: the call that it is in. */
const PRESENT = 'callsign.call'
const AFTER_LEAVING_MS = 5_000
const REASON_WAIT_MS = 1_000
