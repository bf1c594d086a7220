/**
 * Calls of this device, as `docs/calls.md` has them: start, ring, answer, leave, end, and the key in all of it, which is
 * made or opened here and never stored. A reload loses it: then the others are asked for it.
 */

import { type KeyHolder, makeCallKey, openCallKey, sealCallKey } from './call-key.ts'
import { CallKeys } from './call-keys.ts'
import type { Bytes } from './device-key.ts'
import type { KeyLog, Peer } from './key-log.ts'
import { Media } from './media.ts'
import { Problem, type Session, sentenceOf } from './session.ts'
import type { Event, Socket } from './socket.ts'
import type { Call, Participant, PastCall, Ring, Store } from './state.ts'

/** As the API answers; what this page uses of it. */
interface CallRecord {
  readonly callId: string
  readonly status: 'ringing' | 'active' | 'ended' | 'cancelled' | 'declined' | 'missed' | 'failed'
  readonly endReason?: string
  readonly isVideo: boolean
  readonly initiatorId: string
  readonly hostUserId: string
  readonly startedAt?: string
  readonly ringTimeoutIn: number
  readonly keyEpoch: number
  readonly keyRotationIn: number
  readonly isOnGoing: boolean
  readonly participants: readonly Participant[]
  readonly encryptedAESKey?: string
}

/** An invitation beside what is shown of it. */
interface Invitation {
  readonly sealed: string
  readonly timer: ReturnType<typeof setTimeout>
  /** Rejects when the key does not open, or its sender does not verify. */
  readonly opened: Promise<Bytes>
}

export class Calls {
  readonly media: Media
  readonly #store: Store
  readonly #session: Session
  readonly #socket: Socket
  readonly #keyLog: KeyLog
  readonly #userId: string
  readonly #keys = new CallKeys()
  readonly #invitations = new Map<string, Invitation>()
  #unwatch: (() => void) | undefined
  #rotationTimer: ReturnType<typeof setTimeout> | undefined
  #askTimer: ReturnType<typeof setTimeout> | undefined

  constructor(store: Store, session: Session, socket: Socket, keyLog: KeyLog, userId: string) {
    this.#store = store
    this.#session = session
    this.#socket = socket
    this.#keyLog = keyLog
    this.#userId = userId
    this.media = new Media(store, session, socket, this.#keys, keyLog.self.name)
  }

  /** Calls these contacts. The key is made here and encrypted for each of their devices, if all of them verify. */
  async start(calleeIds: readonly string[], isVideo: boolean): Promise<void> {
    const key = makeCallKey()
    const record = await this.#withFreshDevices(async () => {
      const encryptedAESKeys = await this.#sealed(key, await this.#keyLog.devicesOf(calleeIds))
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
    await this.#withFreshDevices(async () => {
      const encryptedAESKeys = await this.#sealed(held.key, await this.#keyLog.devicesOf(calleeIds))
      this.#show(await this.#post<CallRecord>(`${callId}/invite`, { calleeIds, encryptedAESKeys }))
    })
  }

  /** Answers; a call that this tab is in is left for it. */
  async answer(callId: string): Promise<void> {
    const invitation = this.#invitations.get(callId)
    if (invitation === undefined) return
    const opened = await invitation.opened
    if (this.#store.state.call !== undefined) await this.leave()
    const record = await this.#post<CallRecord>(`${callId}/join`)
    this.#stopRinging(callId)
    const { encryptedAESKey } = record
    // The key may have been renewed while it rang; one that is older is not given out any more.
    if (encryptedAESKey === undefined) return this.#recover(record)
    const key = encryptedAESKey === invitation.sealed ? opened : await this.#openFrom(record, encryptedAESKey)
    await this.#enter(record, key)
  }

  async decline(callId: string): Promise<void> {
    this.#stopRinging(callId)
    await this.#post(`${callId}/decline`, { reason: 'declined' })
    await this.loadHistory()
  }

  /** Leaves; the others go on. */
  async leave(): Promise<void> {
    const { callId, participants } = this.#present
    await this.#post(`${callId}/leave`)
    await this.#close(
      participants.length > 2 ? 'You left the call.' : 'You left. The call waits a while for you.',
    )
  }

  /** Ends it for all, or gives up before anybody has answered. */
  async end(): Promise<void> {
    const record = await this.#post<CallRecord>(`${this.#present.callId}/end`)
    await this.#close(endingOf(record.status, record.endReason))
  }

  async remove(userId: string): Promise<void> {
    await this.#post(`${this.#present.callId}/remove`, { userId })
  }

  /** A new key for all who are in the call; the host's business. */
  async renewKey(reason: 'rotation' | 'leave' = 'rotation'): Promise<void> {
    const { callId } = this.#present
    const key = makeCallKey()
    const epoch = await this.#withFreshDevices(async () => {
      const record = await this.#get(callId)
      const encryptedAESKeys = await this.#sealed(key, await this.#receivers(record))
      await this.#socket.send(`/app/call/${callId}/keys`, {
        ...{ epoch: record.keyEpoch + 1, reason, encryptedAESKeys },
      })
      return record.keyEpoch + 1
    })
    await this.#hold(callId, epoch, key)
  }

  /** Comes back into a call that was left, or whose key is gone with a reload. */
  async rejoin(callId: string): Promise<void> {
    await this.#recover(await this.#get(callId))
  }

  /** After each connection: what rings, and the call that this tab was in. */
  async onConnected(): Promise<void> {
    const { items } = await this.#session.request<{ items: readonly CallRecord[] }>('GET', 'call/pending')
    for (const record of items) this.#onPending(record)
    const callId = this.#store.state.call?.callId ?? sessionStorage.getItem(PRESENT)
    if (callId === null) return
    try {
      const record = await this.#get(callId)
      if (isOver(record)) await this.#close(endingOf(record.status, record.endReason))
      else if (this.#keys.has(callId)) await this.#watch(record)
      else await this.#resume(record)
    } catch (error) {
      if (!(error instanceof Problem) || error.code === 'OFFLINE' || error.code === 'NO_ANSWER') throw error
      await this.#close(sentenceOf(error))
    }
  }

  /** A message of the queue of calls. */
  async onEvent(event: Event): Promise<void> {
    switch (event.type) {
      case 'call_invitation':
        return this.#ring({
          ...event,
          expiresAtMs: Date.parse(event.expiresAt),
          sealed: event.encryptedAESKey,
        })
      case 'call_cancelled':
      case 'call_missed':
      case 'call_answered_elsewhere':
        return this.#onInvitationOver(event)
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
    const { items } = await this.#session.request<{ items: readonly PastCall[] }>(
      'GET',
      'call/history?limit=30',
    )
    this.#store.update({ history: items })
  }

  async markSeen(): Promise<void> {
    await this.#session.request('POST', 'call/history/seen')
    this.#store.update({ missedCalls: 0 })
  }

  /** The tab's user is signed out. */
  close(): void {
    for (const callId of [...this.#invitations.keys()]) this.#stopRinging(callId)
    this.#forget()
  }

  #onPending(record: CallRecord): void {
    const { callId, isVideo, isOnGoing, participants, encryptedAESKey } = record
    const own = participants.find(({ userId }) => userId === this.#userId)
    const caller = participants.find(({ userId }) => userId === own?.invitedBy)
    if (own === undefined || caller === undefined || encryptedAESKey === undefined) return
    this.#ring({
      ...{ callId, isVideo, isOnGoing, callerId: caller.userId, callerName: caller.displayName },
      expiresAtMs: Date.parse(own.invitedAt) + record.ringTimeoutIn * 1000,
      sealed: encryptedAESKey,
    })
  }

  #ring(told: Omit<Ring, 'check'> & { readonly expiresAtMs: number; readonly sealed: string }): void {
    const { callId, callerId, callerName, isVideo, isOnGoing, expiresAtMs, sealed } = told
    if (this.#invitations.has(callId) || callId === this.#store.state.call?.callId) return
    const opened = this.#get(callId).then(record => this.#openFrom(record, sealed, callerId))
    const timer = setTimeout(() => void this.#onUnanswered(callId), expiresAtMs - Date.now())
    this.#invitations.set(callId, { sealed, timer, opened })
    const ring: Ring = { callId, callerId, callerName, isVideo, isOnGoing, check: 'checking' }
    this.#store.update({ rings: [...this.#store.state.rings, ring] })
    void this.#socket.send(`/app/call/${callId}/ringing`, {}).catch(() => {})
    opened.then(
      () => this.#showCheck(callId, 'verified'),
      error => this.#showCheck(callId, { refusal: sentenceOf(error) }),
    )
  }

  #showCheck(callId: string, check: Ring['check']): void {
    const rings = this.#store.state.rings.map(ring => (ring.callId === callId ? { ...ring, check } : ring))
    this.#store.update({ rings })
  }

  async #onUnanswered(callId: string): Promise<void> {
    this.#stopRinging(callId)
    await this.#post(`${callId}/decline`, { reason: 'timeout' }).catch(() => {})
    await this.loadHistory().catch(() => {})
  }

  #stopRinging(callId: string): void {
    clearTimeout(this.#invitations.get(callId)?.timer)
    this.#invitations.delete(callId)
    this.#store.update({ rings: this.#store.state.rings.filter(ring => ring.callId !== callId) })
  }

  async #onInvitationOver({ type, callId, callerName }: Event): Promise<void> {
    const hasRung = this.#invitations.has(callId)
    this.#stopRinging(callId)
    if (hasRung && type === 'call_answered_elsewhere') this.#store.say('good', 'Answered on another device.')
    else if (hasRung) this.#store.say('good', `${callerName} gave up.`)
    await this.loadHistory()
  }

  async #enter(record: CallRecord, key: Bytes): Promise<void> {
    const fingerprint = await this.#keys.hold(record.callId, record.keyEpoch, key)
    this.#begin(record, { phase: phaseOf(record), fingerprint })
    await this.#watch(record)
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
    const record = await this.#get(callId)
    if (isOver(record)) return this.#close(endingOf(record.status, record.endReason))
    this.#show(record)
    await this.media.connect()
  }

  /** What the record says of the call, in place of what is shown. */
  #show(record: CallRecord): void {
    const { call } = this.#store.state
    if (call?.callId !== record.callId) return
    const phase = call.phase === 'ringing' || call.phase === 'active' ? phaseOf(record) : call.phase
    const { participants, hostUserId } = record
    this.#store.updateCall({ phase, participants, hostUserId, startedAtMs: startOf(record) })
    this.#keepMedia()
  }

  #onTopic(event: Event): void {
    if (!this.#isPresent(event)) return
    switch (event.type) {
      case 'participant_joined':
        this.#showParticipant(event.participant)
        if (this.#present.phase === 'ringing')
          this.#store.updateCall({ phase: 'active', startedAtMs: Date.now() })
        return
      case 'participant_left':
        this.#showParticipant(event.participant)
        if (event.participant.userId === this.#userId) return this.#onRemoved(event.participant)
        return this.#planRotation(AFTER_LEAVING_MS, 'leave')
      case 'participant_invited':
      case 'participant_ringing':
      case 'participant_declined':
        return this.#showParticipant(event.participant)
      case 'host_changed':
        return this.#store.updateCall({ hostUserId: event.hostUserId })
      case 'call_status':
        if (event.status !== 'active' && event.status !== 'ringing') void this.#onStatusOver(event.callId)
    }
  }

  #showParticipant(participant: Participant): void {
    const { participants } = this.#present
    const others = participants.filter(({ userId }) => userId !== participant.userId)
    const isKnown = others.length < participants.length
    const merged = isKnown
      ? participants.map(one => (one.userId === participant.userId ? participant : one))
      : [...participants, participant]
    this.#store.updateCall({ participants: merged })
    this.#keepMedia()
  }

  #keepMedia(): void {
    const joined = this.#present.participants.filter(({ state }) => state === 'joined')
    this.media.keepOnly(new Set(joined.map(({ userId, deviceId }) => `${userId}_${deviceId}`)))
  }

  #onRemoved({ state }: Participant): void {
    if (state === 'removed') void this.#close('The host has removed you from the call.')
  }

  /** The record says why; the queue tells only those who did not end it. */
  async #onStatusOver(callId: string): Promise<void> {
    const { status, endReason } = await this.#get(callId).catch(() => ({
      status: 'ended',
      endReason: undefined,
    }))
    if (this.#store.state.call?.callId === callId) await this.#close(endingOf(status, endReason))
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
    sessionStorage.removeItem(PRESENT)
    this.#store.update({ call: undefined })
  }

  /** Keys for these devices, by `<userId>_<deviceId>`. */
  async #sealed(key: Bytes, devices: readonly KeyHolder[]): Promise<Record<string, string>> {
    const { self } = this.#keyLog
    const others = devices.filter(({ name }) => name !== self.name)
    return Object.fromEntries(
      await Promise.all(others.map(async to => [to.name, await sealCallKey(key, self, to)] as const)),
    )
  }

  /** Who gets a new key: the devices that are in the call, and those that still ring. */
  async #receivers({ participants }: CallRecord): Promise<readonly Peer[]> {
    const others = participants.filter(({ userId }) => userId !== this.#userId)
    const inIt = others.filter(({ state }) => ['joined', 'invited', 'ringing'].includes(state))
    const devices = await this.#keyLog.devicesOf(inIt.map(({ userId }) => userId))
    return devices.filter(({ userId, deviceId }) => {
      const { state, deviceId: present } = inIt.find(one => one.userId === userId)!
      return state !== 'joined' || deviceId === present
    })
  }

  /** The call's key, from whoever in the call has sealed it: `callerId`, or else anybody for whom it opens. */
  async #openFrom(
    { participants, hostUserId }: CallRecord,
    sealed: string,
    callerId?: string,
  ): Promise<Bytes> {
    const likely = [callerId, hostUserId]
    const senders = participants
      .filter(({ userId, deviceId }) => deviceId !== undefined && userId !== this.#userId)
      .sort((a, b) => Number(likely.includes(b.userId)) - Number(likely.includes(a.userId)))
    let refusal = new Error('Nobody in the call has sent its key.')
    for (const { userId, deviceId, displayName } of senders) {
      const from = await this.#keyLog.deviceOf(userId, deviceId!).catch(error => {
        refusal = error
      })
      if (!from) continue
      try {
        return await openCallKey(sealed, from, this.#keyLog.self)
      } catch {
        refusal = new Error(`The call’s key was not sealed by ${displayName}. It is not used.`)
      }
    }
    throw refusal
  }

  async #hold(callId: string, epoch: number, key: Bytes): Promise<void> {
    const fingerprint = await this.#keys.hold(callId, epoch, key)
    const { call } = this.#store.state
    if (call?.callId !== callId) return
    this.#store.updateCall({ keyEpoch: epoch, fingerprint })
  }

  async #onKeyUpdate(event: Event): Promise<void> {
    if (!this.#isPresent(event)) return
    const { callId, epoch, encryptedAESKey, fromUserId, fromDeviceId } = event
    const from = await this.#keyLog.deviceOf(fromUserId, fromDeviceId)
    const key = await openCallKey(encryptedAESKey, from, this.#keyLog.self).catch(() => {
      throw new Error('A new key came that does not open, and is not used.')
    })
    const { phase } = this.#present
    await this.#hold(callId, epoch, key)
    if (phase === 'asking' || phase === 'keyless') await this.#return(callId, epoch, key)
  }

  /** The host makes a new key when its time is over, and a little after somebody left, for several who leave at once. */
  #planRotation(afterMs: number, reason: 'rotation' | 'leave' = 'rotation'): void {
    clearTimeout(this.#rotationTimer)
    this.#rotationTimer = setTimeout(() => {
      const { call } = this.#store.state
      const others = call?.participants.filter(
        ({ state, userId }) => state === 'joined' && userId !== this.#userId,
      )
      if (call?.hostUserId !== this.#userId || call.phase !== 'active' || others?.length === 0) return
      this.renewKey(reason).catch(error => this.#store.say('bad', sentenceOf(error)))
    }, afterMs)
  }

  /** The page was reloaded: it knows the call, and not its key. */
  async #resume(record: CallRecord): Promise<void> {
    if (record.status === 'active') return this.#recover(record)
    if (record.initiatorId !== this.#userId) return sessionStorage.removeItem(PRESENT)
    // The key that the others were sent went with the page, and there is nobody in the call to have it from.
    await this.#post(`${record.callId}/end`).catch(() => {})
    await this.#close('The page was reloaded while it rang: the key is gone, so the call was given up.')
  }

  async #recover(record: CallRecord): Promise<void> {
    const { callId } = record
    if (isOver(record)) return this.#close(endingOf(record.status, record.endReason))
    this.#begin(record, { phase: 'asking', fingerprint: undefined })
    try {
      const { expiresIn } = await this.#post<{ expiresIn: number }>(`${callId}/request-rejoin`)
      this.#askTimer = setTimeout(() => void this.#onNobodyGrants(callId), expiresIn * 1000)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'NO_ACTIVE_PARTICIPANT') {
        this.#forget()
        throw error
      }
      // Nobody is there: the call goes on with a new key.
      await this.#returnWithNewKey(callId)
    }
  }

  async #onNobodyGrants(callId: string): Promise<void> {
    const { call } = this.#store.state
    if (call?.callId !== callId || call.phase !== 'asking') return
    this.#store.updateCall({ phase: 'keyless' })
    if (call.hostUserId !== this.#userId) return
    await this.#returnWithNewKey(callId).catch(error => this.#store.say('bad', sentenceOf(error)))
  }

  async #returnWithNewKey(callId: string): Promise<void> {
    const { keyEpoch, hostUserId } = await this.#post<CallRecord>(`${callId}/rejoin`)
    if (hostUserId === this.#userId) await this.renewKey('rotation')
    const held = this.#keys.newest(callId)
    await this.#return(callId, held?.epoch ?? keyEpoch, held?.key ?? makeCallKey())
  }

  /** Somebody in the call has lost the key: they get it, when their device verifies. */
  async #grant({ callId, userId, deviceId, displayName, publicKeyHash }: Event): Promise<void> {
    const held = this.#keys.newest(callId)
    if (held === undefined) return
    const { participants } = await this.#get(callId)
    const asker = participants.find(one => one.userId === userId)
    if (asker === undefined || asker.state === 'removed') return
    const device = await this.#keyLog.deviceOf(userId, deviceId)
    if (device.publicKeyHash !== publicKeyHash)
      throw new Error(`${displayName} asks for the key from a device that is not theirs.`)
    const encryptedAESKey = await sealCallKey(held.key, this.#keyLog.self, device)
    const answer = { requesterUserId: userId, requesterDeviceId: deviceId, encryptedAESKey }
    await this.#socket.send(`/app/call/${callId}/accept-rejoin`, answer)
    this.#store.say('good', `${displayName} comes back: this tab gave them the key.`)
  }

  /** Takes the first answer that opens. */
  async #onGranted(event: Event): Promise<void> {
    if (!this.#isPresent(event)) return
    const { callId, encryptedAESKey, keyEpoch, fromUserId, fromDeviceId } = event
    if (this.#present.phase !== 'asking' && this.#present.phase !== 'keyless') return
    const from = await this.#keyLog.deviceOf(fromUserId, fromDeviceId)
    const key = await openCallKey(encryptedAESKey, from, this.#keyLog.self)
    await this.#return(callId, keyEpoch, key)
  }

  async #return(callId: string, epoch: number, key: Bytes): Promise<void> {
    clearTimeout(this.#askTimer)
    const record = await this.#post<CallRecord>(`${callId}/rejoin`)
    await this.#enter({ ...record, keyEpoch: epoch }, key)
  }

  get #present(): Call {
    const { call } = this.#store.state
    if (call === undefined) throw new Error('There is no call any more.')
    return call
  }

  #isPresent({ callId }: Event): boolean {
    return this.#store.state.call?.callId === callId
  }

  #get(callId: string): Promise<CallRecord> {
    return this.#session.request('GET', `call/${callId}`)
  }

  #post<Reply>(command: string, body?: object): Promise<Reply> {
    return this.#session.request('POST', `call/${command}`, body)
  }

  /** Once more when somebody's devices, or the epoch, have changed meanwhile. */
  async #withFreshDevices<Value>(act: () => Promise<Value>): Promise<Value> {
    try {
      return await act()
    } catch (error) {
      const isOutdated =
        error instanceof Problem && ['DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT'].includes(error.code)
      if (!isOutdated) throw error
      return act()
    }
  }
}

function isOver({ status }: CallRecord): boolean {
  return status !== 'ringing' && status !== 'active'
}

function phaseOf({ status }: CallRecord): Call['phase'] {
  return status === 'ringing' ? 'ringing' : 'active'
}

function startOf({ startedAt }: CallRecord): number | undefined {
  return startedAt === undefined ? undefined : Date.parse(startedAt)
}

function endingOf(status: string, endReason: string | undefined): string {
  return ENDINGS[endReason ?? ''] ?? ENDINGS[status] ?? 'The call is over.'
}

const ENDINGS: Readonly<Record<string, string>> = {
  hangup: 'The call is over.',
  cancelled: 'The call was given up.',
  declined: 'Declined.',
  unanswered: 'No answer.',
  missed: 'No answer.',
  caller_lost: 'The caller’s connection was lost.',
  empty: 'Everybody had left: the call is over.',
  alone: 'Nobody else came back: the call is over.',
  limit: 'The call has lasted as long as a call may.',
  removed: 'You were removed from the call.',
}
/** In this tab's storage: the call that it is in. */
const PRESENT = 'callsign.call'
const AFTER_LEAVING_MS = 5_000
