/** One call of this device, from the first ring to its end. Its keys are made or opened here and never stored. */

import { CallsignError, hasCode } from '../callsign-error.ts'
import type { Connection } from '../connection/connection.ts'
import { Emitter } from '../emitter.ts'
import type { Server } from '../session/server.ts'
import type {
  CallInvitationEvent,
  CallParticipant,
  CallRecord,
  CallStatus,
  CallTopicEvent,
  KeyUpdateEvent,
  QueueEvent,
} from '../wire.ts'
import type { Call, CallEnding, CallEvents, CallGateway, CallPerson, CallState, KeyAsk } from './call.ts'
import { CallKeys, type EpochKey } from './call-keys.ts'
import { withFreshDevices } from './fresh-devices.ts'
import type { OpenedKey } from './key-exchange.ts'
import { KeyRotation, type RotatedCall } from './key-rotation.ts'
import { type RejoinedCall, Rejoining, type RejoiningDeps } from './rejoining.ts'

export interface CallDeps extends RejoiningDeps {
  readonly server: Server
  readonly connection: Connection
  readonly deviceId: string
  /** Notes the call that this device is in, for the next start. */
  readonly keepPresent: (callId: string) => Promise<void>
  /** Leaves the other call that this device is in. */
  readonly leaveOther: (call: LiveCall) => Promise<void>
  readonly onEnded: (call: LiveCall) => void
}

/** Members that never change. */
export type CallFacts = Pick<Call, 'callId' | 'isVideo' | 'isOnGoing'>

/** A key that came sealed for this device. */
interface SealedKey {
  readonly epoch: number
  readonly sealed: string
  /** Rejects when it does not open, or its sender does not verify. */
  readonly opened: Promise<OpenedKey>
}

export class LiveCall extends Emitter<CallEvents> implements Call, RejoinedCall, RotatedCall {
  readonly callId: string
  readonly isIncoming: boolean
  readonly isVideo: boolean
  readonly isOnGoing: boolean
  readonly caller: CallPerson
  readonly #deps: CallDeps
  readonly #keys: CallKeys
  readonly #rotation: KeyRotation
  readonly #rejoining: Rejoining
  #state: CallState = 'ringing'
  #ending: CallEnding | undefined
  #isVerified: boolean | undefined
  #record: CallRecord | undefined
  /** From `media_ready`, which may come before the reply to `join` that does not have it yet. */
  #media: CallGateway | undefined
  /** While it rings here. */
  #invited: SealedKey | undefined
  /** Once for all who ask at the same time. */
  #joining: Promise<void> | undefined
  /** The server may have this device in the call. */
  #mayBeIn = false
  /** Why it would have rung no more while it was answered here. */
  #rungOut: CallEnding | undefined
  #ringTimer: ReturnType<typeof setTimeout> | undefined
  #reasonTimer: ReturnType<typeof setTimeout> | undefined
  #unwatch: (() => void) | undefined
  #isWatching = false
  /** Events of the topic that come while the call is read, by read. */
  readonly #meanwhile = new Set<CallTopicEvent[]>()

  constructor(deps: CallDeps, { callId, isVideo, isOnGoing }: CallFacts, caller: CallPerson) {
    super()
    this.#deps = deps
    this.callId = callId
    this.isVideo = isVideo
    this.isOnGoing = isOnGoing
    this.caller = caller
    this.isIncoming = caller.userId !== deps.userId
    this.#keys = new CallKeys(callId)
    this.#rotation = new KeyRotation(deps, this)
    this.#rejoining = new Rejoining(deps, this)
  }

  get state(): CallState {
    return this.#state
  }

  get ending(): CallEnding | undefined {
    return this.#ending
  }

  get isVerified(): boolean | undefined {
    return this.#isVerified
  }

  get participants(): readonly CallParticipant[] {
    return this.#record?.participants ?? NOBODY
  }

  get self(): CallParticipant | undefined {
    return this.participants.find(({ userId }) => userId === this.#deps.userId)
  }

  get media(): CallGateway | undefined {
    const media = this.#record?.media
    return media?.state === 'pending' ? (this.#media ?? media) : media
  }

  get hostUserId(): string | undefined {
    return this.#record?.hostUserId
  }

  get isHost(): boolean {
    return this.hostUserId === this.#deps.userId
  }

  get roomId(): number | undefined {
    return this.#record?.roomId
  }

  get startedAtMs(): number | undefined {
    const startedAt = this.#record?.startedAt
    return startedAt === undefined ? undefined : Date.parse(startedAt)
  }

  get fingerprint(): string | undefined {
    return this.#keys.newest?.fingerprint
  }

  get keys(): readonly EpochKey[] {
    return this.#keys.all
  }

  /** Whether this device takes part, or wants to come back. */
  get isPresent(): boolean {
    return this.#state !== 'ended' && !(this.isIncoming && this.#state === 'ringing')
  }

  async answer(): Promise<void> {
    const invited = this.#assertRinging()
    await this.#joinOnce(() => this.#answer(invited))
  }

  async decline(reason: 'declined' | 'busy' | 'timeout' = 'declined'): Promise<void> {
    this.#assertRinging()
    this.close(reason === 'timeout' ? 'missed' : 'declined')
    await this.#deps.session.request('POST call/{callId}/decline', { reason }, this.at)
  }

  async end(): Promise<void> {
    const record = await this.#deps.session.request('POST call/{callId}/end', undefined, this.at)
    this.close(record.endReason ?? 'hangup')
  }

  async leave(): Promise<void> {
    await this.#deps.session.request('POST call/{callId}/leave', undefined, this.at)
    this.close('left')
  }

  async invite(userIds: readonly string[]): Promise<void> {
    const { exchange, session } = this.#deps
    const invited = withFreshDevices(async () => {
      const { key } = this.assertKey()
      const encryptedAESKeys = await exchange.sealForUsers(key, userIds)
      return session.request('POST call/{callId}/invite', { calleeIds: userIds, encryptedAESKeys }, this.at)
    })
    this.#show(await this.#withTopic(invited))
  }

  async remove(userId: string): Promise<void> {
    await this.#deps.session.request('POST call/{callId}/remove', { userId }, this.at)
  }

  renewKey(): Promise<void> {
    return this.#rotation.renew()
  }

  resendKey(): Promise<void> {
    return this.#rotation.resend()
  }

  askForKey(): Promise<void> {
    return this.#rejoining.askBeside()
  }

  grantKey(ask: KeyAsk): Promise<void> {
    return this.#rejoining.grant(ask)
  }

  /** Rings here with the key of an invitation, `ringsForMs` longer. */
  ring(sealed: string, epoch: number, ringsForMs: number): void {
    if (this.#invited !== undefined || this.#isOver) return
    const timeOut = () => this.#state === 'ringing' && void this.decline('timeout').catch(() => {})
    this.#ringTimer = setTimeout(timeOut, ringsForMs)
    this.#invite(epoch, sealed, () => this.#openInvitation(sealed))
    // The caller's screen can say so; that it rings does not hang on it.
    void this.#deps.connection.send(`/app/call/${this.callId}/ringing`, {}).catch(() => {})
  }

  /** Comes in without ringing: from another device of the user, or back. */
  async join(): Promise<void> {
    if (this.#record !== undefined) return
    await this.#joinOnce(async () => {
      try {
        const record = await this.#join().catch(error => {
          if (hasCode(error, 'REJOIN_REQUIRED')) return this.read()
          throw error
        })
        await this.#enterJoined(record)
      } catch (error) {
        if (this.#state === 'joining') this.close('unknown')
        throw error
      }
    })
  }

  /** Goes on with a call that this device is in, or was before a restart. */
  async resume(record: CallRecord): Promise<void> {
    if (record.status === 'active') return this.#rejoining.ask(record)
    // The key that was sent is gone with the app, and no other device has it.
    await this.#deps.session.request('POST call/{callId}/end', undefined, this.at)
    this.close('key_lost')
  }

  /** With its key, the call goes on here. */
  async enter(record: CallRecord, opened: OpenedKey, epoch = record.keyEpoch): Promise<void> {
    await this.begin(record, record.status === 'ringing' ? 'ringing' : 'active')
    if (!this.#isOver) this.hold(epoch, opened)
  }

  /** Shows the call as one that this device is in. */
  async begin(record: CallRecord, state: CallState): Promise<void> {
    // Without it the next start does not know of the call; this one does.
    await this.#deps.keepPresent(this.callId).catch(error => this.report(error))
    if (this.#isOver) return
    this.#record = record
    this.#setState(state)
    this.#rotation.plan(record)
    // The topic may have told of changes since the record was made.
    void (this.#isWatching ? this.refresh() : this.#watch())
  }

  /** After each connection. */
  async onConnected(): Promise<void> {
    await this.refresh()
    await this.#rejoining.askAgain()
  }

  /** Events of the topic that this device has missed are in the record. */
  async refresh(): Promise<void> {
    // While it joins, the server may not have this device in the call yet.
    if (!this.isPresent || this.#record === undefined) return
    void this.#watch()
    try {
      this.#show(await this.#withTopic(this.read()))
    } catch (error) {
      if (hasCode(error, 'CALL_ENDED', 'CALL_NOT_FOUND', 'NOT_PARTICIPANT')) this.closeSoon()
      else this.report(error)
    }
  }

  /** A message of this device's queue. */
  async onMessage(event: Extract<QueueEvent, { readonly callId: string }>): Promise<void> {
    switch (event.type) {
      case 'call_cancelled':
        return this.close('cancelled')
      case 'call_missed':
        return this.#onRungOut('missed')
      case 'call_answered_elsewhere':
        return this.#onRungOut(`${event.reason}_elsewhere`)
      case 'call_moved':
        return this.close('moved')
      case 'call_ended':
        return this.close(event.endReason)
      case 'media_ready':
        this.#media = event.media
        return this.emit('media', event.media)
      case 'participant_request_rejoin':
        return this.#rejoining.onAsked(event)
      case 'participant_accept_rejoin':
        return this.#rejoining.onGranted(event)
      case 'key_update':
        return this.#onKeyUpdate(event)
    }
  }

  /** Ends it for this device: keys are wiped. */
  close(reason: CallEnding): void {
    if (this.#isOver) return
    clearTimeout(this.#ringTimer)
    clearTimeout(this.#reasonTimer)
    this.#rotation.stop()
    this.#rejoining.stop()
    this.#unwatch?.()
    this.#invited = undefined
    this.#keys.wipe()
    this.#ending = reason
    // An app that draws at the end of a call finds it gone from `calls`.
    this.#deps.onEnded(this)
    this.#setState('ended')
    this.emit('ended', { reason })
  }

  /**
   * The queue says why it has ended, if it reaches this device; a moment later the call ends without a reason. A connection
   * that comes back meanwhile has as long: `refresh` calls this again.
   */
  closeSoon(): void {
    if (this.#isOver) return
    const { connection } = this.#deps
    const { connectedAtMs } = connection
    const close = () => this.close('unknown')
    clearTimeout(this.#reasonTimer)
    this.#reasonTimer = setTimeout(() => {
      if (connectedAtMs !== undefined && connection.connectedAtMs === connectedAtMs) return close()
      this.#reasonTimer = setTimeout(close, RECONNECTION_WAIT_MS)
    }, REASON_WAIT_MS)
  }

  setState(state: 'keyless'): void {
    this.#setState(state)
  }

  askApp(ask: KeyAsk): void {
    this.emit('key-asked', ask)
  }

  report(error: unknown): void {
    if (this.#isOver) return
    // The answer was faster than the message that says why.
    if (hasCode(error, 'CALL_ENDED')) return this.closeSoon()
    const told = error instanceof CallsignError ? error : new CallsignError('INTERNAL', String(error))
    this.emit('error', told)
  }

  get newestKey(): EpochKey | undefined {
    return this.#keys.newest
  }

  /** Values for the path of a request. */
  get at(): { readonly callId: string } {
    return { callId: this.callId }
  }

  /** A key that was made here. */
  own(key: Uint8Array): OpenedKey {
    const { userId, deviceId } = this.#deps
    return { key, userId, deviceId }
  }

  assertKey(): EpochKey {
    const { newest } = this.#keys
    if (newest !== undefined) return newest
    throw new CallsignError('KEY_MISSING', 'This device does not have the call’s key yet.')
  }

  read(): Promise<CallRecord> {
    return this.#deps.session.request('GET call/{callId}', undefined, this.at)
  }

  hold(epoch: number, { key, userId }: OpenedKey): void {
    const newest = this.#keys.hold(epoch, key)
    if (newest === undefined) return
    this.#changed()
    this.emit('key', { epoch: newest.epoch, fingerprint: newest.fingerprint, fromUserId: userId })
  }

  get #isOver(): boolean {
    return this.#state === 'ended'
  }

  #assertRinging(): SealedKey {
    if (this.#invited !== undefined && this.#state === 'ringing') return this.#invited
    throw new CallsignError('CALL_NOT_ACTIVE', 'The call does not ring here.')
  }

  #setState(state: CallState): void {
    if (this.#isOver || this.#state === state) return this.#changed()
    this.#state = state
    this.emit('state', state)
    this.#changed()
  }

  #changed(): void {
    this.emit('changed', undefined)
  }

  #joinOnce(join: () => Promise<void>): Promise<void> {
    this.#setState('joining')
    this.#joining ??= join().finally(() => {
      this.#joining = undefined
    })
    return this.#joining
  }

  async #answer(invited: SealedKey): Promise<void> {
    try {
      const opened = await invited.opened.catch(() => this.#openAgain(invited))
      const record = await this.#join()
      clearTimeout(this.#ringTimer)
      // It may have been renewed while it rang.
      const { epoch, opened: renewed } = this.#invited ?? invited
      this.#invited = undefined
      if (record.keyEpoch === invited.epoch) return await this.enter(record, opened)
      await this.#enterJoined(record, record.keyEpoch === epoch ? renewed : undefined)
    } catch (error) {
      if (this.#rungOut !== undefined) this.close(this.#rungOut)
      if (hasCode(error, 'CALL_ENDED', 'CALL_NOT_ACTIVE')) this.closeSoon()
      this.#mayBeIn = false
      if (this.#state === 'joining') this.#setState('ringing')
      throw error
    }
  }

  /** Where this device asks to join, the answer says whether the call is here. */
  #onRungOut(reason: CallEnding): void {
    if (this.isPresent && (this.#mayBeIn || this.#state !== 'joining')) this.#rungOut = reason
    else this.close(reason)
  }

  async #openInvitation(sealed: string): Promise<OpenedKey> {
    return this.#deps.exchange.openFromAny(await this.read(), sealed, this.caller.userId)
  }

  #invite(epoch: number, sealed: string, open: () => Promise<OpenedKey>): SealedKey {
    const invited = { epoch, sealed, opened: open() }
    this.#invited = invited
    const note = (isVerified: boolean) => {
      if (this.#invited !== invited) return
      this.#isVerified = isVerified
      this.#changed()
    }
    invited.opened.then(
      () => note(true),
      error => {
        if (!hasCode(error, 'CALL_ENDED')) note(false)
        this.report(error)
      },
    )
    return invited
  }

  /** The log may not have been reachable when it began to ring. */
  #openAgain({ epoch, sealed }: SealedKey): Promise<OpenedKey> {
    return this.#invite(epoch, sealed, () => this.#openInvitation(sealed)).opened
  }

  /** With the key that came for this device, or else with one that it asks for. */
  async #enterJoined(record: CallRecord, renewed?: Promise<OpenedKey>): Promise<void> {
    const { encryptedAESKey } = record
    const opening =
      renewed ??
      (encryptedAESKey === undefined ? undefined : this.#deps.exchange.openFromAny(record, encryptedAESKey))
    // Another device may give the key in a way that can be verified.
    const opened = await opening?.catch(error => this.report(error))
    await (opened ? this.enter(record, opened) : this.#rejoining.ask(record))
  }

  /** Leaves the call that this device is in for it, also one that the app knows nothing of. */
  async #join(): Promise<CallRecord> {
    const { session, leaveOther } = this.#deps
    this.#assertGoesOn()
    await leaveOther(this)
    this.#assertGoesOn()
    this.#mayBeIn = true
    const join = () => session.request('POST call/{callId}/join', undefined, this.at)
    const record = await join().catch(async error => {
      if (!hasCode(error, 'ALREADY_IN_CALL')) throw error
      await session.request('POST call/{callId}/leave', undefined, { callId: String(error.members.callId) })
      return join()
    })
    // Else it would be shown as a participant.
    if (this.#isOver) await session.request('POST call/{callId}/leave', undefined, this.at)
    this.#assertGoesOn()
    return record
  }

  #assertGoesOn(): void {
    if (this.#isOver) throw new CallsignError('CALL_NOT_ACTIVE', 'The call has ended here.')
  }

  /** Subscribes to the call's topic, then reads the call: earlier events are in the record, later ones arrive. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return
    this.#isWatching = true
    try {
      const unwatch = await this.#deps.connection.watch(`/topic/call.${this.callId}`, event =>
        this.#onTopic(event as CallTopicEvent),
      )
      if (this.#isOver) return unwatch()
      this.#unwatch = unwatch
      await this.refresh()
    } catch (error) {
      this.#isWatching = false
      this.report(error)
    }
  }

  /** The answer of the server, which may be older than what the topic tells before it arrives. */
  async #withTopic(answer: Promise<CallRecord>): Promise<CallRecord> {
    const told: CallTopicEvent[] = []
    this.#meanwhile.add(told)
    try {
      return told.reduce(withEvent, await answer)
    } finally {
      this.#meanwhile.delete(told)
    }
  }

  #show(record: CallRecord): void {
    if (this.#isOver) return
    if (isOver(record.status)) return this.close(record.endReason ?? 'unknown')
    this.#record = record
    const own = this.self
    if (own?.state === 'removed') return this.close('removed')
    if (own?.state === 'left' && !this.#rejoining.isAsking) return this.close('left')
    // The network was away for longer than the server waits.
    if (own?.state === 'lost' && this.#state === 'active') void this.#rejoining.ask(record).catch(() => {})
    else if (this.#state === 'ringing' && record.status === 'active') this.#setState('active')
    else this.#changed()
  }

  #onTopic(event: CallTopicEvent): void {
    if (this.#isOver || this.#record === undefined) return
    for (const told of this.#meanwhile) told.push(event)
    this.#record = withEvent(this.#record, event)
    if (event.type === 'host_changed') void this.#rejoining.onHostChanged()
    if ('participant' in event) this.#onParticipant(event.participant)
    else if (event.type === 'call_status' && isOver(event.status)) this.closeSoon()
    this.#changed()
  }

  #onParticipant(participant: CallParticipant): void {
    const { userId, state } = participant
    this.emit('participant', participant)
    if (this.#state === 'ringing' && state === 'joined') {
      const startedAt = new Date(this.#deps.server.nowMs()).toISOString()
      this.#record = { ...this.#record!, startedAt }
      this.#setState('active')
    }
    if (userId === this.#deps.userId) {
      if (state === 'removed') this.close('removed')
    } else if (['left', 'lost', 'removed'].includes(state)) this.#rotation.planAfterLeaving()
  }

  async #onKeyUpdate({ epoch, encryptedAESKey, fromUserId, fromDeviceId }: KeyUpdateEvent): Promise<void> {
    const open = async () => {
      const key = await this.#deps.exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
      return { key, userId: fromUserId, deviceId: fromDeviceId }
    }
    // It still rings here: the invitation's key is not good any more.
    if (!this.isPresent) return void (this.#isOver || this.#invite(epoch, encryptedAESKey, open))
    const opened = await open().catch(error => {
      this.report(error)
      return undefined
    })
    if (this.#isOver) return
    // Another device may give the key in a way that can be verified.
    if (opened === undefined) return this.#joining ?? this.#rejoining.ask(await this.read())
    if (this.#rejoining.isAsking) return this.#rejoining.comeBack(epoch, opened)
    this.hold(epoch, opened)
  }
}

/** How much longer an invitation rings, by the server's clock; as long as it was meant to while that is not known. */
export function ringsForMs(
  { expiresAt, sentAt }: Pick<CallInvitationEvent, 'expiresAt' | 'sentAt'>,
  server: Pick<Server, 'nowMs' | 'isTimeKnown'>,
): number {
  const expiresAtMs = Date.parse(expiresAt)
  const ringMs = expiresAtMs - sentAt
  return server.isTimeKnown ? Math.min(ringMs, expiresAtMs - server.nowMs()) : ringMs
}

function withEvent(record: CallRecord, event: CallTopicEvent): CallRecord {
  if (event.type === 'host_changed') return { ...record, hostUserId: event.hostUserId }
  if (!('participant' in event)) return record
  const { participant } = event
  const others = record.participants.filter(({ userId }) => userId !== participant.userId)
  return { ...record, participants: [...others, participant] }
}

export function isOver(status: CallStatus): boolean {
  return status !== 'ringing' && status !== 'active'
}

const NOBODY: readonly CallParticipant[] = []
const REASON_WAIT_MS = 2_000
const RECONNECTION_WAIT_MS = 30_000
