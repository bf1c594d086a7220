/** One of a crowd: a phone that is in one call at a time, and checks of what its app hands over. */

import type { Call } from '../../src/app/app.ts'
import { Recent } from '../../src/recent.ts'
import { type Phone, sentenceOf } from './phone.ts'

/** A breach of the server's promises; `reason` groups equal ones. */
export class Failure extends Error {
  readonly reason: string

  constructor(reason: string, detail = '') {
    super(detail === '' ? reason : `${reason}: ${detail}`)
    this.reason = reason
  }
}

/** Fingerprints of a call's keys by epoch: the same on all devices. */
export type Fingerprints = Map<number, string>

export class Member {
  readonly phone: Phone
  /** Those whom it can call. */
  readonly contacts: Member[] = []
  isBusy = false
  /** The last one that rang, was started, or went on after a restart. */
  call: Call | undefined = undefined
  rangAtMs = 0
  readonly #onFailure: (error: unknown) => void
  #fingerprints: Fingerprints = new Map()
  /** Messages about the present call: type and call. */
  readonly #told = new Set<string>()
  /** Messages that came, the oldest first. */
  readonly #known = new Recent<string, true>(KNOWN_MAX)
  #waiting: (() => void)[] = []

  constructor(phone: Phone, onFailure: (error: unknown) => void) {
    this.phone = phone
    this.#onFailure = onFailure
    for (const type of CALL_MESSAGES) {
      phone.on(type, ({ eventId, callId }) => {
        this.#onceOnly(type, eventId)
        this.#told.add(`${type} ${callId}`)
      })
    }
    phone.on('ringing', call => {
      this.#onceOnly('ringing call', call.callId)
      this.rangAtMs = performance.now()
      this.take(call)
    })
    phone.on('resumed', call => this.take(call))
    phone.on('changed', () => {
      for (const resolve of this.#waiting.splice(0)) resolve()
    })
    phone.on('error', onFailure)
    phone.on('keys', ({ kind, userId }) => onFailure(new Failure(`keys: ${kind}`, `user ${userId}`)))
    phone.on('signed-out', error => onFailure(new Failure('shut out', sentenceOf(error))))
  }

  get isFree(): boolean {
    return !this.isBusy && this.phone.isOnline
  }

  /** For one call; what came of the last one is forgotten. */
  reserve(fingerprints: Fingerprints): void {
    this.isBusy = true
    this.call = undefined
    this.#fingerprints = fingerprints
    this.#told.clear()
  }

  /** It has left the call, however that went. */
  async release(): Promise<void> {
    const { call } = this
    if (call !== undefined && call.state !== 'ended') await call.end().catch(() => {})
    this.isBusy = false
  }

  take(call: Call): void {
    this.call = call
    call.on('key', key => this.#compare(call, key))
    call.on('error', error => this.#onFailure(error))
    const [key] = call.keys
    if (key !== undefined) this.#compare(call, key)
  }

  /** Waits until it rings for a call. Throws `Failure`. */
  async hearRinging(callId: string): Promise<Call> {
    await this.until('no call_invitation', () => this.call?.callId === callId)
    return this.call!
  }

  /** Waits until it was told that the call has ended. Throws `Failure`. */
  hearEnd({ callId }: Call): Promise<void> {
    const isTold = () => ENDINGS.some(type => this.#told.has(`${type} ${callId}`))
    return this.until('the end of a call was not told', isTold)
  }

  /** A lost connection begins the time anew: missed events come on the next one. */
  async until(reason: string, isSo: () => boolean): Promise<void> {
    let isLate = false
    let { connects } = this.phone
    const check = () => {
      isLate = this.phone.isOnline && this.phone.connects === connects
      if (isLate) for (const resolve of this.#waiting.splice(0)) resolve()
      connects = this.phone.connects
      timer = setTimeout(check, WORD_MS_MAX)
    }
    let timer = setTimeout(check, WORD_MS_MAX)
    while (!isSo() && !isLate) await new Promise<void>(resolve => this.#waiting.push(resolve))
    clearTimeout(timer)
    if (!isSo()) throw new Failure(reason, `${this.phone.displayName}, device ${this.phone.app.deviceId}`)
  }

  #compare(
    { callId }: Call,
    { epoch, fingerprint }: { readonly epoch: number; readonly fingerprint: string },
  ) {
    const known = this.#fingerprints.get(epoch) ?? fingerprint
    this.#fingerprints.set(epoch, known)
    if (known !== fingerprint) this.#onFailure(new Failure('wrong key', callId))
  }

  /** In one run of the app. */
  #onceOnly(what: string, id: string): void {
    const name = `${what} ${id} ${this.phone.starts}`
    if (this.#known.has(name)) this.#onFailure(new Failure(`${what} came twice`, id))
    this.#known.set(name, true)
  }
}

const ENDINGS = ['call_ended', 'call_cancelled', 'call_missed'] as const
const CALL_MESSAGES = [...ENDINGS, 'call_invitation', 'key_update', 'participant_accept_rejoin'] as const
/** Whatever has not come by then will not come: invitations and ends take milliseconds. */
const WORD_MS_MAX = 20_000
/** Messages that are remembered. */
const KNOWN_MAX = 300
