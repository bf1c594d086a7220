/**
 * STUN messages as TURN uses them (RFC 8489, sections 5, 9.2 and 14; RFC 8656, sections 17 and 18): as much as an
 * allocation with long-term credentials needs.
 */

import { createHash, createHmac, randomBytes } from 'node:crypto'

/** Methods with their class "request". */
export const METHODS = { allocate: 0x0003, refresh: 0x0004, createPermission: 0x0008 } as const

export const ATTRIBUTES = {
  username: 0x0006,
  messageIntegrity: 0x0008,
  errorCode: 0x0009,
  lifetime: 0x000d,
  xorPeerAddress: 0x0012,
  realm: 0x0014,
  nonce: 0x0015,
  xorRelayedAddress: 0x0016,
  requestedTransport: 0x0019,
} as const

export type Attribute = readonly [type: number, value: Buffer]

export interface StunAnswer {
  readonly isSuccess: boolean
  /** Such as 401; 0 for a success. */
  readonly errorCode: number
  readonly attributes: ReadonlyMap<number, Buffer>
}

export interface LongTermCredentials {
  readonly username: string
  readonly password: string
  readonly realm: string
  readonly nonce: Buffer
}

/** The request and its transaction id. */
export function formatRequest(
  method: number,
  attributes: readonly Attribute[],
  credentials?: LongTermCredentials,
): { readonly bytes: Buffer; readonly transactionId: Buffer } {
  const transactionId = randomBytes(12)
  if (credentials === undefined) return { bytes: message(method, transactionId, attributes), transactionId }
  const { username, password, realm, nonce } = credentials
  const all: Attribute[] = [
    ...attributes,
    [ATTRIBUTES.username, Buffer.from(username)],
    [ATTRIBUTES.realm, Buffer.from(realm)],
    [ATTRIBUTES.nonce, nonce],
  ]
  const key = createHash('md5').update(`${username}:${realm}:${password}`).digest()
  // The MAC covers the message up to itself, whose length counts it already.
  const whole = message(method, transactionId, [
    ...all,
    [ATTRIBUTES.messageIntegrity, Buffer.alloc(MAC_BYTES)],
  ])
  const covered = whole.subarray(0, whole.length - MAC_BYTES - 4)
  createHmac('sha1', key)
    .update(covered)
    .digest()
    .copy(whole, whole.length - MAC_BYTES)
  return { bytes: whole, transactionId }
}

/** Undefined for any other datagram than an answer to that transaction. */
export function parseAnswer(bytes: Buffer, transactionId: Buffer): StunAnswer | undefined {
  if (bytes.length < HEADER_BYTES || !bytes.subarray(8, HEADER_BYTES).equals(transactionId)) return undefined
  const isResponse = (bytes.readUInt16BE(0) & 0x0100) !== 0
  if (!isResponse || bytes.readUInt16BE(2) + HEADER_BYTES !== bytes.length) return undefined
  const attributes = new Map<number, Buffer>()
  for (let at = HEADER_BYTES; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16BE(at + 2)
    const value = bytes.subarray(at + 4, at + 4 + length)
    if (value.length !== length) return undefined
    if (!attributes.has(bytes.readUInt16BE(at))) attributes.set(bytes.readUInt16BE(at), value)
    at += 4 + padded(length)
  }
  const isSuccess = (bytes.readUInt16BE(0) & 0x0010) === 0
  const error = attributes.get(ATTRIBUTES.errorCode)
  const errorCode = error === undefined || error.length < 4 ? 0 : (error[2]! & 7) * 100 + error[3]!
  return { isSuccess, errorCode, attributes }
}

/** How many bytes the message at the start has, once its header is there. */
export function messageBytes(bytes: Buffer): number | undefined {
  return bytes.length < HEADER_BYTES ? undefined : HEADER_BYTES + bytes.readUInt16BE(2)
}

/** An IPv4 address and port, each combined with the magic cookie (RFC 8489, section 14.2). */
export function formatXorAddress(address: string, port: number): Buffer {
  const value = Buffer.alloc(8)
  value[1] = 0x01
  value.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), 2)
  const octets = address.split('.').map(Number)
  for (const [at, octet] of octets.entries())
    value[4 + at] = octet ^ ((MAGIC_COOKIE >>> (24 - 8 * at)) & 0xff)
  return value
}

/** `192.0.2.1:49152`, or `an IPv6 address`; undefined for neither. */
export function parseXorAddress(value: Buffer | undefined): string | undefined {
  if (value?.[1] === 0x02) return 'an IPv6 address'
  if (value?.[1] !== 0x01 || value.length !== 8) return undefined
  const octets = [...value.subarray(4)].map((octet, at) => octet ^ ((MAGIC_COOKIE >>> (24 - 8 * at)) & 0xff))
  return `${octets.join('.')}:${value.readUInt16BE(2) ^ (MAGIC_COOKIE >>> 16)}`
}

function message(type: number, transactionId: Buffer, attributes: readonly Attribute[]): Buffer {
  const parts = attributes.map(([attribute, value]) => {
    const part = Buffer.alloc(4 + padded(value.length))
    part.writeUInt16BE(attribute, 0)
    part.writeUInt16BE(value.length, 2)
    value.copy(part, 4)
    return part
  })
  const body = Buffer.concat(parts)
  const header = Buffer.alloc(8)
  header.writeUInt16BE(type, 0)
  header.writeUInt16BE(body.length, 2)
  header.writeUInt32BE(MAGIC_COOKIE, 4)
  return Buffer.concat([header, transactionId, body])
}

function padded(length: number): number {
  return (length + 3) & ~3
}

const MAGIC_COOKIE = 0x2112a442
const HEADER_BYTES = 20
const MAC_BYTES = 20
