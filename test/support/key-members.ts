/** The set of devices that a call's key is sealed for, as an app writes it. */

import { createHash } from 'node:crypto'

export interface NamedDevice {
  readonly userId: bigint | string
  readonly deviceId: bigint | string
}

/** The octets. Each device has a key of its own for each `generation`. */
export function memberOctets(devices: readonly NamedDevice[], generation = 0): Buffer {
  const entries = devices.map(device => memberEntry(device, generation)).sort(Buffer.compare)
  return framed(entries)
}

/** Base64 of the octets. */
export function membersOf(devices: readonly NamedDevice[], generation = 0): string {
  return memberOctets(devices, generation).toString('base64')
}

export function memberEntry({ userId, deviceId }: NamedDevice, generation = 0): Buffer {
  const name = Buffer.alloc(16)
  name.writeBigUInt64BE(BigInt(userId))
  name.writeBigUInt64BE(BigInt(deviceId), 8)
  const key = createHash('sha256').update(`${userId}_${deviceId} ${generation}`).digest()
  return Buffer.concat([name, key])
}

/** Entries in this order, behind their number. */
export function framed(entries: readonly Buffer[]): Buffer {
  const count = Buffer.alloc(2)
  count.writeUInt16BE(entries.length)
  return Buffer.concat([count, ...entries])
}
