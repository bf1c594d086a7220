/** Settings of Janus as the media gateway. */

import type { JanusEventsSettings } from '../../media/janus-settings.ts'
import type { JanusMediaSettings } from '../../media/media-settings.ts'
import { type EnvironmentReader, PORTS } from './environment.ts'

export function readJanusSettings(reader: EnvironmentReader): JanusMediaSettings | undefined {
  const adminUrl = reader.url('CALLSIGN_JANUS_ADMIN_URL')
  const adminSecret = reader.secret('CALLSIGN_JANUS_ADMIN_SECRET')
  const adminKey = reader.secret('CALLSIGN_JANUS_ADMIN_KEY')
  const tokenSecret = reader.secret('CALLSIGN_JANUS_TOKEN_SECRET')
  const clientUrl = reader.formed(
    'CALLSIGN_JANUS_CLIENT_URL',
    isWebSocketUrl,
    'a ws or wss address that devices reach, such as wss://media.example.org',
  )
  const events = readEvents(reader)
  const given = [adminUrl, adminSecret, adminKey, tokenSecret, clientUrl]
  if (given.every(value => value === undefined)) {
    if (events !== undefined)
      reader.problems.push('CALLSIGN_JANUS_EVENTS_PORT needs CALLSIGN_JANUS_ADMIN_URL')
    return undefined
  }
  if (!adminUrl || !adminSecret || !adminKey || !tokenSecret || !clientUrl) {
    reader.problems.push(
      'CALLSIGN_JANUS_ADMIN_URL, CALLSIGN_JANUS_ADMIN_SECRET, CALLSIGN_JANUS_ADMIN_KEY, CALLSIGN_JANUS_TOKEN_SECRET and CALLSIGN_JANUS_CLIENT_URL are set together',
    )
    return undefined
  }
  const gateway = { name: 'janus', weight: 1, isDraining: false }
  return {
    kind: 'janus',
    gateways: [{ ...gateway, adminUrl, adminSecret, adminKey, tokenSecret, clientUrl }],
    ...(events && { events }),
  }
}

function readEvents(reader: EnvironmentReader): JanusEventsSettings | undefined {
  const host = reader.text('CALLSIGN_JANUS_EVENTS_HOST', 'address or name', '127.0.0.1') ?? '127.0.0.1'
  const port = reader.optionalInteger('CALLSIGN_JANUS_EVENTS_PORT', PORTS)
  const user = reader.text('CALLSIGN_JANUS_EVENTS_USER', 'text', 'janus') ?? 'janus'
  const password = reader.secret('CALLSIGN_JANUS_EVENTS_PASSWORD')
  if (port === undefined && password === undefined) return undefined
  if (port === undefined || password === undefined) {
    reader.problems.push('CALLSIGN_JANUS_EVENTS_PORT and CALLSIGN_JANUS_EVENTS_PASSWORD are set together')
    return undefined
  }
  return { host, port, user, password }
}

function isWebSocketUrl(text: string): boolean {
  return URL.canParse(text) && /^wss?:$/.test(new URL(text).protocol)
}
