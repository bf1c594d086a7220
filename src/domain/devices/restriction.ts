/**
 * Which sessions may do little (contract 2.3): those whose device the user's list does not name, and, where there is no list, those
 * without a device though the user has one. So a code that was stolen opens nothing that the owner does not see.
 */

import { SignalError } from '../../errors.ts'
import type { DeviceId } from '../ids.ts'
import type { Device } from './device.ts'

/** Also the code that the session is refused with. */
export type Restriction = 'DEVICE_NOT_LISTED' | 'DEVICE_REQUIRED'

/** A user's devices, as far as restrictions go by them. */
export interface UserDevices {
  /** The devices that the newest list in the log names; undefined without a list. */
  readonly listed: ReadonlySet<DeviceId> | undefined
  /** How many are not removed. */
  readonly activeCount: number
}

/** The restriction of a session that is bound to this device, or to none. */
export function restrictionOf(
  { listed, activeCount }: UserDevices,
  deviceId: DeviceId | undefined,
): Restriction | undefined {
  const hasDevice = deviceId !== undefined
  if (listed !== undefined) return hasDevice && listed.has(deviceId) ? undefined : 'DEVICE_NOT_LISTED'
  return hasDevice || activeCount === 0 ? undefined : 'DEVICE_REQUIRED'
}

/**
 * Whether a restricted session may remove another device, or replace it: one that was not seen for long, so that a user who
 * has lost the phones, and has as many devices as an account can have, gets in. The last device is only replaced: without
 * it a session that had to have a device would be free of that.
 */
export function mayEndDevice(
  restriction: Restriction,
  { lastSeenAtMs }: Pick<Device, 'lastSeenAtMs'>,
  { nowMs, isReplaced, activeCount }: { nowMs: number; isReplaced: boolean; activeCount: number },
): boolean {
  if (nowMs - lastSeenAtMs < UNSEEN_MS) return false
  return restriction === 'DEVICE_NOT_LISTED' || isReplaced || activeCount > 1
}

export function restrictionError(restriction: Restriction): SignalError {
  return new SignalError(restriction, SENTENCES[restriction])
}

const SENTENCES: Readonly<Record<Restriction, string>> = {
  DEVICE_NOT_LISTED:
    "the account's device list does not name this session's device: register the device, and approve it on one of the list",
  DEVICE_REQUIRED: 'the account has a device, and this session has none: register this device first',
}

const UNSEEN_MS = 30 * 86_400_000
