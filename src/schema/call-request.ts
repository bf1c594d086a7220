/** Requests of clients about calls (contract 4): bodies over HTTP, and commands over STOMP. */

import Type, { type Static } from 'typebox'
import type { DeclineReason, SentKeyMap } from '../domain/calls/call-command.ts'
import type { SentKeysReason } from '../domain/calls/call-notice.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import { OWN_ID_END, OWN_ID_MIN } from '../limits.ts'
import { EncryptedKey, KeyMembersText, RoomId, SentKeysReasonText } from './call.ts'
import { BodyReader } from './json.ts'
import { oneOf } from './one-of.ts'
import { chosenId, Uint64 } from './uint64.ts'

const KeyMap = Type.Record(Type.String(), EncryptedKey, {
  description: 'By `<userId>_<deviceId>`; at most 320',
})

const CalleeIds = Type.Array(Uint64, {
  minItems: 1,
  maxItems: 31,
  description: '1 to 31 contacts, each once, without oneself',
})

/** Bound: 321 entries. */
const KeyMembers = { ...KeyMembersText, maxLength: 20_548 }

const EPOCH_MAX = 65_535

/** The key's epoch, as its sealer says it. */
const SealedEpoch = Type.Integer({
  minimum: 1,
  maximum: EPOCH_MAX,
  description: "The epoch of the key that is sealed: the call's `keyEpoch`. Left out: not compared",
})

export const StartCallRequest = Type.Object({
  callId: Type.Optional(chosenId(OWN_ID_MIN, OWN_ID_END)),
  roomId: Type.Optional({ ...RoomId, description: 'Left out: the server assigns one' }),
  calleeIds: CalleeIds,
  encryptedAESKeys: KeyMap,
  keyMembers: Type.Optional({
    ...KeyMembers,
    description: 'The devices of `encryptedAESKeys` and this one, as the epoch 1 has them',
  }),
  isVideo: Type.Boolean(),
})

export const InviteRequest = Type.Object({
  calleeIds: CalleeIds,
  encryptedAESKeys: KeyMap,
  isVideo: Type.Optional({ ...Type.Boolean(), description: "Left out: as the call's" }),
  roomId: Type.Optional({ ...RoomId, description: "If given, the call's own" }),
  epoch: Type.Optional({
    ...SealedEpoch,
    description: "The call's `keyEpoch`, with `keyMembers` and one. Left out without these: not compared",
  }),
  keyMembers: Type.Optional({
    ...KeyMembers,
    description:
      'Makes the key a new epoch: `encryptedAESKeys` is then for every other device in the call too, and these are its ' +
      'devices and this one',
  }),
})

export const DeclineRequest = Type.Object({
  reason: Type.Optional(oneOf(['declined', 'busy', 'timeout'], 'Left out: declined')),
})

export const EndCallRequest = Type.Object({ callId: Uint64 })

export const RemoveRequest = Type.Object({ userId: Uint64 })

export const AcceptRejoinRequest = Type.Object({
  requesterUserId: Uint64,
  requesterDeviceId: Uint64,
  encryptedAESKey: EncryptedKey,
  epoch: Type.Optional(SealedEpoch),
})

/** 16 bytes, so that the last of 22 characters has four bits and no more. */
const Nonce = Type.String({
  pattern: '^[A-Za-z0-9+/]{21}[AQgw]==$',
  description: 'Base64 of 16 random bytes',
})

export const RequestRejoinRequest = Type.Object({
  nonce: Type.Optional({
    ...Nonce,
    description: 'Names the ask: with another one it is put again',
  }),
})

export const KeysRequest = Type.Object({
  epoch: Type.Integer({
    minimum: 1,
    maximum: EPOCH_MAX,
    description: "The call's `keyEpoch` and one; for `emergency` also the present one",
  }),
  reason: SentKeysReasonText,
  encryptedAESKeys: KeyMap,
  keyMembers: Type.Optional({
    ...KeyMembers,
    description: 'The devices of `encryptedAESKeys` and this one; for the present epoch its own set',
  }),
  without: Type.Optional(
    Type.Array(Type.String({ maxLength: 41 }), {
      maxItems: 320,
      description:
        'Devices in the call that get no key, as `<userId>_<deviceId>`; of a new epoch they hear by `key_missing`',
    }),
  ),
})

/** The device rings; sent over STOMP only. */
export const RingingRequest = Type.Object({
  eventId: Type.Optional(Type.String({ maxLength: 64, description: "The invitation's" })),
  wasLowered: Type.Optional(
    Type.Boolean({ description: 'Whether Google lowered the priority of the push that rang. It is counted' }),
  ),
})

export const KeyMembersQuery = Type.Object({
  epoch: Type.Integer({ minimum: 1, maximum: EPOCH_MAX }),
})

/** A device's command to `/app/call/{callId}/...`; the destination names the call and the command. */
export type SaidCallCommand =
  | { readonly kind: 'leave' }
  | { readonly kind: 'ringing'; readonly wasLowered?: boolean | undefined }
  | { readonly kind: 'decline'; readonly reason?: DeclineReason | undefined }
  | {
      readonly kind: 'accept-rejoin'
      readonly requesterUserId: UserId
      readonly requesterDeviceId: DeviceId
      readonly encryptedAESKey: string
      readonly epoch?: number | undefined
    }
  | {
      readonly kind: 'keys'
      readonly epoch: number
      readonly reason: SentKeysReason
      readonly encryptedAESKeys: SentKeyMap
      readonly keyMembers?: string | undefined
      readonly without?: readonly string[] | undefined
    }

/**
 * The command that a body stands for; an empty one has no members. Throws `MALFORMED_JSON` or `VALIDATION_FAILED`, as
 * its HTTP twin is answered.
 */
export function parseCallCommand(kind: SaidCallCommand['kind'], body: Uint8Array): SaidCallCommand {
  const bytes = body.length === 0 ? EMPTY_OBJECT : body
  switch (kind) {
    case 'accept-rejoin':
      return { kind, ...saidAcceptance(ACCEPT_REJOIN.read(bytes, JSON_TYPE)) }
    case 'keys':
      return { kind, ...saidKeys(KEYS.read(bytes, JSON_TYPE)) }
    case 'decline':
      return { kind, reason: DECLINE.read(bytes, JSON_TYPE).reason }
    case 'ringing':
      return { kind, wasLowered: RINGING.read(bytes, JSON_TYPE).wasLowered }
    case 'leave':
      RINGING.read(bytes, JSON_TYPE)
      return { kind }
  }
}

/** The members of `accept-rejoin`. */
export function saidAcceptance(body: Static<typeof AcceptRejoinRequest>) {
  const requesterUserId = body.requesterUserId as UserId
  const requesterDeviceId = body.requesterDeviceId as DeviceId
  const { encryptedAESKey, epoch } = body
  return { requesterUserId, requesterDeviceId, encryptedAESKey, epoch }
}

/** The members of `keys`. */
export function saidKeys(body: Static<typeof KeysRequest>) {
  const { epoch, reason, encryptedAESKeys, keyMembers, without } = body
  return { epoch, reason, encryptedAESKeys, keyMembers, without }
}

const ACCEPT_REJOIN = new BodyReader(AcceptRejoinRequest)
const KEYS = new BodyReader(KeysRequest)
const DECLINE = new BodyReader(DeclineRequest)
/** Also of `leave`, which says nothing. */
const RINGING = new BodyReader(RingingRequest)
const EMPTY_OBJECT = Buffer.from('{}')
const JSON_TYPE = 'application/json'
