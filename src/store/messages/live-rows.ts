/**
 * A row of `inbox-live`: how many messages (1 octet), for each in turn a record of its device, its place and its end, in
 * clear, and then the messages themselves, sealed together. The records are of a fixed length, so that a process that
 * follows the writer finds the devices without opening anything.
 *
 *     0  the device's key in `inbox-heads`: user and device
 *     16 offset
 *     22 when it expires, milliseconds since 1970
 *     28 the call of an invitation, else 0
 */

/** The place of a message, in clear. */
export interface LiveRecord {
  /** The name of its device's key. */
  readonly device: string
  readonly offset: number
  readonly expiresAtMs: number
  /** The call of an invitation. */
  readonly callId: bigint | undefined
  /** Which of the messages of its row it is. */
  readonly at: number
}

export function formatLiveRow(records: readonly LiveRecord[], sealed: Uint8Array): Buffer {
  const sealedAt = 1 + RECORD_BYTES * records.length
  const row = Buffer.allocUnsafe(sealedAt + sealed.length)
  row[0] = records.length
  let at = 1
  for (const { device, offset, expiresAtMs, callId } of records) {
    // For so few octets `write` takes ten times as long, which was 2 % of a call.
    for (let octet = 0; octet < DEVICE_BYTES; octet++) row[at + octet] = device.charCodeAt(octet)
    row.writeUIntBE(offset, at + OFFSET_AT, 6)
    row.writeUIntBE(expiresAtMs, at + EXPIRES_AT, 6)
    row.writeBigUInt64BE(callId ?? NO_CALL, at + CALL_AT)
    at += RECORD_BYTES
  }
  row.set(sealed, sealedAt)
  return row
}

/** In order; none in a row that is damaged. */
export function recordsIn(row: Uint8Array): LiveRecord[] {
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.length)
  const records: LiveRecord[] = []
  if (recordsEnd(row) > row.length) return records
  for (let at = 0; at < bytes[0]!; at++) {
    const from = 1 + RECORD_BYTES * at
    const callId = bytes.readBigUInt64BE(from + CALL_AT)
    records.push({
      device: bytes.toString('latin1', from, from + DEVICE_BYTES),
      offset: bytes.readUIntBE(from + OFFSET_AT, 6),
      expiresAtMs: bytes.readUIntBE(from + EXPIRES_AT, 6),
      callId: callId === NO_CALL ? undefined : callId,
      at,
    })
  }
  return records
}

/** Where the sealed messages begin. */
export function recordsEnd(row: Uint8Array): number {
  return 1 + RECORD_BYTES * (row[0] ?? 0)
}

/** Whether the bits beside a row of messages say that the device of this one is done with it. */
export function isSettledIn(bits: Uint8Array, at: number): boolean {
  return (bits[at >> 3]! & (1 << (at & 7))) !== 0
}

const DEVICE_BYTES = 16
const OFFSET_AT = DEVICE_BYTES
const EXPIRES_AT = OFFSET_AT + 6
const CALL_AT = EXPIRES_AT + 6
const RECORD_BYTES = CALL_AT + 8
const NO_CALL = 0n
