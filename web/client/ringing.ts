/** Invitations into calls, from the first ring until they are answered, declined or over. */

import type { CallRecord } from './call-record.ts'
import type { CallRequests } from './call-requests.ts'
import type { Bytes } from './device-key.ts'
import type { KeyExchange } from './key-exchange.ts'
import { serverNowMs } from './server-clock.ts'
import { sentenceOf } from './session.ts'
import type { Event, Socket } from './socket.ts'
import type { Ring, Store } from './state.ts'

/** An invitation's content, from a message or from `GET call/pending`. */
export type Invited = Omit<Ring, 'check'> & { readonly ringsForMs: number; readonly sealed: string }

/** An invitation beside what is shown of it. */
interface Invitation {
  readonly sealed: string
  readonly timer: ReturnType<typeof setTimeout>
  /** Rejects when the key does not open, or its sender does not verify. */
  readonly opened: Promise<Bytes>
}

export class Ringing {
  readonly #store: Store
  readonly #requests: CallRequests
  readonly #socket: Socket
  readonly #exchange: KeyExchange
  readonly #userId: string
  readonly #invitations = new Map<string, Invitation>()

  constructor(store: Store, requests: CallRequests, socket: Socket, exchange: KeyExchange, userId: string) {
    this.#store = store
    this.#requests = requests
    this.#socket = socket
    this.#exchange = exchange
    this.#userId = userId
  }

  find(callId: string): Invitation | undefined {
    return this.#invitations.get(callId)
  }

  onInvitation(event: Event): void {
    const { callId, callerId, callerName, isVideo, isOnGoing, encryptedAESKey: sealed } = event
    // By the server's clock: this computer's may be wrong.
    const expiresAtMs = Date.parse(event.expiresAt)
    const ringsForMs = Math.min(expiresAtMs - event.sentAt, expiresAtMs - serverNowMs())
    this.#ring({ callId, callerId, callerName, isVideo, isOnGoing, ringsForMs, sealed })
  }

  /** A call that `GET call/pending` lists: it rang before this page was there. */
  onPending(record: CallRecord): void {
    const { callId, isVideo, isOnGoing, participants, encryptedAESKey: sealed } = record
    const own = participants.find(({ userId }) => userId === this.#userId)
    const caller = participants.find(({ userId }) => userId === own?.invitedBy)
    if (own === undefined || caller === undefined || sealed === undefined) return
    const { userId: callerId, displayName: callerName } = caller
    const ringsForMs = record.ringTimeoutIn * 1000
    this.#ring({ callId, callerId, callerName, isVideo, isOnGoing, ringsForMs, sealed })
  }

  /** It was cancelled, missed, or answered elsewhere. */
  onOver({ type, callId, callerName, reason }: Event): void {
    if (!this.#invitations.has(callId)) return
    this.stop(callId)
    const isElsewhere = type === 'call_answered_elsewhere'
    const elsewhere = ELSEWHERE[reason] ?? 'Answered on another device.'
    this.#store.say('good', isElsewhere ? elsewhere : `${callerName} has given up.`)
  }

  async decline(callId: string, reason: 'declined' | 'timeout'): Promise<void> {
    this.stop(callId)
    await this.#requests.post(`${callId}/decline`, { reason })
  }

  stop(callId: string): void {
    clearTimeout(this.#invitations.get(callId)?.timer)
    this.#invitations.delete(callId)
    this.#store.update({ rings: this.#store.state.rings.filter(ring => ring.callId !== callId) })
  }

  stopAll(): void {
    for (const callId of this.#invitations.keys()) this.stop(callId)
  }

  #ring({ ringsForMs, sealed, ...told }: Invited): void {
    const { callId, callerId } = told
    if (this.#invitations.has(callId) || this.#store.isPresent({ callId })) return
    const timer = setTimeout(() => void this.decline(callId, 'timeout').catch(() => {}), ringsForMs)
    const opened = this.#open(callId, callerId, sealed)
    this.#invitations.set(callId, { sealed, timer, opened })
    this.#store.update({ rings: [...this.#store.state.rings, { ...told, check: 'checking' }] })
    // The caller's screen can say so; that it rings does not hang on it.
    void this.#socket.send(`/app/call/${callId}/ringing`, {}).catch(() => {})
    opened.then(
      () => this.#show(callId, 'verified'),
      error => this.#show(callId, { refusal: sentenceOf(error) }),
    )
  }

  async #open(callId: string, callerId: string, sealed: string): Promise<Bytes> {
    const record = await this.#requests.get(callId)
    return this.#exchange.openFromAny(record, sealed, callerId)
  }

  #show(callId: string, check: Ring['check']): void {
    const rings = this.#store.state.rings.map(ring => (ring.callId === callId ? { ...ring, check } : ring))
    this.#store.update({ rings })
  }
}

const ELSEWHERE: Readonly<Record<string, string>> = {
  declined: 'Declined on another device.',
  busy: 'Another device of yours is in a call.',
}
