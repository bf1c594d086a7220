/** The parts of a table's keys: how long they are, and how a report names them. */

export interface KeyPart {
  readonly bytes: number
  /** Where it may be shorter. */
  readonly bytesMin?: number
  /** Undefined where neither it nor what follows is to be told. */
  readonly nameOf: (part: Buffer) => string | undefined
}

/** By what each is, in order. */
export type KeyParts = Readonly<Record<string, KeyPart>>

export const ID: KeyPart = { bytes: 8, nameOf: part => `${part.readBigUInt64BE()}` }
/** Milliseconds since 1970. */
export const TIME: KeyPart = { bytes: 6, nameOf: part => new Date(part.readUIntBE(0, 6)).toISOString() }
export const NUMBER: KeyPart = { bytes: 6, nameOf: part => `${part.readUIntBE(0, 6)}` }
export const KIND: KeyPart = { bytes: 1, nameOf: part => `${part[0]}` }
/** The SHA-256 of something. */
export const HASH = opaque(32)

/** Bytes of a hash, or that open something: see `beginningOf`. */
export function opaque(bytes: number, bytesMin = bytes): KeyPart {
  return { bytes, bytesMin, nameOf: beginningOf }
}

/** Not told, like what follows it. */
export function untold(bytes: number): KeyPart {
  return { bytes, nameOf: () => undefined }
}

/**
 * Three bytes: enough to find the row in its table, too few to tell which telephone number or address was hashed.
 */
export function beginningOf(bytes: Uint8Array): string {
  return `${Buffer.from(bytes).toString('hex', 0, 3)}…`
}

/** The least and the most bytes of a key of these parts; a text may have any. */
export function lengthsOf(parts: KeyParts | string): readonly [least: number, most: number] {
  if (typeof parts === 'string') return [0, Number.POSITIVE_INFINITY]
  const sum = (bytesOf: (part: KeyPart) => number) =>
    Object.values(parts).reduce((bytes, part) => bytes + bytesOf(part), 0)
  return [sum(({ bytes, bytesMin = bytes }) => bytesMin), sum(({ bytes }) => bytes)]
}

/** How a report names the key of a row: `7/12`. */
export function keyName(parts: KeyParts | string, key: Buffer): string {
  if (typeof parts === 'string') return key.toString()
  const names: string[] = []
  let at = 0
  for (const { bytes, bytesMin = bytes, nameOf } of Object.values(parts)) {
    const name = at + bytesMin > key.length ? '?' : nameOf(key.subarray(at, at + bytes))
    names.push(name ?? '…')
    if (name === undefined) break
    at += bytes
  }
  return names.join('/')
}
