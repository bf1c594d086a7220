/** Settings of LiveKit as the media gateway. */

import type { LiveKitMediaSettings } from '../../media/media-settings.ts'
import type { EnvironmentReader } from './environment.ts'
import { isWebSocketUrl } from './setting-forms.ts'

export function readLiveKitSettings(reader: EnvironmentReader): LiveKitMediaSettings | undefined {
  const problemsBefore = reader.problems.length
  const url = reader.formed(
    'CALLSIGN_LIVEKIT_URL',
    isWebSocketUrl,
    'a ws or wss address that devices reach, such as wss://livekit.example.org',
  )
  const apiUrl = reader.url('CALLSIGN_LIVEKIT_API_URL', 'from CALLSIGN_LIVEKIT_URL')
  const apiKey = reader.text('CALLSIGN_LIVEKIT_API_KEY')
  const apiSecret = reader.secret('CALLSIGN_LIVEKIT_API_SECRET', 'text of at least 32 characters')
  const allowsAes128 = reader.flag('CALLSIGN_LIVEKIT_ALLOW_AES128', '1')
  const given = [url, apiUrl, apiKey, apiSecret]
  if (given.every(value => value === undefined)) {
    if (allowsAes128) reader.problems.push('CALLSIGN_LIVEKIT_ALLOW_AES128 needs CALLSIGN_LIVEKIT_URL')
    return undefined
  }
  if (apiSecret !== undefined && apiSecret.length < SECRET_CHARACTERS_MIN) {
    reader.problems.push(
      `CALLSIGN_LIVEKIT_API_SECRET has at least ${SECRET_CHARACTERS_MIN} characters, as in the keys of livekit.yaml`,
    )
  }
  if (reader.problems.length > problemsBefore) return undefined
  if (!url || !apiKey || !apiSecret) {
    reader.problems.push(
      'CALLSIGN_LIVEKIT_URL, CALLSIGN_LIVEKIT_API_KEY and CALLSIGN_LIVEKIT_API_SECRET are set together',
    )
    return undefined
  }
  const keySize = allowsAes128 ? 128 : 256
  return { kind: 'livekit', livekit: { url, apiUrl: apiUrl ?? apiUrlOf(url), apiKey, apiSecret, keySize } }
}

/** LiveKit serves both at one address. */
function apiUrlOf(url: string): string {
  return url.replace(/^ws/, 'http').replace(/\/+$/, '')
}

/** LiveKit calls a shorter one insecure. */
const SECRET_CHARACTERS_MIN = 32
