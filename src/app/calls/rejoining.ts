/**
 * A call whose key is gone, with a restart or a long loss of the network: this device asks those in the call, comes back
 * with the first key that opens, and makes another one when no device has it. It also answers such asks.
 */

import { hasCode } from '../callsign-error.ts'
import type { Session } from '../session/session.ts'
import type { CallRecord, ParticipantAcceptRejoinEvent, ParticipantRequestRejoinEvent } from '../wire.ts'
import type { Call, CallState, KeyAsk } from './call.ts'
import type { EpochKey } from './call-keys.ts'
import type { KeyExchange, OpenedKey } from './key-exchange.ts'

export interface RejoiningDeps {
  readonly session: Session
  readonly exchange: KeyExchange
  readonly userId: string
}

/** The call as far as this needs it. */
export interface RejoinedCall
  extends Pick<Call, 'state' | 'isHost' | 'hostUserId' | 'participants' | 'renewKey'> {
  /** Values for the path of a request. */
  readonly at: { readonly callId: string }
  readonly isPresent: boolean
  readonly newestKey: EpochKey | undefined
  begin(record: CallRecord, state: CallState): Promise<void>
  enter(record: CallRecord, opened: OpenedKey, epoch?: number): Promise<void>
  setState(state: 'keyless'): void
  askApp(ask: KeyAsk): void
  report(error: unknown): void
  /** It has ended, and why may come yet. */
  closeSoon(): void
}

export class Rejoining {
  readonly #deps: RejoiningDeps
  readonly #call: RejoinedCall
  #timer: ReturnType<typeof setTimeout> | undefined
  #returning: Promise<void> | undefined
  /** Asks in a call that goes on. */
  #isAskingBeside = false
  /** Users who asked for the key while this device did not have it either. */
  readonly #askers = new Set<string>()

  constructor(deps: RejoiningDeps, call: RejoinedCall) {
    this.#deps = deps
    this.#call = call
  }

  get isAsking(): boolean {
    return this.#call.state === 'rejoining' || this.#call.state === 'keyless'
  }

  async ask(record: CallRecord): Promise<void> {
    await this.#call.begin(record, 'rejoining')
    await this.askAgain()
  }

  /** Without a key it is asked for again after the next connection, and after a while. */
  askAgain(): Promise<void> {
    return this.#try(async () => {
      const { session } = this.#deps
      const { expiresIn } = await session.request(
        'POST call/{callId}/request-rejoin',
        undefined,
        this.#call.at,
      )
      this.#wait(expiresIn * 1000, () => this.#try(() => this.#onNobodyGrants()))
      await this.#giveUpWhenAllAsk()
    })
  }

  /** Those who had the key may all be gone. */
  async onHostChanged(): Promise<void> {
    if (this.#call.state === 'keyless') await this.#try(() => this.#onNobodyGrants())
  }

  /**
   * A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had
   * joined with waits until the person here says so: a server could have made it up.
   */
  async onAsked({ userId, deviceId, displayName, publicKeyHash }: ParticipantRequestRejoinEvent) {
    const call = this.#call
    if (!call.isPresent) return
    if (call.newestKey === undefined) {
      this.#askers.add(userId)
      return this.#giveUpWhenAllAsk()
    }
    const { participants } = await this.#deps.session.request('GET call/{callId}', undefined, call.at)
    const asker = participants.find(one => one.userId === userId)
    if (asker === undefined || asker.state === 'removed') return
    const ask = { userId, deviceId, displayName, publicKeyHash }
    if (asker.deviceId === deviceId) return this.grant(ask)
    call.askApp(ask)
  }

  async grant({ userId, deviceId, publicKeyHash }: KeyAsk): Promise<void> {
    const held = this.#call.newestKey
    if (held === undefined) return
    const { exchange, session } = this.#deps
    const encryptedAESKey = await exchange.sealForDevice(held.key, userId, deviceId, publicKeyHash)
    const answer = { requesterUserId: userId, requesterDeviceId: deviceId, encryptedAESKey }
    await session.request('POST call/{callId}/accept-rejoin', answer, this.#call.at)
  }

  /** Asks while the call goes on: the key that this device has does not open what a member sends. The host's key is the right one. */
  async askBeside(): Promise<void> {
    if (this.#call.state !== 'active' || this.#call.isHost) return
    this.#isAskingBeside = true
    await this.#deps.session.request('POST call/{callId}/request-rejoin', undefined, this.#call.at)
  }

  /** Takes the first answer that opens. A device that has a key takes a newer one, or the host's. */
  async onGranted(event: ParticipantAcceptRejoinEvent): Promise<void> {
    const { encryptedAESKey, keyEpoch, fromUserId, fromDeviceId } = event
    const isWanted = () => {
      const { state, newestKey, hostUserId } = this.#call
      const held = newestKey?.epoch ?? 0
      const isBetter = keyEpoch > held || (keyEpoch === held && fromUserId === hostUserId)
      return this.isAsking || (this.#isAskingBeside && state === 'active' && isBetter)
    }
    if (!isWanted()) return
    const key = await this.#deps.exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
    if (!isWanted()) return
    this.#isAskingBeside = false
    await this.comeBack(keyEpoch, { key, userId: fromUserId, deviceId: fromDeviceId })
  }

  /** Into the call, with the key that this device was given. */
  async comeBack(epoch: number, opened: OpenedKey): Promise<void> {
    const record = await this.#deps.session.request('POST call/{callId}/rejoin', undefined, this.#call.at)
    // It was sent before this device was lost, and there is a newer one since.
    if (epoch < record.keyEpoch) return this.ask(record)
    this.stop()
    await this.#call.enter(record, opened, epoch)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#askers.clear()
  }

  async #try(act: () => Promise<void>): Promise<void> {
    if (!this.isAsking) return
    try {
      await act()
    } catch (error) {
      if (hasCode(error, 'NO_ACTIVE_PARTICIPANT')) return this.#try(() => this.#returnWithNewKey())
      if (hasCode(error, 'CALL_ENDED', 'CALL_NOT_FOUND', 'NOT_PARTICIPANT')) return this.#call.closeSoon()
      this.#call.report(error)
      this.#wait(AGAIN_MS, () => this.askAgain())
    }
  }

  #wait(forMs: number, act: () => Promise<void>): void {
    clearTimeout(this.#timer)
    if (this.isAsking) this.#timer = setTimeout(() => void act(), forMs)
  }

  async #onNobodyGrants(): Promise<void> {
    this.#call.setState('keyless')
    if (this.#call.isHost) await this.#returnWithNewKey()
    else this.#wait(AGAIN_MS, () => this.askAgain())
  }

  /** No device has the key any more: the host makes another one, once for all that say so. */
  #returnWithNewKey(): Promise<void> {
    this.#returning ??= this.#makeKey().finally(() => {
      this.#returning = undefined
    })
    return this.#returning
  }

  async #makeKey(): Promise<void> {
    const { session, userId } = this.#deps
    const record = await session.request('POST call/{callId}/rejoin', undefined, this.#call.at)
    if (record.hostUserId !== userId) {
      this.#call.setState('keyless')
      return this.#wait(AGAIN_MS, () => this.askAgain())
    }
    this.stop()
    await this.#call.renewKey()
    await this.#call.begin(record, 'active')
  }

  /** When all other devices ask too, none will answer: waiting is pointless. */
  async #giveUpWhenAllAsk(): Promise<void> {
    if (!this.isAsking) return
    const isOther = ({ state, userId }: { readonly state: string; readonly userId: string }) =>
      state === 'joined' && userId !== this.#deps.userId
    if (this.#call.participants.filter(isOther).every(({ userId }) => this.#askers.has(userId)))
      await this.#try(() => this.#onNobodyGrants())
  }
}

const AGAIN_MS = 30_000
