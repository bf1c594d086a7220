/** Certificates: until when they are good, for which names, whether the chain is whole, and the pin of the key. */

import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { type Check, type Finding, fails, off, ok } from './finding.ts'

/** The settings have already matched key and certificate: else there are none. */
export const checkTls: Check = async ({ config }) => {
  const { http, grpc, publicUrl } = config
  const found: Finding[] = []
  if (http.tls === undefined) {
    found.push(off('tls', 'set CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY, unless a proxy in front ends TLS'))
  } else {
    found.push(judge('tls', 'CALLSIGN_TLS_CERT', readFileSync(http.tls.certificateFile), publicUrl))
  }
  if (grpc.tls !== undefined) found.push(judge('grpc tls', 'CALLSIGN_GRPC_TLS_CERT', grpc.tls.certificate))
  return found
}

function judge(check: string, setting: string, pem: Buffer, publicUrl?: string): Finding {
  const chain = readChain(pem.toString('latin1'))
  const [leaf] = chain
  if (leaf === undefined) return fails(check, `${setting} holds no certificate that can be read (PEM)`)
  const daysLeft = Math.floor((Date.parse(leaf.validTo) - Date.now()) / DAY_MS)
  const until = new Date(leaf.validTo).toISOString().slice(0, 10)
  if (daysLeft < 0) return fails(check, `${setting} expired on ${until}: put a new one there and restart`)
  if (Date.parse(leaf.validFrom) > Date.now())
    return fails(check, `${setting} is not valid yet: is the clock right?`)
  if (daysLeft < DAYS_LEFT_MIN)
    return fails(check, `${setting} expires on ${until}, in ${daysLeft} days: renew it and restart`)
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')
  if (host !== undefined && !isFor(leaf, host)) {
    return fails(
      check,
      `${setting} is not for ${host}, the host of CALLSIGN_PUBLIC_URL, but ${leaf.subjectAltName ?? 'no name'}`,
    )
  }
  const broken = chain.findIndex((certificate, at) => at > 0 && !chain[at - 1]!.checkIssued(certificate))
  if (broken > 0)
    return fails(
      check,
      `${setting}: certificate ${broken + 1} has not issued the one before it: leaf first, then the chain`,
    )
  const pin = createHash('sha256')
    .update(leaf.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64')
  const isAlone = chain.length === 1 && !leaf.checkIssued(leaf)
  const remark = isAlone ? '; it stands alone: a public authority gives an intermediate one to add' : ''
  return ok(check, `${setting} is good until ${until}, pin ${pin}${remark}`)
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}

function readChain(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  try {
    return blocks.map(block => new X509Certificate(block))
  } catch {
    return []
  }
}

const DAY_MS = 86_400_000
/** Public authorities renew a month before the end; a later certificate has been forgotten. */
const DAYS_LEFT_MIN = 14
