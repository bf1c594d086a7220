/** Settings of passkeys. */

import { androidOrigin, type PasskeySettings } from '../../domain/accounts/passkey.ts'
import type { EnvironmentReader } from './environment.ts'

/** Off without a domain, but in development, where they are of `localhost`. */
export function readPasskeySettings(
  reader: EnvironmentReader,
  isDevelopment: boolean,
  androidApps: readonly { readonly fingerprint: string }[],
): { readonly passkeys?: PasskeySettings } {
  const named = reader.formed(
    'CALLSIGN_PASSKEY_RP_ID',
    isDomain,
    'a domain in lower case, such as example.org',
  )
  const listed = reader.list(
    'CALLSIGN_PASSKEY_ORIGINS',
    text => isWebOrigin(text) || ANDROID_FORM.test(text),
    'origins such as https://app.example.org and android:apk-key-hash:…',
  )
  const rpId = named ?? (isDevelopment ? 'localhost' : undefined)
  if (rpId === undefined) {
    reader.refuseWithout('CALLSIGN_PASSKEY_RP_ID', ['CALLSIGN_PASSKEY_ORIGINS'])
    return {}
  }
  for (const origin of listed) {
    if (isWebOrigin(origin) && !isWithin(new URL(origin).hostname, rpId))
      reader.problems.push(`CALLSIGN_PASSKEY_ORIGINS names ${origin}, which is not of CALLSIGN_PASSKEY_RP_ID`)
  }
  const usual = [`https://${rpId}`, ...androidApps.map(({ fingerprint }) => androidOrigin(fingerprint))]
  const origins = listed.length > 0 ? listed : usual
  return { passkeys: { rpId, origins, takesLoopback: isDevelopment && rpId === 'localhost' } }
}

function isDomain(text: string): boolean {
  return text === 'localhost' || (DOMAIN_FORM.test(text) && text.length <= 253)
}

function isWebOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'https:' && new URL(text).origin === text
}

function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`)
}

/** Two labels at least, and the last one is no number: an address is no domain. */
const DOMAIN_FORM = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/
const ANDROID_FORM = /^android:apk-key-hash:[A-Za-z0-9_-]{43}$/
