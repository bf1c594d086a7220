/**
 * Keys after the start (contract 4.5): a device that lost its key asks the call's other devices and rejoins. The host
 * sends new keys to all; any participant may resend the present one when decryption fails.
 */

import {
  type Call,
  type CallDevice,
  type CallDeviceRef,
  isJoined,
  isPending,
  isSameDevice,
  joinedDevices,
  joinedOn,
  keySetOf,
  memberOf,
  type Participant,
  type RejoinAsk,
  type SentKeys,
} from './call.ts'
import { attendedCall } from './call-attendance.ts'
import {
  type CallActor,
  type CallChange,
  type CallCommand,
  type CallOutcome,
  type CallRefused,
  refused,
} from './call-command.ts'
import { keyedNotice, plainNotice } from './call-effect.ts'
import type { KeyedNotice, KeySlice, KeysReason } from './call-notice.ts'
import { digestOfKeys, keyMapName, readKeyMap, refusalOfDevices, refusalOfKey } from './key-map.ts'
import {
  changesOfMembers,
  hashOfMembers,
  type KeyMembers,
  memberNames,
  readKeyMembers,
  refusalOfOtherMembers,
} from './key-members.ts'

export type AskCommand = Extract<CallCommand, { kind: 'request-rejoin' }>
export type AnswerCommand = Extract<CallCommand, { kind: 'accept-rejoin' }>
export type KeysCommand = Extract<CallCommand, { kind: 'keys' }>

/**
 * Asks every other device in the call for the key, the user's own among them. An open ask with the same nonce is not
 * repeated; one with another nonce takes its place.
 */
export function withAsk(
  call: Call,
  participant: Participant,
  { nonce, nowMs }: AskCommand,
  by: CallActor,
): CallOutcome {
  const refusal = refusalWhenRinging(call)
  if (refusal !== undefined) return refusal
  const open = openAskOf(call, by, nowMs)
  if (open !== undefined && open.nonce === nonce) return { kind: 'changed', call }
  const { userId, deviceId, publicKeyHash } = by
  const others = joinedDevices(call).filter(device => !isSameDevice(device, by))
  if (others.length === 0)
    return refused('NO_ACTIVE_PARTICIPANT', 'nobody in the call has the key; rejoin without')
  const ask: RejoinAsk = { userId, deviceId, nonce, askedAtMs: nowMs, asked: others.length, answeredBy: [] }
  const expiresAtMs = nowMs + ASK_OPEN_MS
  const notice = {
    kind: 'participant_request_rejoin' as const,
    callId: call.callId,
    version: call.version,
    userId,
    deviceId,
    publicKeyHash,
    expiresAtMs,
    displayName: participant.displayName,
    ...(nonce !== undefined && { nonce }),
  }
  const told = others.map(device => plainNotice(device, notice, expiresAtMs))
  return { kind: 'changed', call: { ...call, rejoinAsks: [...asksBut(call, by), ask] }, told }
}

/** The device's ask as long as answers to it count. */
export function openAskOf(call: Call, device: CallDeviceRef, nowMs: number): RejoinAsk | undefined {
  const ask = askOf(call, device)
  return ask !== undefined && nowMs < ask.askedAtMs + ASK_OPEN_MS ? ask : undefined
}

/** How long answers to the ask still count, in seconds begun. */
export function secondsOpen({ askedAtMs }: RejoinAsk, nowMs: number): number {
  return Math.ceil((askedAtMs + ASK_OPEN_MS - nowMs) / 1000)
}

/**
 * Passes an answer on to the device that asked, and to no other. Late and surplus answers are dropped in silence: the
 * answering device can't know, and need not.
 */
export function withAnswer(call: Call, command: AnswerCommand): CallOutcome {
  const { by, nowMs, requesterUserId, requesterDeviceId, encryptedAESKey } = command
  const refusal = refusalWhenRinging(call) ?? refusalOfOutsider(call, by) ?? refusalOfSaidEpoch(call, command)
  if (refusal !== undefined) return refusal
  const invalid = refusalOfKey(encryptedAESKey, '/encryptedAESKey')
  if (invalid !== undefined) return invalid
  const requester = { userId: requesterUserId, deviceId: requesterDeviceId }
  const ask = openAskOf(call, requester, nowMs)
  const hasAnswered = ask?.answeredBy.some(device => isSameDevice(device, by)) ?? false
  if (ask === undefined || hasAnswered || ask.answeredBy.length >= ANSWERS_MAX)
    return { kind: 'changed', call }
  const { userId, deviceId } = by
  const answered = { ...ask, answeredBy: [...ask.answeredBy, { userId, deviceId }] }
  const notice = {
    kind: 'participant_accept_rejoin' as const,
    callId: call.callId,
    version: call.version,
    keyEpoch: call.keyEpoch,
    fromUserId: userId,
    fromDeviceId: deviceId,
  }
  const told = keyedNotice({ ...requester, encryptedAESKey }, notice, ask.askedAtMs + ASK_KEPT_MS)
  return {
    kind: 'changed',
    call: { ...call, rejoinAsks: [...asksBut(call, requester), answered] },
    told: [told],
  }
}

/**
 * A device that asked comes in. Choice: an empty call takes it without an ask: no device could answer, and an empty
 * call waits thirty seconds for just this.
 */
export function rejoinedCall(
  call: Call,
  participant: Participant,
  by: CallActor,
  nowMs: number,
): CallOutcome {
  const refusal = refusalWhenRinging(call)
  if (refusal !== undefined) return refusal
  const isThere = joinedOn(call, by) !== undefined
  if (!isThere && askOf(call, by) === undefined && call.participants.some(isJoined)) {
    return refused('REJOIN_REQUIRED', 'ask for the key first')
  }
  const attended = attendedCall(call, participant, by, nowMs)
  if (attended.kind === 'refused') return attended
  const rejoinAsks = asksBut(call, by)
  return rejoinAsks.length === call.rejoinAsks.length
    ? attended
    : { kind: 'changed', call: { ...attended.call, rejoinAsks } }
}

/** The call without the asks whose device may not rejoin on them any more. */
export function withoutOldAsks(call: Call, nowMs: number): Call {
  return { ...call, rejoinAsks: call.rejoinAsks.filter(ask => nowMs < askEndsAtMs(ask)) }
}

export function askEndsAtMs({ askedAtMs }: RejoinAsk): number {
  return askedAtMs + ASK_KEPT_MS
}

/** Sends each device in the call its slice of the next key, or of the present one; those still ringing may get one. */
export function withKeys(call: Call, command: KeysCommand, endsAtMs: number): CallOutcome {
  const { by, epoch, reason, encryptedAESKeys, keyMembers = '', without = [] } = command
  const digest = digestOfKeys(encryptedAESKeys, [reason, keyMembers, without.join()])
  if (isRepeated(call, command, digest)) return { kind: 'changed', call }
  const refusal = refusalWhenRinging(call) ?? refusalOfOutsider(call, by) ?? refusalOfEpoch(call, command)
  if (refusal !== undefined) return refusal
  const read = readKeyMap(encryptedAESKeys)
  if (read.kind === 'refused') return read
  const { slices } = read
  const declared = declaredMembers(call, command)
  if (declared?.kind === 'refused') return declared
  const others = joinedDevices(call).filter(device => !isSameDevice(device, by))
  const unnamed = refusalOfLeftOut(without, others)
  if (unnamed !== undefined) return unnamed
  const isNewEpoch = epoch > call.keyEpoch
  const kept = isNewEpoch ? undefined : keySetOf(call, epoch)
  const inSet = kept && new Set(memberNames(kept.members))
  const mayHave = (device: CallDeviceRef) => inSet === undefined || inSet.has(keyMapName(device))
  const isLeftOut = (device: CallDeviceRef) => without.includes(keyMapName(device))
  const required = others.filter(device => mayHave(device) && !isLeftOut(device))
  // One that has asked comes in with the next key.
  const optional = [...ringingDevices(call), ...(isNewEpoch ? askingDevices(call) : [])].filter(mayHave)
  const mismatch = refusalOfDevices(read, required, optional)
  if (mismatch !== undefined) return mismatch
  const keyed = withSentKeys(call, {
    by,
    epoch,
    reason,
    slices,
    told: slices,
    members: declared?.octets,
    digest,
    endsAtMs,
  })
  if (!isNewEpoch) return keyed
  const missing = { kind: 'key_missing' as const, callId: call.callId, version: call.version, epoch }
  const leftOut = others.filter(isLeftOut).map(device => plainNotice(device, missing, endsAtMs))
  return { kind: 'changed', call: keyed.call, told: [...(keyed.told ?? []), ...leftOut] }
}

/** Keys of one epoch, checked. */
export interface CheckedKeys {
  readonly by: CallDeviceRef
  readonly epoch: number
  readonly reason: KeysReason
  readonly slices: readonly KeySlice[]
  /** Those that go out by `key_update`. */
  readonly told: readonly KeySlice[]
  /** The new epoch's set, if it came with one. */
  readonly members: Uint8Array | undefined
  readonly digest: Uint8Array
  readonly endsAtMs: number
}

/** The call with the keys in place of those that waited, and a `key_update` to devices whose users know of the call. */
export function withSentKeys(call: Call, keys: CheckedKeys): CallChange {
  const { epoch, reason, slices, members, digest } = keys
  const { userId, deviceId } = keys.by
  const isNewEpoch = epoch > call.keyEpoch
  const notice = {
    kind: 'key_update' as const,
    callId: call.callId,
    version: call.version,
    epoch,
    reason,
    fromUserId: userId,
    fromDeviceId: deviceId,
    ...setOfUpdate(call, epoch, members),
  }
  const told = keys.told
    .filter(slice => memberOf(call, slice.userId) !== undefined)
    .map(slice => keyedNotice(slice, notice, keys.endsAtMs))
  const sealedBy = { userId, deviceId }
  const participants = call.participants.map(one => withSlices(one, slices, sealedBy, isNewEpoch))
  const lastKeys: SentKeys = { epoch, userId, deviceId, digest }
  const epochKeys = isNewEpoch ? lastKeys : call.epochKeys
  const keySets =
    members === undefined ? call.keySets : [{ epoch, members }, ...call.keySets].slice(0, KEY_SETS_MAX)
  return {
    kind: 'changed',
    call: { ...call, participants, keyEpoch: epoch, lastKeys, epochKeys, keySets },
    told,
  }
}

/** Members of `key_update` that tell of the epoch's set. */
function setOfUpdate(call: Call, epoch: number, members: Uint8Array | undefined): UpdatedSet {
  const present = members ?? keySetOf(call, epoch)?.members
  if (present === undefined) return {}
  const setHash = base64Of(hashOfMembers(present))
  const before = keySetOf(call, epoch - 1)
  if (members === undefined || before === undefined) return { setHash }
  const { added, removed } = changesOfMembers(before.members, members)
  return { setHash, added: base64Of(added), removed }
}

/** A new epoch's set; undefined without one, and for the present epoch, whose set stays. */
function declaredMembers(call: Call, command: KeysCommand): KeyMembers | CallRefused | undefined {
  const { by, epoch, encryptedAESKeys, keyMembers } = command
  if (keyMembers === undefined) return undefined
  if (epoch > call.keyEpoch) return readKeyMembers(keyMembers, encryptedAESKeys, by)
  return refusalOfOtherMembers(keyMembers, keySetOf(call, epoch))
}

function refusalOfLeftOut(
  without: readonly string[],
  joined: readonly CallDeviceRef[],
): CallRefused | undefined {
  const names = new Set(joined.map(keyMapName))
  const errors = without.flatMap((name, at) => {
    const pointer = `/without/${at}`
    if (!names.has(name)) return [{ pointer, code: 'NOT_JOINED', detail: 'no other device in the call' }]
    if (without.indexOf(name) === at) return []
    return [{ pointer, code: 'DUPLICATE', detail: 'the same as another device' }]
  })
  return errors.length === 0
    ? undefined
    : refused('VALIDATION_FAILED', 'the devices without a key break a rule', { errors })
}

/**
 * The participant with the keys that wait for their devices renewed. A key of an earlier epoch does not wait any
 * more: the device that joins without one asks for it. A present one gives way to its own sealer's alone: any member could
 * put a text there that does not open.
 */
function withSlices(
  participant: Participant,
  slices: readonly KeySlice[],
  sealedBy: CallDeviceRef,
  isNewEpoch: boolean,
): Participant {
  if (participant.devices.length === 0) return participant
  const own = slices.filter(({ userId }) => userId === participant.userId)
  const devices: CallDevice[] = participant.devices.map(device => {
    const slice = own.find(({ deviceId }) => deviceId === device.deviceId)
    const { deviceId } = device
    const isKept = !isNewEpoch && device.sealedBy !== undefined && device.sealedBy.userId !== sealedBy.userId
    if (slice !== undefined && !isKept) return { deviceId, encryptedAESKey: slice.encryptedAESKey, sealedBy }
    return isNewEpoch ? { deviceId, encryptedAESKey: undefined, sealedBy: undefined } : device
  })
  return { ...participant, devices }
}

function refusalOfEpoch(call: Call, { by, epoch, reason }: KeysCommand): CallRefused | undefined {
  const isPresent = epoch === call.keyEpoch && reason === 'emergency'
  if (isPresent) return undefined
  const isNext = epoch === call.keyEpoch + 1
  const isForHost = isNext || reason !== 'emergency'
  if (isForHost && by.userId !== call.hostUserId && !standsInForHost(call, by))
    return refused('NOT_HOST', 'only the host makes a new key')
  if (isNext) return undefined
  return epochConflict(call, epoch - 1)
}

/** Whether the device has the present key and the host's does not: the host has moved, or is new in the call. */
function standsInForHost(call: Call, by: CallDeviceRef): boolean {
  const set = keySetOf(call, call.keyEpoch)
  const host = joinedDevices(call).find(({ userId }) => userId === call.hostUserId)
  if (set === undefined || host === undefined) return false
  const names = new Set(memberNames(set.members))
  return names.has(keyMapName(by)) && !names.has(keyMapName(host))
}

/** Refuses a key that its sealer says is of another epoch; one with a set of devices makes the next one. */
export function refusalOfSaidEpoch(
  call: Call,
  { epoch, keyMembers }: { readonly epoch?: number | undefined; readonly keyMembers?: string | undefined },
): CallRefused | undefined {
  if (epoch === undefined) return undefined
  const before = keyMembers === undefined ? epoch : epoch - 1
  return before === call.keyEpoch ? undefined : epochConflict(call, before)
}

function epochConflict({ keyEpoch }: Call, epoch: number): CallRefused {
  return refused('EPOCH_CONFLICT', `the call has epoch ${keyEpoch}, not ${epoch}`, { members: { keyEpoch } })
}

function refusalWhenRinging({ status }: Call): CallRefused | undefined {
  return status === 'ringing' ? refused('CALL_NOT_ACTIVE', 'nobody has answered the call') : undefined
}

function refusalOfOutsider(call: Call, by: CallDeviceRef): CallRefused | undefined {
  const isIn = joinedOn(call, by) !== undefined
  return isIn ? undefined : refused('NOT_PARTICIPANT', 'only a device that is in the call gives out its key')
}

/** Whether the device sent these keys before, as the last ones or those of the present epoch. */
export function isRepeated(
  { lastKeys, epochKeys }: Call,
  { by, epoch }: Pick<CheckedKeys, 'by' | 'epoch'>,
  digest: Uint8Array,
): boolean {
  const isThis = (sent: SentKeys | undefined) =>
    sent?.epoch === epoch && isSameDevice(sent, by) && Buffer.compare(sent.digest, digest) === 0
  return isThis(lastKeys) || isThis(epochKeys)
}

/** Every device of the users whose invitations wait for an answer. */
export function ringingDevices(call: Call): CallDeviceRef[] {
  return call.participants
    .filter(isPending)
    .flatMap(({ userId, devices }) => devices.map(({ deviceId }) => ({ userId, deviceId })))
}

function askingDevices({ rejoinAsks }: Call): CallDeviceRef[] {
  return rejoinAsks.map(({ userId, deviceId }) => ({ userId, deviceId }))
}

function askOf(call: Call, device: CallDeviceRef): RejoinAsk | undefined {
  return call.rejoinAsks.find(ask => isSameDevice(ask, device))
}

function asksBut(call: Call, device: CallDeviceRef): RejoinAsk[] {
  return call.rejoinAsks.filter(ask => !isSameDevice(ask, device))
}

function base64Of(octets: Uint8Array): string {
  return Buffer.from(octets).toString('base64')
}

type UpdatedSet = Pick<Extract<KeyedNotice, { kind: 'key_update' }>, 'setHash' | 'added' | 'removed'>

/** The present one, and the one that devices compare it to. */
const KEY_SETS_MAX = 2
/** How long answers count (contract 4.5); afterwards the asker may still come in with an earlier answer. */
const ASK_OPEN_MS = 30_000
const ASK_KEPT_MS = 60_000
/** One wrong or hostile answer must not block; more than these help no one. */
const ANSWERS_MAX = 5
