/**
 * What the development console says of what other parts have done. It takes the showable members of a decision and of a
 * message: never a call's keys. The shapes here are those of the domain, as far as they are read.
 */

import type { CallFact, LetterFact, PushFact } from './events.ts'

/** A message as it was handed to its sender, or would have been. */
export type Delivered = DeliveredLetter | DeliveredPush

export interface DeliveredLetter {
  readonly channel: 'mail' | 'sms'
  readonly to: string
  readonly text: string
  readonly otp: string | undefined
}

export interface DeliveredPush {
  readonly channel: 'push'
  readonly kind: string
  readonly userId: bigint
  readonly deviceId: bigint
  readonly provider: string
  readonly headers: Readonly<Record<string, string>>
  readonly payload: object
}

/** A call after a decision. */
export interface DecidedCall {
  readonly callId: bigint
  readonly status: string
  readonly endedAtMs: number | undefined
  readonly participants: readonly {
    readonly userId: bigint
    readonly displayName: string
    readonly state: string
  }[]
}

/** The command that was decided. */
export interface DecidedCommand {
  readonly kind: string
  readonly by?: { readonly userId: bigint; readonly deviceId: bigint }
}

/** An effect of the decision; the console shows notices to devices and events on the call's topic. */
export interface DecidedEffect {
  readonly kind: string
  readonly userId?: bigint
  readonly deviceId?: bigint
  readonly notice?: { readonly kind: string }
  readonly event?: { readonly kind: string }
}

/** Undefined for uninteresting commands: a device's sign of life, an early timer. */
export function callFactOf(
  command: DecidedCommand,
  call: DecidedCall,
  effects: readonly DecidedEffect[],
): CallFact | undefined {
  const { kind, by } = command
  if (effects.length === 0 && QUIET_COMMANDS.has(kind)) return undefined
  const told = effects.flatMap(({ userId, deviceId, notice }) =>
    notice === undefined ? [] : [{ userId: `${userId}`, deviceId: `${deviceId}`, type: notice.kind }],
  )
  return {
    type: 'call',
    command: kind,
    ...(by === undefined ? {} : { userId: `${by.userId}`, deviceId: `${by.deviceId}` }),
    ...liveCallOf(call),
    told: told.slice(0, TOLD_MAX),
    ...(told.length <= TOLD_MAX ? {} : { toldCount: told.length }),
    watchersTold: effects.flatMap(({ event }) => event?.kind ?? []),
  }
}

/** The call as `GET /dev/state` shows it. */
export function liveCallOf({
  callId,
  status,
  participants,
}: DecidedCall): Pick<CallFact, 'callId' | 'status' | 'participants'> {
  return {
    callId: `${callId}`,
    status,
    participants: participants.map(({ userId, displayName, state }) => ({
      userId: `${userId}`,
      displayName,
      status: state,
    })),
  }
}

export function letterFactOf({ channel, to, text, otp }: DeliveredLetter): LetterFact {
  return { type: 'letter', channel, to, text, ...(otp === undefined ? {} : { otp }) }
}

export function pushFactOf({ kind, userId, deviceId, provider, headers, payload }: DeliveredPush): PushFact {
  return {
    type: 'push',
    kind,
    userId: `${userId}`,
    deviceId: `${deviceId}`,
    provider,
    headers,
    payload: JSON.parse(JSON.stringify(payload, withoutKeys)),
    bytes: payloadBytes(payload),
    bytesMax: headers['apns-push-type'] === 'voip' ? APNS_VOIP_BYTES_MAX : PAYLOAD_BYTES_MAX,
  }
}

/** Says of a call's key only how long it is. */
function withoutKeys(name: string, value: unknown): unknown {
  return name === 'encryptedAESKey' && typeof value === 'string' ? `(${value.length} characters)` : value
}

/** The size of a push's payload as JSON. */
export function payloadBytes(payload: object): number {
  return Buffer.byteLength(JSON.stringify(payload))
}

const QUIET_COMMANDS: ReadonlySet<string> = new Set([
  'device-seen',
  'device-online',
  'device-offline',
  'inviter-blocked',
  'account-ended',
  'account-suspended',
  'deadline',
])
/** Two devices of each of 32 people; the rest of a larger call is counted. */
const TOLD_MAX = 64
/** The limit of APNs ("Generating a remote notification") and of FCM ("About FCM messages"). */
const PAYLOAD_BYTES_MAX = 4_096
const APNS_VOIP_BYTES_MAX = 5_120
