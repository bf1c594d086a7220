/**
 * A call whose key is gone, with a reload or since the call was left: this tab asks the call's devices, comes back
 * with the first key that opens, and makes another one when no device has it. It also answers such asks.
 */

import type { CallKeys } from './call-keys.ts'
import type { CallRecord } from './call-record.ts'
import type { CallRequests } from './call-requests.ts'
import type { Bytes } from './device-key.ts'
import type { KeyExchange } from './key-exchange.ts'
import { Problem, sentenceOf } from './session.ts'
import type { Event, Socket } from './socket.ts'
import type { KeyAsk, Store } from './state.ts'

export interface RejoiningParts {
  readonly store: Store
  readonly socket: Socket
  readonly requests: CallRequests
  readonly exchange: KeyExchange
  readonly keys: CallKeys
  readonly userId: string
  /** Shows the call as one that this tab asks for. */
  readonly begin: (record: CallRecord) => void
  /** With its key, the call goes on here. */
  readonly enter: (record: CallRecord, key: Bytes) => Promise<void>
  readonly renewKey: () => Promise<void>
  /** The call can't be come back into. */
  readonly giveUp: () => void
}

export class Rejoining {
  readonly #parts: RejoiningParts
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Devices that asked for the key while this tab did not have it either. */
  readonly #askers = new Set<string>()

  constructor(parts: RejoiningParts) {
    this.#parts = parts
  }

  isAsking(callId: string): boolean {
    const { call } = this.#parts.store.state
    return call?.callId === callId && (call.phase === 'asking' || call.phase === 'keyless')
  }

  async ask(record: CallRecord): Promise<void> {
    const { requests, begin, giveUp } = this.#parts
    const { callId } = record
    begin(record)
    try {
      const { expiresIn } = await requests.post<{ expiresIn: number }>(`${callId}/request-rejoin`)
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => void this.#onNobodyGrants(callId), expiresIn * 1000)
      await this.#giveUpWhenAllAsk(callId)
    } catch (error) {
      if (error instanceof Problem && error.code === 'NO_ACTIVE_PARTICIPANT') {
        return this.#returnWithNewKey(callId)
      }
      giveUp()
      throw error
    }
  }

  /**
   * A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had
   * joined with waits until the person here says so: a server could have made it up.
   */
  async onAsked({ callId, userId, deviceId, displayName, publicKeyHash }: Event): Promise<void> {
    const { store, requests, keys } = this.#parts
    const held = keys.newest(callId)
    if (held === undefined) {
      this.#askers.add(userId)
      return this.#giveUpWhenAllAsk(callId)
    }
    const { participants } = await requests.get(callId)
    const asker = participants.find(one => one.userId === userId)
    if (asker === undefined || asker.state === 'removed') return
    const ask = { callId, userId, deviceId, displayName, publicKeyHash }
    if (asker.deviceId === deviceId) return this.grant(ask)
    const others = store.state.keyAsks.filter(one => one.deviceId !== deviceId)
    store.update({ keyAsks: [...others, ask] })
  }

  /** Gives a device the call's key. Rejects unless it is on the list of its person. */
  async grant(ask: KeyAsk): Promise<void> {
    const { store, socket, exchange, keys } = this.#parts
    const { callId, userId, deviceId, displayName, publicKeyHash } = ask
    this.refuse(ask)
    const held = keys.newest(callId)
    if (held === undefined) return
    const encryptedAESKey = await exchange.sealForDevice(held.key, userId, deviceId, publicKeyHash)
    const answer = { requesterUserId: userId, requesterDeviceId: deviceId, encryptedAESKey }
    await socket.send(`/app/call/${callId}/accept-rejoin`, answer)
    const isOwn = userId === this.#parts.userId
    store.say(
      'good',
      isOwn
        ? 'Another device of yours comes in: this tab has given it the key.'
        : `${displayName} comes back: this tab has given them the key.`,
    )
  }

  refuse({ deviceId }: KeyAsk): void {
    const { store } = this.#parts
    store.update({ keyAsks: store.state.keyAsks.filter(one => one.deviceId !== deviceId) })
  }

  /** Takes the first answer that opens. */
  async onGranted({ callId, encryptedAESKey, keyEpoch, fromUserId, fromDeviceId }: Event): Promise<void> {
    if (!this.isAsking(callId)) return
    const key = await this.#parts.exchange.open(encryptedAESKey, fromUserId, fromDeviceId)
    if (this.isAsking(callId)) await this.comeBack(callId, keyEpoch, key)
  }

  /** Into the call that this tab asks for, with the key that it was given. */
  async comeBack(callId: string, epoch: number, key: Bytes): Promise<void> {
    const { store, requests, enter } = this.#parts
    this.stop()
    store.updateCall({ phase: 'active' })
    const record = await requests.post<CallRecord>(`${callId}/rejoin`)
    await enter({ ...record, keyEpoch: epoch }, key)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#askers.clear()
  }

  async #onNobodyGrants(callId: string): Promise<void> {
    const { store, userId } = this.#parts
    if (!this.isAsking(callId) || store.presentCall.phase === 'keyless') return
    store.updateCall({ phase: 'keyless' })
    if (store.presentCall.hostUserId !== userId) return
    await this.#returnWithNewKey(callId).catch(error => store.say('bad', sentenceOf(error)))
  }

  /** No device has the key any more: the host makes another one. */
  async #returnWithNewKey(callId: string): Promise<void> {
    const { store, requests, keys, userId, renewKey, enter } = this.#parts
    const record = await requests.post<CallRecord>(`${callId}/rejoin`)
    store.updateCall({ hostUserId: record.hostUserId })
    if (record.hostUserId !== userId) return store.updateCall({ phase: 'keyless' })
    clearTimeout(this.#timer)
    await renewKey()
    const { epoch, key } = keys.newest(callId)!
    await enter({ ...record, keyEpoch: epoch }, key)
  }

  /** When all other devices ask too, none will answer: waiting is pointless. */
  async #giveUpWhenAllAsk(callId: string): Promise<void> {
    if (!this.isAsking(callId)) return
    const { store, userId } = this.#parts
    const others = store.presentCall.participants.filter(
      one => one.state === 'joined' && one.userId !== userId,
    )
    if (others.every(one => this.#askers.has(one.userId))) await this.#onNobodyGrants(callId)
  }
}
