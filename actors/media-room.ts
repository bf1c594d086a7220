/**
 * A call's room at the media gateway, id = the call's decimal id. The call room says which devices are in the call; this
 * actor has the gateway let in exactly these, one step at a time, and tells the call room whom it admits:
 *
 *     open ─> remove devices that left ─> admit devices that came ─> renew their tokens ─> close once the call has ended
 *
 * A step that fails is taken again after a growing pause, for as long as the call lasts. Nothing waits for it but a reply of
 * the call room, and that for a second. The actor keeps nothing: one that is built anew asks the call room, and takes over
 * the room that is there.
 */

import type { RoomEntry } from '../src/domain/calls/call-media.ts'
import { type CallId, parseUint64 } from '../src/domain/ids.ts'
import { assert } from '../src/errors.ts'
import {
  GatewayError,
  type GatewayFailure,
  type GatewayRoom,
  type MediaGateway,
} from '../src/media/gateway.ts'
import type { Actor, ActorKind, Context, Ref } from '../src/runtime/actor.ts'
import type { CallRoomMessage, MediaRoomMessage } from './messages.ts'

export interface MediaRoomDeps {
  readonly gateway: Omit<MediaGateway, 'rooms'>
  /** By decimal id. */
  readonly callRoom: (callId: string) => Ref<CallRoomMessage>
  readonly monotonicMs: () => number
  /** Told of each step that failed, for the log. */
  readonly onFailed: (callId: CallId, step: Step['kind'], error: unknown) => void
}

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
  readonly entries: ReadonlyMap<string, RoomEntry>
  readonly isOver: boolean
}

type Step =
  | { readonly kind: 'open' | 'admit' | 'renew'; readonly entries: readonly RoomEntry[] }
  | { readonly kind: 'remove'; readonly entry: RoomEntry }
  | { readonly kind: 'close' }

class MediaRoom implements Actor<MediaRoomMessage> {
  readonly #deps: MediaRoomDeps
  readonly #context: Context<MediaRoomMessage>
  readonly #callId: CallId
  readonly #callRoom: Ref<CallRoomMessage>
  #wanted: Wanted | undefined
  /** Whom the room lets in; undefined while there is none. */
  #admitted: Map<string, RoomEntry> | undefined
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
        return this.#onMissing(message.askedAtMs)
      case 'renewal-due':
        this.#isRenewalDue = true
        return this.#failures === 0 ? this.#go() : undefined
      case 'retry':
        return this.#go()
    }
  }

  #onWanted({ roomId, entries, isOver }: Extract<MediaRoomMessage, { kind: 'wanted' }>): void {
    this.#wanted = { roomId, entries: new Map(entries.map(entry => [nameOf(entry), entry])), isOver }
    // A device that left and came back may be let in still.
    this.#tellAdmitted()
    if (this.#failures === 0) this.#go()
  }

  #onStepped(failure: GatewayFailure | undefined): void {
    const step = this.#step
    assert(step !== undefined, 'a step was under way')
    this.#step = undefined
    if (failure === 'no-such-room' && step.kind !== 'close') return this.#lose()
    if (failure !== undefined) return this.#tryLater()
    this.#failures = 0
    if (step.kind === 'close') return this.#context.stop()
    this.#note(step)
    this.#go()
  }

  #note(step: Exclude<Step, { kind: 'close' }>): void {
    if (step.kind === 'open') {
      this.#admitted = new Map()
      this.#openedAtMs = this.#deps.monotonicMs()
    }
    if (step.kind === 'remove') return void this.#admitted?.delete(nameOf(step.entry))
    if (step.kind !== 'admit') {
      this.#isRenewalDue = false
      this.#context.startTimer(RENEWAL, RENEWAL_MS, { kind: 'renewal-due' })
    }
    for (const entry of step.entries) this.#admitted?.set(nameOf(entry), entry)
    this.#tellAdmitted()
  }

  #onMissing(askedAtMs: number): void {
    if (this.#wanted === undefined) return this.#callRoom.tellControl({ kind: 'tell-media' })
    if (this.#admitted !== undefined && this.#openedAtMs < askedAtMs) return this.#lose()
    this.#go()
  }

  /** The room is gone, and made again at once. */
  #lose(): void {
    this.#admitted = undefined
    this.#callRoom.tellControl({ kind: 'media-lost' })
    this.#go()
  }

  #tryLater(): void {
    this.#failures++
    // The sweep closes rooms of calls that have ended.
    if (this.#wanted?.isOver && this.#failures >= CLOSINGS_MAX) return this.#context.stop()
    const pauseMs = Math.min(RETRY_MS * 2 ** (this.#failures - 1), RETRY_MS_MAX)
    this.#context.startTimer(RETRY, pauseMs, { kind: 'retry' })
  }

  #go(): void {
    const step = this.#step === undefined ? this.#nextStep() : undefined
    if (step === undefined) return
    this.#step = step
    this.#context.cancelTimer(RETRY)
    this.#context.tellOutcome(
      this.#take(step),
      () => ({ kind: 'stepped', failure: undefined }),
      error => {
        this.#deps.onFailed(this.#callId, step.kind, error)
        return { kind: 'stepped', failure: error instanceof GatewayError ? error.failure : 'network' }
      },
    )
  }

  #nextStep(): Step | undefined {
    if (this.#wanted === undefined) return undefined
    const { entries, isOver } = this.#wanted
    // Also a room that was never seen open: the gateway may have made it after it was given up.
    if (isOver) return { kind: 'close' }
    if (this.#admitted === undefined) return { kind: 'open', entries: [...entries.values()] }
    for (const [name, entry] of this.#admitted) if (!entries.has(name)) return { kind: 'remove', entry }
    const missing = [...entries].filter(([name]) => !this.#admitted?.has(name))
    if (missing.length > 0) return { kind: 'admit', entries: missing.map(([, entry]) => entry) }
    const isDue = this.#isRenewalDue && entries.size > 0
    return isDue ? { kind: 'renew', entries: [...entries.values()] } : undefined
  }

  #take(step: Step): Promise<void> {
    const { gateway } = this.#deps
    assert(this.#wanted !== undefined, 'a step is for a call that is known')
    const room: GatewayRoom = { callId: this.#callId, roomId: this.#wanted.roomId }
    switch (step.kind) {
      case 'open':
        return gateway.open(room, step.entries)
      case 'admit':
        return gateway.admit(room, step.entries)
      case 'renew':
        return gateway.renew(room, step.entries)
      case 'remove':
        return gateway.remove(room, step.entry)
      case 'close':
        return gateway.close(room)
    }
  }

  #tellAdmitted(): void {
    if (this.#admitted === undefined || this.#wanted === undefined || this.#wanted.isOver) return
    const devices = [...this.#wanted.entries]
      .filter(([name]) => this.#admitted?.has(name))
      .map(([, { device }]) => device)
    if (devices.length > 0) this.#callRoom.tellControl({ kind: 'media-admitted', devices })
  }
}

function nameOf({ device: { userId, deviceId } }: RoomEntry): string {
  return `${userId}_${deviceId}`
}

const RENEWAL = 'renewal'
/** The room has tokens for half an hour to come. */
const RENEWAL_MS = 20 * 60_000
const RETRY = 'retry'
const RETRY_MS = 1_000
const RETRY_MS_MAX = 30_000
const CLOSINGS_MAX = 5
/** The last word counts, and the rest is on its way out. */
const MAILBOX_MESSAGES_MAX = 256
