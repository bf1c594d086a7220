/**
 * What a device knows of its calls. All of it is plain data, so that each language runs the same stories
 * (test/vectors/device-calls.jsonl).
 */

import type { Failure } from '../callsign-error.ts'
import type { SetChange } from '../devices/key-members.ts'
import type { Named } from '../names.ts'
import type { CallParticipant, CallRecord, KeysReason, KeyUpdateEvent, QueueEvent } from '../wire.ts'
import type { CallEnding, CallGateway, CallState, KeyAsk, Reach } from './call.ts'

export interface Device {
  readonly userId: string
  readonly deviceId: string
  readonly calls: readonly DeviceCall[]
  readonly starts: readonly Start[]
  /** Calls that ended here, the oldest first: an invitation from before then does not ring again. */
  readonly ended: readonly { readonly callId: string; readonly atMs: number }[]
  /** Acts without an outcome yet. */
  readonly waiting: readonly Waiting[]
  readonly restoring: Restoring
  readonly clock: Clock
  /** A number for each connection; undefined without one. */
  readonly connection: number | undefined
  /** Counts acts and keys. */
  readonly count: number
  readonly kept: Kept
}

export interface Clock {
  /** The server's time less the device's own, which runs evenly. */
  readonly aheadMs: number
  /** Whether the server has named its time yet. */
  readonly isKnown: boolean
}

/** The call of before a restart: until it is there again, messages of unknown calls wait. */
export type Restoring =
  | { readonly kind: 'waiting'; readonly early: readonly Early[] }
  | { readonly kind: 'restored' }

export interface Early {
  readonly command: number
  readonly event: QueueEvent
}

/** A call that is being made: its keys are sealed, and the server is asked. */
export interface Start {
  /** The app waits for it. */
  readonly command: number
  /** Chosen here: its key is bound to it. */
  readonly callId: string
  readonly userIds: readonly string[]
  readonly options: { readonly isVideo: boolean; readonly roomId?: number }
  readonly key: number
  readonly triesLeft: number
  /** Once it is sealed. */
  readonly set?: KeySet
  /** The app has closed all calls: this one ends as soon as it begins. */
  readonly closed?: CallEnding
  /** The invitation of the only callee, which came while this was under way. */
  readonly held?: Ringing
  /** They have turned out to call each other, and that call was over by then: it is started once more, once. */
  readonly isSecond?: true
}

export interface DeviceCall {
  readonly callId: string
  readonly isVideo: boolean
  readonly isOnGoing: boolean
  readonly isIncoming: boolean
  readonly caller: Named
  /** The invitation's time by the server's clock; 0 without one. */
  readonly invitedAtMs: number
  readonly phase: Phase
  readonly record: CallRecord | undefined
  /** From `media_ready`, which may come before the reply to `join` that does not have it yet. */
  readonly media: ReadyMedia | undefined
  /** Whether the caller and the key that they sent hold; undefined while that is checked. */
  readonly isVerified: boolean | undefined
  readonly key: KeyState
  readonly sending: Sending
  /** Since when the newest key is here. */
  readonly heldAtMs: number
  /** Members whose frames the newest key does not open, after this device has asked for theirs. */
  readonly unopened: readonly string[]
  /** Whom this device has removed: they are in no set that it makes or takes. */
  readonly removed: readonly string[]
  /** Invitations of people whom it does not reach; each until the person's state changes. */
  readonly unreachable: readonly (Pick<CallParticipant, 'userId' | 'invitedAt'> & { readonly reach: Reach })[]
  /** Devices in the call that a key of this device could not be sealed for: none is made for them alone. */
  readonly without: readonly string[]
  /** Devices that have asked, and are to have the next key. */
  readonly admitted: readonly Sender[]
  /** The number of the nonce of its open ask: answers to other asks do not open. */
  readonly nonce: number | undefined
  /** A key that another device than the host's has given: taken then, unless the host gives one. */
  readonly offer: { readonly key: HeldKey; readonly atMs: number } | undefined
  readonly topic: { readonly kind: 'off' | 'coming' | 'on' }
  readonly rotation: Rotation
  readonly end: EndState
  /** Version of the last `call_moved` that came while this device was on its way in; 0 before. */
  readonly movedVersion: number
  /** Users who asked for the key while this device did not have it either. */
  readonly askers: readonly string[]
}

/** The tokens are for this room: the call may have moved to another. */
export interface ReadyMedia {
  readonly roomId: number
  readonly gateway: CallGateway
}

export type Phase =
  | ({ readonly kind: 'ringing in' } & Rings)
  | { readonly kind: 'ringing out' }
  | Entering
  | { readonly kind: 'active' }
  /** This device has no key, and asks those who are in the call. */
  | { readonly kind: 'rejoining' | 'keyless'; readonly ask: Ask }
  | { readonly kind: 'ended'; readonly reason: CallEnding }

export interface Entering {
  readonly kind: 'entering'
  /** Where it goes back to when it fails: it rings, or is gone. */
  readonly from: Rings | undefined
  /** The key is opened; other calls are left; the server is asked; the key that came with its answer is opened. */
  readonly step: 'key' | 'clearing' | 'joining' | 'opening'
  readonly commands: readonly number[]
  /** The user wants it, however old its invitation is. */
  readonly evenIfOld?: true
  /** Why it would have rung no more while it was answered here. */
  readonly rungOut?: CallEnding
  /** The start that this call has crossed: it is made after all if this call has ended by now. */
  readonly crossed?: Pick<Start, 'command' | 'callId' | 'userIds' | 'options'>
}

export interface Rings {
  readonly invited: Invited
  readonly untilMs: number
  /** The answer to `join` was lost: the server may have this device in the call. */
  readonly mayBeIn?: true
}

/** A key that came with an invitation, or for it. */
/** A sealed key of an invitation: its text alone is none, since a server may name it for several epochs. */
export interface InvitedKey {
  readonly epoch: number
  readonly text: string
}

export interface Invited extends InvitedKey {
  /** The sender, if named; else the call's record names those in the call. */
  readonly from?: Sender
  /** The one before, which it has to come from a device of. */
  readonly after?: HeldKey
  /** How its set differs from that one's. */
  readonly change?: SetChange
  readonly state: 'opening' | 'opened' | 'refused'
  /** Once it is opened. */
  readonly key?: HeldKey
}

export interface Sender {
  readonly userId: string
  readonly deviceId: string
}

export interface HeldKey extends KeySet {
  readonly epoch: number
  /** By which the shell knows its octets: equal octets have the same number. */
  readonly key: number
  readonly fromUserId: string
  /** Not the host's, who may replace it. */
  readonly isProvisional?: true
  /** Names of the user's other devices that have it and are on no list. */
  readonly unlisted?: readonly string[]
}

/** The devices that a key is sealed for. */
export interface KeySet {
  /** As it travels. */
  readonly keyMembers: string
  /** Their names, `<userId>_<deviceId>`. */
  readonly members: readonly string[]
}

/** `asked`: this device has a key, and wants the members' key. */
export interface KeyState {
  readonly kind: 'held' | 'asked'
  /** Newest first; none before the first. */
  readonly held: readonly HeldKey[]
}

/** Frames are sealed with the key of `epoch`, 0 before the first. */
export interface Sending {
  readonly epoch: number
  /** Newer ones, taken then. */
  readonly uses: readonly { readonly epoch: number; readonly atMs: number }[]
  /** Older ones, which go then. */
  readonly drops: readonly { readonly epoch: number; readonly atMs: number }[]
}

/** While this device has no key. */
export type Ask =
  /** The request is under way. */
  | { readonly kind: 'asking' }
  /** Those in the call were asked. */
  | { readonly kind: 'asked'; readonly untilMs: number }
  /** It asks again then. */
  | { readonly kind: 'pausing'; readonly untilMs: number }
  /** It returns with a key: as the host with a new one, else with a member's. */
  | { readonly kind: 'returning' }

export type Rotation =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'planned'
      readonly atMs: number
      readonly afterMs: number
      readonly reason: RotationReason
    }
  | {
      readonly kind: 'renewing'
      readonly reason: RotationReason
      /** The time after which it was planned; undefined if the app asked for it. */
      readonly afterMs: number | undefined
      readonly commands: readonly number[]
      /** It comes back into the call with this key. */
      readonly returning?: CallRecord
      /** Planned during this rotation. */
      readonly next?: { readonly afterMs: number; readonly reason: RotationReason }
    }

export type RotationReason = Exclude<KeysReason, 'emergency'>

/** Whether the call has ended at the server, and the reason may come yet. */
export type EndState =
  | { readonly kind: 'none' }
  | { readonly kind: 'reason'; readonly atMs: number; readonly connection: number | undefined }
  /** The connection had changed or was lost: the next connection brings the reason. */
  | { readonly kind: 'reconnection'; readonly atMs: number }

/** An invitation, from wherever it came. */
export interface Ringing {
  readonly callId: string
  readonly isVideo: boolean
  readonly isOnGoing: boolean
  readonly caller: Named
  readonly text: string
  readonly epoch: number
  /** The device that has sealed its key, as the server says. */
  readonly from?: Sender
  /** By the server's clock. */
  readonly invitedAtMs: number
  /** By this device's. */
  readonly untilMs: number
}

/** An act whose outcome comes as an input with the same number, and what it is for. */
export type Waiting = { readonly act: number } & Purpose

export type Purpose =
  | { readonly for: 'start: seal' | 'start'; readonly command: number }
  | {
      readonly for: 'crossed: pending'
      readonly command: number
      readonly callId: string
      readonly failure: Failure
    }
  | {
      readonly for: 'crossed: open'
      readonly command: number
      readonly ringing: Ringing
      readonly record: CallRecord
      readonly failure: Failure
    }
  /** It is settled by whatever comes of it; a refusal with the code `unless` is no failure. */
  | { readonly for: 'command'; readonly callId: string; readonly command?: number; readonly unless?: string }
  | { readonly for: 'leave'; readonly callId: string; readonly command?: number }
  | { readonly for: 'end'; readonly callId: string; readonly command: number }
  | { readonly for: 'join: find'; readonly callId: string; readonly command: number }
  | ({ readonly for: 'invited: read'; readonly callId: string } & InvitedKey)
  | ({ readonly for: 'invited: open'; readonly callId: string; readonly record: CallRecord } & InvitedKey)
  | { readonly for: 'clear'; readonly callId: string; readonly other: string }
  | { readonly for: 'join' | 'join: read'; readonly callId: string }
  | { readonly for: 'joined: open'; readonly callId: string; readonly record: CallRecord }
  | { readonly for: 'kept leave'; readonly callId: string; readonly command: number; readonly kept: Kept }
  | { readonly for: 'pending'; readonly command: number; readonly kept: Kept }
  | { readonly for: 'restore' | 'give up'; readonly callId: string; readonly command?: number }
  | {
      readonly for: 'refresh'
      readonly callId: string
      readonly command?: number
      /** So often the answer was older than the topic, in a row. */
      readonly again?: number
    }
  | { readonly for: 'watch'; readonly callId: string }
  | ({ readonly for: 'key update: read'; readonly event: KeyUpdateEvent } & SealedFrom)
  | ({ readonly for: 'key update' } & SealedFrom)
  | { readonly for: 'keyless: read'; readonly callId: string; readonly command?: number }
  | { readonly for: 'ask' | 'return'; readonly callId: string }
  | { readonly for: 'ask beside'; readonly callId: string; readonly command?: number }
  | {
      readonly for: 'remove'
      readonly callId: string
      readonly command?: number
      readonly userId: string
      /** They were removed here before: the server does not undo that. */
      readonly isKnown: boolean
    }
  | ({ readonly for: 'granted: open' } & SealedFrom)
  | { readonly for: 'come back'; readonly callId: string; readonly key: HeldKey; readonly command?: number }
  | {
      readonly for: 'asked: read'
      readonly callId: string
      readonly ask: KeyAsk
      readonly command: number
    }
  | {
      readonly for: 'grant: seal'
      readonly callId: string
      readonly ask: KeyAsk
      readonly command: number
      readonly epoch: number
    }
  | ({ readonly for: 'keys: read' | 'keys: seal' | 'keys' } & NewKey)
  | ({ readonly for: 'invite: read' | 'invite: seal' | 'invite' } & Invite)

/** A key that a message of the queue has brought. */
export interface SealedFrom {
  readonly callId: string
  readonly command: number
  readonly epoch: number
  readonly reason?: KeysReason
  /** The newest there is. */
  readonly record?: CallRecord
}

/** Noted for the next start. */
export interface Kept {
  /** The call that it is in. */
  readonly callId?: string
  /** Calls whose key this device has had, the one that was last in use at the end. */
  readonly opened?: readonly Opened[]
  /** Names of the user's devices that are on no list, and whose having keys the user has accepted. */
  readonly accepted?: readonly string[]
  /** Those that it has left, and the server may not have heard; never empty. */
  readonly leaving?: readonly string[]
}

export interface Opened {
  readonly callId: string
  /** The newest. After a restart no older one is taken, and once the call has ended neither is this one. */
  readonly epoch: number
  readonly isOver?: true
  /** Whom this device has removed. */
  readonly removed?: readonly string[]
}

/** A key on its way to all in the call; without a command it is the rotation's. */
export interface NewKey {
  readonly callId: string
  readonly reason: KeysReason
  readonly command?: number
  readonly triesLeft: number
  readonly key?: number
  /** The key's own, whatever this device holds by the time that it is sealed. */
  readonly epoch?: number
  readonly record?: CallRecord
  /** Once it is sealed. */
  readonly set?: KeySet
  readonly without?: readonly string[]
}

export interface Invite {
  readonly callId: string
  readonly command: number
  readonly userIds: readonly string[]
  readonly triesLeft: number
  /** The new key's, once there is one. */
  readonly key?: number
  readonly epoch?: number
  readonly record?: CallRecord
  readonly set?: KeySet
}

export function reachOf({ unreachable }: DeviceCall, person: CallParticipant): Reach {
  const { userId, state, invitedAt } = person
  if (state !== 'invited') return {}
  return unreachable.find(one => one.userId === userId && one.invitedAt === invitedAt)?.reach ?? {}
}

/** The state that an app sees. */
export function stateOf({ kind }: Phase): CallState {
  if (kind === 'ringing in' || kind === 'ringing out') return 'ringing'
  return kind === 'entering' ? 'joining' : kind
}

/** Whether this device takes part, or wants to. */
export function isPresent({ phase }: DeviceCall): boolean {
  return phase.kind !== 'ended' && phase.kind !== 'ringing in'
}

/** Whether this device has no key, and asks for it. */
export function isAsking({ phase }: DeviceCall): boolean {
  return phase.kind === 'rejoining' || phase.kind === 'keyless'
}

/** The key that came with the invitation, until this device is in. */
export function invitedOf({ phase }: DeviceCall): Invited | undefined {
  if (phase.kind === 'ringing in') return phase.invited
  return phase.kind === 'entering' ? phase.from?.invited : undefined
}

/** Keys that are held, or will be: by an invitation, a start, or an act without an outcome yet. */
export function keysIn({ calls, starts, waiting }: Device): readonly number[] {
  const live = calls.filter(({ phase }) => phase.kind !== 'ended')
  const ofCalls = live.flatMap(call =>
    [...call.key.held, invitedOf(call)?.key, call.offer?.key].map(held => held?.key),
  )
  const ofActs = waiting.map(one => {
    // One that is sent once more is wiped with its call.
    if (!('key' in one) || ('reason' in one && one.reason === 'emergency')) return undefined
    return typeof one.key === 'number' ? one.key : one.key?.key
  })
  const ofStarts = starts.map(({ key }) => key)
  return [...ofCalls, ...ofActs, ...ofStarts].filter(key => key !== undefined)
}

export function newestKey({ key }: DeviceCall): HeldKey | undefined {
  return key.held[0]
}

export function isCode(failure: Failure, ...codes: readonly string[]): boolean {
  return codes.includes(failure.code)
}

/** Codes of a request that the server may not have heard, or could not carry out. */
export const UNHEARD: readonly string[] = ['OFFLINE', 'NO_ANSWER', 'ANSWER_INVALID', 'SIGNED_OUT']
/** Codes of a call that this device has no part in any more. */
export const GONE: readonly string[] = ['CALL_ENDED', 'CALL_NOT_FOUND', 'NOT_PARTICIPANT']
