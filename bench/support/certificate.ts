/** Certificates that a server of the bench signs for itself. */

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

const KEYS = {
  'ECDSA P-256': ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'RSA-2048': ['-newkey', 'rsa:2048'],
} as const

/** Settings of a server with a new certificate. Writes its files to `folder`. */
export function certificateOf(folder: string, kind: keyof typeof KEYS): Record<string, string> {
  const [certificate, key] = [join(folder, `${kind}.crt`), join(folder, `${kind}.key`)]
  const files = ['-keyout', key, '-out', certificate]
  const subject = ['-nodes', '-days', '9', '-subj', '/CN=localhost']
  execFileSync('openssl', ['req', '-x509', ...KEYS[kind], ...files, ...subject], { stdio: 'ignore' })
  return { CALLSIGN_TLS_CERT: certificate, CALLSIGN_TLS_KEY: key }
}
