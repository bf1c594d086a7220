/**
 * A call's room at the media gateway, id = the call's decimal id. The call room says which devices are in the call; this
 * actor has the gateway let in exactly these, one step at a time, and tells the call room whom it admits:
 *
 *     open ─> remove devices that left ─> admit devices that came ─> renew their tokens ─> close once the call has ended
 *
 * Where the call takes another room, that one opens next, and the one before closes once the devices had time to change. Where
 * its gateway is lost, the room opens at another, and the one before is left to that gateway's sweep.
 *
 * A step that fails is taken again after a growing pause, for as long as the call lasts, but for the closing of a room before: the
 * sweep does that. Nothing waits for it but a reply of
 * the call room, and that for a second. The actor keeps nothing: one that is built anew asks the call room, and takes over
 * the room that is there.
 */

import { backOffMs } from '../../src/back-off.ts'
import type { RoomEntry } from '../../src/domain/calls/call.ts'

import { type CallId, parseUint64 } from '../../src/domain/ids.ts'
import { assert } from '../../src/errors.ts'
import {
  GatewayError,
  type GatewayFailure,
  type GatewayRoom,
  type MediaGateway,
} from '../../src/media/gateway.ts'
import type { Actor, ActorKind, Context, Ref } from '../../src/runtime/actor.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../messages.ts'

export interface MediaRoomDeps {
  /** The gateway for a call's room, by name: see `GatewayPool`. */
  readonly choose: (callId: CallId, held: string | undefined, asked: string | undefined) => string | undefined
  readonly gatewayOf: (name: string) => RoomGateway | undefined
  /** By decimal id. */
  readonly callRoom: (callId: string) => Ref<CallRoomMessage>
  readonly monotonicMs: () => number
  /** Told of each step that failed, for the log. */
  readonly onFailed: (failed: FailedStep) => void
}

export interface FailedStep {
  readonly callId: CallId
  /** Undefined while none may take the room. */
  readonly gateway: string | undefined
  readonly step: Step['kind']
  readonly error: unknown
}

type RoomGateway = Omit<MediaGateway, 'rooms'>

export function mediaRoomKind(deps: MediaRoomDeps): ActorKind<MediaRoomMessage> {
  return {
    kind: 'media-room',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (id, context) => new MediaRoom(deps, context, id),
  }
}

interface Wanted {
  readonly roomId: number
  readonly gateway: string | undefined
  readonly entries: ReadonlyMap<string, RoomEntry>
  readonly isOver: boolean
}

interface Open {
  readonly roomId: number
  readonly gateway: string
  readonly admitted: Map<string, RoomEntry>
}

type Step =
  | {
      readonly kind: 'open'
      readonly roomId: number
      /** Undefined while none may take it. */
      readonly gateway: string | undefined
      readonly entries: readonly RoomEntry[]
    }
  | { readonly kind: 'admit' | 'renew'; readonly entries: readonly RoomEntry[] }
  | { readonly kind: 'remove'; readonly entry: RoomEntry }
  | { readonly kind: 'close' }
  | { readonly kind: 'close-before'; readonly roomId: number; readonly gateway: string }

class MediaRoom implements Actor<MediaRoomMessage> {
  readonly #deps: MediaRoomDeps
  readonly #context: Context<MediaRoomMessage>
  readonly #callId: CallId
  readonly #callRoom: Ref<CallRoomMessage>
  #wanted: Wanted | undefined
  /** The gateway that was asked for the room last. */
  #asked: string | undefined
  /** The room that is open, and whom it lets in; undefined while there is none. */
  #open: Open | undefined
  /** Rooms that the call had before, and their gateways. A process that ends leaves them to the sweep. */
  readonly #before = new Map<number, string>()
  #isBeforeDue = false
  #openedAtMs = 0
  #isRenewalDue = false
  /** Under way. */
  #step: Step | undefined
  #failures = 0

  constructor(deps: MediaRoomDeps, context: Context<MediaRoomMessage>, id: string) {
    const callId = parseUint64(id)
    assert(callId !== undefined, 'a media room is of a call')
    this.#deps = deps
    this.#context = context
    this.#callId = callId as CallId
    this.#callRoom = deps.callRoom(id)
  }

  receive(message: MediaRoomMessage): void {
    switch (message.kind) {
      case 'wanted':
        return this.#onWanted(message)
      case 'stepped':
        return this.#onStepped(message.failure)
      case 'missing':
        return this.#onMissing(message)
      case 'homeless':
        return this.#onHomeless(message.gateway)
      case 'renewal-due':
        this.#isRenewalDue = true
        return this.#failures === 0 ? this.#go() : undefined
      case 'room-before-due':
        this.#isBeforeDue = true
        return this.#failures === 0 ? this.#go() : undefined
      case 'retry':
        return this.#go()
    }
  }

  #onWanted({ entries, ...wanted }: Extract<MediaRoomMessage, { kind: 'wanted' }>): void {
    this.#wanted = { ...wanted, entries: new Map(entries.map(entry => [nameOf(entry), entry])) }
    // A device that left and came back may be let in still.
    this.#tellAdmitted()
    if (this.#failures === 0) this.#go()
  }

  #onStepped(failure: GatewayFailure | undefined): void {
    const step = this.#step
    assert(step !== undefined, 'a step was under way')
    this.#step = undefined
    if (failure === 'no-such-room' && !CLOSING.has(step.kind)) return this.#lose()
    // Its gateway may be away for long, and the call goes on at another: the sweep closes it.
    if (step.kind === 'close-before') {
      this.#before.delete(step.roomId)
      return this.#go()
    }
    if (failure !== undefined) return this.#isVain(step) ? this.#go() : this.#tryLater()
    this.#failures = 0
    if (step.kind === 'close') return this.#context.stop()
    this.#note(step)
    this.#go()
  }

  #note(step: Exclude<Step, { kind: 'close' | 'close-before' }>): void {
    if (step.kind === 'open') this.#noteOpen(step.roomId, step.gateway!)
    if (step.kind === 'remove') return void this.#open?.admitted.delete(nameOf(step.entry))
    if (step.kind !== 'admit') {
      this.#isRenewalDue = false
      this.#context.startTimer(RENEWAL, RENEWAL_MS, { kind: 'renewal-due' })
    }
    for (const entry of step.entries) this.#open?.admitted.set(nameOf(entry), entry)
    this.#tellAdmitted()
  }

  #noteOpen(roomId: number, gateway: string): void {
    if (this.#open !== undefined) {
      this.#before.set(this.#open.roomId, this.#open.gateway)
      this.#isBeforeDue = false
      this.#context.startTimer(BEFORE, BEFORE_MS, { kind: 'room-before-due' })
    }
    this.#open = { roomId, gateway, admitted: new Map() }
    this.#openedAtMs = this.#deps.monotonicMs()
  }

  #onMissing({ gateway, askedAtMs }: Extract<MediaRoomMessage, { kind: 'missing' }>): void {
    if (this.#wanted === undefined) return this.#callRoom.tellControl({ kind: 'tell-media' })
    const isThis = this.#open?.roomId === this.#wanted.roomId && this.#open.gateway === gateway
    if (isThis && this.#openedAtMs < askedAtMs) return this.#lose()
    this.#go()
  }

  #onHomeless(gateway: string): void {
    if (this.#wanted === undefined) return this.#callRoom.tellControl({ kind: 'tell-media' })
    // Told again and again until the call has another.
    if (this.#wanted.isOver || this.#held() !== gateway || this.#step?.kind === 'open') return
    this.#failures = 0
    this.#lose()
  }

  /** Whether the step is not to be taken again: another gateway may make the room, or the room that it was in is lost. */
  #isVain(step: Step): boolean {
    if (step.kind === 'open') return step.gateway !== this.#choice()
    return this.#open === undefined && !CLOSING.has(step.kind)
  }

  /** The room is gone, and made again at once. */
  #lose(): void {
    this.#open = undefined
    this.#callRoom.tellControl({ kind: 'media-lost' })
    this.#go()
  }

  #tryLater(): void {
    this.#failures++
    // The sweep closes rooms of calls that have ended.
    if (this.#wanted?.isOver && this.#failures >= CLOSINGS_MAX) return this.#context.stop()
    const pauseMs = backOffMs(BACK_OFF, this.#failures, this.#context.random())
    this.#context.startTimer(RETRY, pauseMs, { kind: 'retry' })
  }

  #go(): void {
    const step = this.#step === undefined ? this.#nextStep() : undefined
    if (step === undefined) return
    this.#step = step
    this.#context.cancelTimer(RETRY)
    const gateway = this.#nameFor(step)
    this.#context.tellOutcome(
      this.#take(step, gateway),
      () => ({ kind: 'stepped', failure: undefined }),
      error => {
        this.#deps.onFailed({ callId: this.#callId, gateway, step: step.kind, error })
        return { kind: 'stepped', failure: error instanceof GatewayError ? error.failure : 'network' }
      },
    )
  }

  #nextStep(): Step | undefined {
    if (this.#wanted === undefined) return undefined
    const { roomId, entries, isOver } = this.#wanted
    const [before] = this.#before
    if (before !== undefined && (isOver || this.#isBeforeDue))
      return { kind: 'close-before', roomId: before[0], gateway: before[1] }
    // Also a room that was never seen open: the gateway may have made it after it was given up.
    if (isOver) return { kind: 'close' }
    if (this.#open === undefined) return this.#opening(this.#wanted)
    const { admitted } = this.#open
    // A removed device has to leave the old room at once, too.
    for (const [name, entry] of admitted) if (!entries.has(name)) return { kind: 'remove', entry }
    if (this.#open.roomId !== roomId) return this.#opening(this.#wanted)
    const missing = [...entries].filter(([name]) => !admitted.has(name))
    if (missing.length > 0) return { kind: 'admit', entries: missing.map(([, entry]) => entry) }
    const isDue = this.#isRenewalDue && entries.size > 0
    return isDue ? { kind: 'renew', entries: [...entries.values()] } : undefined
  }

  #opening({ roomId, entries }: Wanted): Step {
    return { kind: 'open', roomId, gateway: this.#choice(), entries: [...entries.values()] }
  }

  #choice(): string | undefined {
    return this.#deps.choose(this.#callId, this.#held(), this.#asked)
  }

  /** The gateway that lets the devices in, or did until now. */
  #held(): string | undefined {
    return this.#open?.gateway ?? this.#wanted?.gateway
  }

  #nameFor(step: Step): string | undefined {
    const isNamed = step.kind === 'open' || step.kind === 'close-before'
    return isNamed ? step.gateway : (this.#open?.gateway ?? this.#asked ?? this.#wanted?.gateway)
  }

  #take(step: Step, name: string | undefined): Promise<void> {
    const gateway = name === undefined ? undefined : this.#deps.gatewayOf(name)
    if (step.kind === 'open') this.#asked = name
    if (gateway === undefined) {
      // Rooms at a gateway that is gone from the settings stay there.
      if (CLOSING.has(step.kind)) return Promise.resolve()
      return Promise.reject(new GatewayError('network', 'no media gateway may take the room'))
    }
    assert(this.#wanted !== undefined, 'a step is for a call that is known')
    const roomOf = (roomId: number): GatewayRoom => ({ callId: this.#callId, roomId })
    const room = roomOf(this.#open?.roomId ?? this.#wanted.roomId)
    switch (step.kind) {
      case 'open':
        return gateway.open(roomOf(step.roomId), step.entries)
      case 'admit':
        return gateway.admit(room, step.entries)
      case 'renew':
        return gateway.renew(room, step.entries)
      case 'remove':
        return gateway.remove(room, step.entry)
      case 'close':
        return gateway.close(room)
      case 'close-before':
        return gateway.close(roomOf(step.roomId))
    }
  }

  #tellAdmitted(): void {
    if (this.#open === undefined || this.#wanted === undefined || this.#wanted.isOver) return
    const { roomId, gateway, admitted } = this.#open
    const devices = [...this.#wanted.entries]
      .filter(([name]) => admitted.has(name))
      .map(([, { device }]) => device)
    if (devices.length > 0) this.#callRoom.tellControl({ kind: 'media-admitted', roomId, gateway, devices })
  }
}

function nameOf({ device: { userId, deviceId } }: RoomEntry): string {
  return `${userId}_${deviceId}`
}

const RENEWAL = 'renewal'
/** The room has tokens for half an hour to come. */
const RENEWAL_MS = 20 * 60_000
const BEFORE = 'room-before'
/** Sound goes on in the room before until a device has changed. */
const BEFORE_MS = 5_000
const CLOSING: ReadonlySet<Step['kind']> = new Set(['close', 'close-before'])
const RETRY = 'retry'
const BACK_OFF = { firstMs: 1_000, maxMs: 30_000 }
const CLOSINGS_MAX = 5
/** The last word counts, and the rest is on its way out. */
const MAILBOX_MESSAGES_MAX = 256
