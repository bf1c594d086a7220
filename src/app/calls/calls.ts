/** The calls of this device: those that ring, and the one that it is in. */

import { hasCode } from '../callsign-error.ts'
import { makeCallKey } from '../devices/call-key.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { CallInvitationEvent, CallRecord, ListCallHistoryReply, QueueEvent } from '../wire.ts'
import type { Call, CallEnding, CallPerson } from './call.ts'
import { withFreshDevices } from './fresh-devices.ts'
import { type CallDeps, type CallFacts, isOver, LiveCall, ringsForMs } from './live-call.ts'

export interface CallsDeps extends Omit<CallDeps, 'keepPresent' | 'leaveOther' | 'onEnded'> {
  readonly storage: AppStorage
  readonly onRinging: (call: Call) => void
  /** A call of before a restart goes on. */
  readonly onResumed: (call: Call) => void
  readonly onChanged: () => void
}

export interface StartOptions {
  readonly video?: boolean
  /** The media gateway's room; left out: the server assigns one. */
  readonly roomId?: number
}

/** An invitation, by socket or by push. */
export type Invitation = Pick<
  CallInvitationEvent,
  | 'callId'
  | 'callerId'
  | 'callerName'
  | 'isVideo'
  | 'isOnGoing'
  | 'encryptedAESKey'
  | 'keyEpoch'
  | 'expiresAt'
  | 'sentAt'
>

export class Calls {
  readonly #deps: CallsDeps
  readonly #callDeps: Omit<CallDeps, 'onEnded'>
  readonly #live = new Map<string, LiveCall>()
  /** When calls ended here, by the server's clock, the oldest first: an older invitation does not ring again. */
  readonly #endedAtMs = new Map<string, number>()
  #isClosing = false
  #closings = 0
  /** Called when the call of before a restart is there again, if there is one. */
  #onRestored!: () => void
  readonly #restored = new Promise<void>(resolve => (this.#onRestored = resolve))

  constructor(deps: CallsDeps) {
    this.#deps = deps
    this.#callDeps = {
      ...deps,
      keepPresent: callId => writeStored(deps.storage, this.#presentKey, { callId }),
      leaveOther: call => this.#leaveOther(call),
    }
  }

  get all(): readonly Call[] {
    return [...this.#live.values()]
  }

  /** Rejects unless every device of every callee verifies. */
  async start(userIds: readonly string[], { video = false, roomId }: StartOptions = {}): Promise<Call> {
    const { exchange, session, userId } = this.#deps
    const key = makeCallKey()
    const closings = this.#closings
    const record = await withFreshDevices(async () => {
      const encryptedAESKeys = await exchange.sealForUsers(key, userIds)
      const body = { calleeIds: userIds, encryptedAESKeys, isVideo: video }
      return session.request('POST call/start', roomId === undefined ? body : { ...body, roomId })
    })
    const call = this.#add(record, personIn(record, userId))
    if (closings === this.#closings) {
      await call.enter(record, call.own(key))
    } else {
      call.close('left')
      await call.end()
    }
    return call
  }

  /** Brings the user's call to this device: from another device, or one that they had left or missed. */
  async join(callId: string): Promise<Call> {
    const { session, userId } = this.#deps
    const record = await session.request('GET call/{callId}', undefined, { callId })
    const invitedBy = record.participants.find(one => one.userId === userId)?.invitedBy ?? record.initiatorId
    const call = this.#live.get(callId) ?? this.#add(record, personIn(record, invitedBy))
    await call.join()
    return call
  }

  /** After each connection: what rings, and the call that this device was in. */
  async onConnected(): Promise<void> {
    const { session } = this.#deps
    try {
      const { items } = await session.request('GET call/pending', undefined)
      for (const record of items) this.#onPending(record)
      await Promise.all([...this.#live.values()].map(call => call.onConnected()))
      await this.#resume()
    } finally {
      this.#onRestored()
    }
  }

  async onMessage(event: QueueEvent): Promise<void> {
    if (event.type === 'call_invitation') return void this.onInvitation(event)
    if (!('callId' in event)) return
    // Such as another device that asks for the key, after a restart of both.
    if (!this.#live.get(event.callId)?.isPresent) await this.#restored
    const call = this.#live.get(event.callId)
    await call?.onMessage(event).catch(error => {
      if (!hasCode(error, 'CALL_ENDED')) throw error
      call.closeSoon()
    })
  }

  /** Gives the call, undefined where it has rung out. */
  onInvitation(invitation: Invitation): Call | undefined {
    const { callId, callerId, callerName, encryptedAESKey, keyEpoch } = invitation
    const forMs = ringsForMs(invitation, this.#deps.server)
    const known = this.#live.get(callId)
    if (known !== undefined || forMs <= 0 || this.#hasEnded(callId, invitation.sentAt)) return known
    const call = this.#add(invitation, { userId: callerId, displayName: callerName }, invitation.sentAt)
    return this.#ring(call, encryptedAESKey, keyEpoch, forMs)
  }

  /** Told by push. */
  onCancelled(callId: string, reason: CallEnding): void {
    const call = this.#live.get(callId)
    if (call !== undefined && !call.isPresent) call.close(reason)
  }

  history(params: { readonly limit?: number; readonly cursor?: string } = {}): Promise<ListCallHistoryReply> {
    return this.#deps.session.request('GET call/history', undefined, params)
  }

  /** Missed calls count in the badge no more. */
  async markHistorySeen(): Promise<void> {
    await this.#deps.session.request('POST call/history/seen', undefined)
  }

  /** Forgets one call, or all. */
  async forgetHistory(callId?: string): Promise<void> {
    const { session } = this.#deps
    if (callId === undefined) await session.request('DELETE call/history', undefined)
    else await session.request('DELETE call/history/{callId}', undefined, { callId })
  }

  /** The session has ended, the app is closed, or another tab goes on: the next start asks the server. */
  closeAll(reason: 'left' | 'moved'): void {
    this.#isClosing = true
    this.#closings++
    for (const call of this.#live.values()) call.close(reason)
    this.#isClosing = false
  }

  get #presentKey(): string {
    return `call.${this.#deps.userId}`
  }

  /** A call that rang before the app was there. */
  #onPending(record: CallRecord): void {
    const { callId, participants, encryptedAESKey, ringTimeoutIn, keyEpoch } = record
    const own = participants.find(({ userId }) => userId === this.#deps.userId)
    if (this.#live.has(callId) || own === undefined || encryptedAESKey === undefined) return
    const invitedAtMs = Date.parse(own.invitedAt)
    if (this.#hasEnded(callId, invitedAtMs)) return
    const call = this.#add(record, personIn(record, own.invitedBy), invitedAtMs)
    this.#ring(call, encryptedAESKey, keyEpoch, ringTimeoutIn * 1000)
  }

  #ring(call: LiveCall, sealed: string, epoch: number, forMs: number): Call {
    call.ring(sealed, epoch, forMs)
    this.#deps.onRinging(call)
    return call
  }

  #add(facts: CallFacts, caller: CallPerson, invitedAtMs = 0): LiveCall {
    const deps = { ...this.#callDeps, onEnded: (call: LiveCall) => this.#onEnded(call, invitedAtMs) }
    const call = new LiveCall(deps, facts, caller)
    this.#live.set(facts.callId, call)
    call.on('changed', this.#deps.onChanged)
    return call
  }

  /** The app was in a call when it ended. */
  async #resume(): Promise<void> {
    const { session, storage, userId, deviceId } = this.#deps
    const isPresent = ({ callId }: Record<string, unknown>) => typeof callId === 'string'
    const present = await readStored<{ callId: string }>(storage, this.#presentKey, isPresent)
    if (present === undefined || this.#live.has(present.callId)) return
    const record = await session.request('GET call/{callId}', undefined, present).catch(error => {
      if (hasCode(error, 'CALL_ENDED', 'CALL_NOT_FOUND', 'NOT_PARTICIPANT')) return undefined
      throw error
    })
    const own = record?.participants.find(one => one.userId === userId)
    const isIn = own?.deviceId === deviceId && (own.state === 'joined' || own.state === 'lost')
    // Another connection may have been faster.
    if (this.#live.has(present.callId)) return
    if (record === undefined || isOver(record.status) || !isIn) return this.#forgetPresent()
    const call = this.#add(record, personIn(record, own.invitedBy))
    this.#deps.onResumed(call)
    await call.resume(record)
  }

  async #leaveOther(call: LiveCall): Promise<void> {
    for (const other of this.#live.values()) {
      if (other === call || !other.isPresent) continue
      await (other.state === 'ringing' ? other.end() : other.leave())
    }
  }

  /** Since the invitation of this time. The server may not have heard of it yet. */
  #hasEnded(callId: string, invitedAtMs: number): boolean {
    return invitedAtMs <= (this.#endedAtMs.get(callId) ?? 0)
  }

  #onEnded(call: LiveCall, invitedAtMs: number): void {
    this.#live.delete(call.callId)
    // The call may ring again when this tab comes back.
    if (this.#isClosing) return
    // By this clock the invitation may not have been made yet.
    this.#endedAtMs.set(call.callId, Math.max(invitedAtMs, this.#deps.server.nowMs()))
    if (this.#endedAtMs.size > ENDED_MAX) this.#endedAtMs.delete(this.#endedAtMs.keys().next().value!)
    // Should it fail, the next start finds that the call has ended.
    void this.#forgetPresent().catch(() => {})
  }

  async #forgetPresent(): Promise<void> {
    if ([...this.#live.values()].some(one => one.isPresent)) return
    await writeStored(this.#deps.storage, this.#presentKey, null)
  }
}

function personIn({ participants }: CallRecord, userId: string): CallPerson {
  const displayName = participants.find(one => one.userId === userId)?.displayName ?? ''
  return { userId, displayName }
}

const ENDED_MAX = 100
