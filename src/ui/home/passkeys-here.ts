/** Whether this page can make and use passkeys. */

import type { Callsign } from '../../app/app.ts'

/** `elsewhere`: at the server's domain alone. Browsers make none for an IP address. */
export type PasskeysHere = 'on' | 'off' | 'elsewhere'

export async function readPasskeysHere(me: Callsign): Promise<PasskeysHere> {
  if (!('PublicKeyCredential' in globalThis)) return 'off'
  const meta = await me.request('GET meta', undefined).catch(() => undefined)
  if (meta?.features.passkeys !== true) return 'off'
  return /^[\d.]+$|:/.test(location.hostname) ? 'elsewhere' : 'on'
}
