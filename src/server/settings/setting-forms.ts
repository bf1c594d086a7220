/** Forms that values of settings have: certificates, address ranges, origins, paths. */

import { X509Certificate } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { isIP } from 'node:net'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { createSecureContext } from 'node:tls'

/** Whether a certificate and a key in PEM belong together. */
export function isKeyPair(certificate: Buffer, key: Buffer): boolean {
  try {
    createSecureContext({ cert: certificate, key })
    return true
  } catch {
    return false
  }
}

/** Whether there are certificates in PEM, all of them whole: without one, no client could be let in. */
export function hasCertificates(pem: Buffer): boolean {
  const certificates = pem.toString('latin1').match(CERTIFICATES) ?? []
  try {
    return certificates.map(text => new X509Certificate(text)).length > 0
  } catch {
    return false
  }
}

/** `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
export function isAddressRange(text: string): boolean {
  const [address = '', prefix = '0', ...rest] = text.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  const bits = version === 4 ? 32 : 128
  return rest.length === 0 && version !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits
}

export function isWebSocketUrl(text: string): boolean {
  return URL.canParse(text) && /^wss?:$/.test(new URL(text).protocol)
}

/** As browsers send it: no path, no default port; also the own schemes of apps that are web pages. */
export function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && text === `${protocol}//${host}`
}

/** Whether a path leads into a folder, also by symbolic links. */
export function isInside(path: string, folder: string): boolean {
  const way = relative(withoutLinks(folder), withoutLinks(path))
  return !isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`)
}

/** The path with symbolic links followed, as far as it exists. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(withoutLinks(parent), basename(path))
  }
}

/** Whether a text is a SHA-256 in lower-case hexadecimal. */
export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}

/** Whether a text is a pin: SHA-256 of a key in base64. */
export function isPin(text: string): boolean {
  return PIN_FORM.test(text)
}

/** Base64 of 32 bytes. */
const PIN_FORM = /^[A-Za-z0-9+/]{43}=$/
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g
