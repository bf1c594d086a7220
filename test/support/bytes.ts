/** Bytes as tests write and compare them. */

/** The bytes of a hex text, as a plain Uint8Array. */
export function fromHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** The bytes of a base64 text by Node's own, lax decoder: for vectors, which are known to be canonical. */
export function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

export function fromUtf8(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'utf8'))
}

/** A copy with one bit turned over. */
export function flipBit(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

/** The octets of a network as the transport tells it, in decimal: an IPv4 address as it is written. */
export function dotted(network: string): string {
  return Buffer.from(network, 'latin1').join('.')
}
