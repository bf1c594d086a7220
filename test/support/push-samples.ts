/** A device and an invitation, as tests of pushes want them: each test says what it cares for. */

import type { CallNoticeBody } from '../../src/domain/calls/call-notice.ts'
import type { Device } from '../../src/domain/devices/device.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'

type InvitationBody = Extract<CallNoticeBody, { readonly kind: 'call_invitation' }>

export function deviceWith(parts: Partial<Device> = {}): Device {
  return {
    deviceId: 9_000_000_001n as DeviceId,
    info: { platform: 'ios' },
    publicKey: '',
    keyAlgorithm: 'P-256',
    publicKeyIndex: 0,
    publicKeyHash: '',
    createdAtMs: 0,
    lastSeenAtMs: 0,
    ...parts,
  }
}

export function invitationWith(
  parts: Pick<InvitationBody, 'expiresAtMs'> & Partial<InvitationBody>,
): InvitationBody {
  return {
    kind: 'call_invitation',
    callId: 8_000_000_001n as CallId,
    version: 2,
    callerId: 5_000_000_009n as UserId,
    callerName: 'Bob',
    displayName: 'Bob',
    alias: undefined,
    isContact: true,
    isVideo: false,
    encryptedAESKey: 'a-key',
    roomId: 3,
    isOnGoing: false,
    participants: [],
    keyEpoch: 1,
    keyFromUserId: 5_000_000_009n as UserId,
    keyFromDeviceId: 9_000_000_009n as DeviceId,
    ...parts,
  }
}
