/**
 * A person's device in a seeded run, run by its app: its view of calls from received messages, and its connections;
 * it uses the newest.
 */

import type { CallDeviceRef } from '../../src/domain/calls/call.ts'
import type { CallActor } from '../../src/domain/calls/call-command.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { Accept } from '../../src/transport/connection.ts'
import { type DeviceLedger, type Ledger, nameOf } from './call-run-ledger.ts'
import { Line, type LineManners } from './call-run-line.ts'
import type { SeededRandom } from './world.ts'

/** The run's services to its phones. */
export interface PhoneRun {
  readonly draw: SeededRandom
  readonly ledger: Ledger
  readonly accept: Accept
  /** A number that was not given before. */
  readonly serial: () => number
  nowMs(): number
  note(event: string): void
  violate(what: string): void
  /** Whether the server is about to settle the message. */
  isSettling(phone: RunPhone, offset: number): boolean
}

interface Ring {
  readonly offset: number
  /** By its own clock it stops then. */
  readonly untilMs: number
}

export class RunPhone {
  readonly actor: CallActor
  readonly name: string
  readonly run: PhoneRun
  readonly ledger: DeviceLedger
  line: Line | undefined
  /** Offsets of what it has acknowledged and knows to be settled. */
  readonly confirmed = new Set<number>()
  /** Calls that it rings for. */
  readonly rings = new Map<CallId, Ring>()
  /** Devices that have asked for a call's key. */
  asks: (readonly [CallId, CallDeviceRef])[] = []
  /** By queue the last message that it has seen. */
  readonly positions = new Map<string, string>()
  /** It had a connection without acknowledgements: messages under way when that ended are lost. */
  mayMissSomething = false
  /** By call the offset of the last word on its ringing. */
  readonly #lastWords = new Map<CallId, number>()

  constructor(actor: CallActor, run: PhoneRun) {
    this.actor = actor
    this.name = nameOf(actor)
    this.run = run
    this.ledger = run.ledger.device(this.name)
  }

  /** Opens a connection; one that it had is left to itself. */
  connect(manners: LineManners): Line {
    this.mayMissSomething ||= manners.mode === 'auto'
    const before = this.line
    this.line = new Line(this, manners)
    before?.link.cut()
    return this.line
  }

  /** The user answers the call, by any invitation there is. */
  answer(callId: CallId): void {
    this.rings.delete(callId)
  }

  /** Whether it rings at that time, as far as it knows. */
  isRinging(callId: CallId, nowMs: number): boolean {
    const ring = this.rings.get(callId)
    const isAnswered = ring !== undefined && ring.offset <= (this.ledger.answered.get(callId) ?? 0)
    return ring !== undefined && nowMs < ring.untilMs && !isAnswered
  }

  onLineOver(line: Line): void {
    if (this.line === line) this.line = undefined
  }

  onMessage(queue: string, messageId: string, offset: number, text: string): void {
    this.positions.set(queue, messageId)
    const body = JSON.parse(text)
    this.run.note(`${this.name} reads ${body.type} ${offset}`)
    if (body.callId === undefined) return
    const callId = BigInt(body.callId) as CallId
    switch (body.type) {
      case 'call_invitation':
        return this.#onInvitation(callId, { offset, untilMs: Date.parse(body.expiresAt) })
      case 'call_cancelled':
      case 'call_missed':
      case 'call_answered_elsewhere':
        this.#lastWords.set(callId, offset)
        return void this.rings.delete(callId)
      case 'participant_request_rejoin': {
        const device = { userId: BigInt(body.userId), deviceId: BigInt(body.deviceId) } as CallDeviceRef
        this.asks.push([callId, device])
      }
    }
  }

  #onInvitation(callId: CallId, ring: Ring): void {
    const isLate = (this.#lastWords.get(callId) ?? 0) > ring.offset
    if (isLate) this.run.violate(`${this.name} rings for ${callId} after it was told that it is over`)
    this.rings.set(callId, ring)
  }
}
