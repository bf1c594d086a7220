/** Settings of LiveKit as the media gateway. */

import t from 'tap'
import { ConfigError, readConfig } from '../../../src/server/settings/config.ts'

const SECRET = 'x'.repeat(32)
const WHOLE = {
  CALLSIGN_LIVEKIT_URL: 'wss://livekit.example.org/',
  CALLSIGN_LIVEKIT_API_KEY: 'APIx',
  CALLSIGN_LIVEKIT_API_SECRET: SECRET,
}

function read(environment: Readonly<Record<string, string>>) {
  return readConfig(environment, { dev: true }).application.media
}

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    read(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

t.test('its API is at the address of clients, unless it has its own', async t => {
  const livekit = {
    url: 'wss://livekit.example.org/',
    apiUrl: 'https://livekit.example.org',
    apiKey: 'APIx',
    apiSecret: SECRET,
    keySize: 256,
  }
  t.same(read(WHOLE), { kind: 'livekit', livekit })
  t.match(read({ ...WHOLE, CALLSIGN_LIVEKIT_URL: 'ws://10.0.0.7:7880/x' }), {
    livekit: { apiUrl: 'http://10.0.0.7:7880/x' },
  })
  t.match(read({ ...WHOLE, CALLSIGN_LIVEKIT_API_URL: 'http://10.0.0.7:7880/' }), {
    livekit: { apiUrl: 'http://10.0.0.7:7880' },
  })
  t.match(read({ ...WHOLE, CALLSIGN_LIVEKIT_ALLOW_AES128: '1' }), { livekit: { keySize: 128 } })
})

t.test('a part of them, a short secret and a second kind of gateway are refused', async t => {
  for (const name of Object.keys(WHOLE))
    t.match(problemsOf({ ...WHOLE, [name]: '' }), [/^CALLSIGN_LIVEKIT_URL, .* are set together$/], name)
  t.match(problemsOf({ CALLSIGN_LIVEKIT_API_URL: 'http://10.0.0.7' }), [/are set together$/])
  t.same(problemsOf({ CALLSIGN_LIVEKIT_ALLOW_AES128: '1' }), [
    'CALLSIGN_LIVEKIT_ALLOW_AES128 needs CALLSIGN_LIVEKIT_URL',
  ])
  const short = problemsOf({ ...WHOLE, CALLSIGN_LIVEKIT_API_SECRET: 'x'.repeat(31) })
  t.same(short, ['CALLSIGN_LIVEKIT_API_SECRET has at least 32 characters, as in the keys of livekit.yaml'])
  const janus = {
    CALLSIGN_JANUS_ADMIN_URL: 'http://127.0.0.1:7088/admin',
    CALLSIGN_JANUS_ADMIN_SECRET: 'a',
    CALLSIGN_JANUS_ADMIN_KEY: 'b',
    CALLSIGN_JANUS_TOKEN_SECRET: 'c',
    CALLSIGN_JANUS_CLIENT_URL: 'wss://janus.example.org',
  }
  t.match(problemsOf({ ...WHOLE, ...janus }), [
    /JANUS.*LIVEKIT.* are both set: calls have one kind of gateway$/,
  ])
})
