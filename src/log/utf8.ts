/** UTF-8 as text where an engine has no decoder: React Native's has none. */
import { SignalError } from '../errors.ts'

/** Throws `MALFORMED` for octets that are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  let escaped = ''
  for (const octet of bytes) escaped += octet < 0x80 && octet !== PERCENT ? ASCII[octet] : ESCAPED[octet]
  try {
    return decodeURIComponent(escaped)
  } catch (cause) {
    throw new SignalError('MALFORMED', 'text is not UTF-8', { cause })
  }
}

const PERCENT = 0x25
const ASCII = Array.from({ length: 128 }, (_, octet) => String.fromCharCode(octet))
const ESCAPED = Array.from({ length: 256 }, (_, octet) => `%${octet.toString(16).padStart(2, '0')}`)
