/**
 * LiveKit as the media gateway: its API with key and secret, and a client's way to it with a token like the server's, for a room
 * that is not there. Reads only.
 */

import { randomBytes, randomInt } from 'node:crypto'
import { request as beginHttp } from 'node:http'
import { request as beginHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { GatewayError } from '../../src/media/gateway.ts'
import { LiveKitApi } from '../../src/media/livekit-api.ts'
import type { LiveKitSettings } from '../../src/media/livekit-settings.ts'
import { LiveKitTokens } from '../../src/media/livekit-tokens.ts'
import { type Finding, fails, ok, reasonOf } from './finding.ts'

export async function checkLiveKit(settings: LiveKitSettings): Promise<readonly Finding[]> {
  return [await tryApi(settings), ...(await tryClient(settings))]
}

async function tryApi(settings: LiveKitSettings): Promise<Finding> {
  const check = 'media api'
  const { host } = new URL(settings.apiUrl)
  try {
    const rooms = await new LiveKitApi(settings).listRooms()
    return ok(check, `${host} takes key and secret, and has ${rooms.length} rooms`)
  } catch (error) {
    const failure = error instanceof GatewayError ? error.failure : undefined
    if (failure === 'refused') return fails(check, `${host} refuses: compare ${PAIR}, and the clocks`)
    const place = 'CALLSIGN_LIVEKIT_API_URL, or CALLSIGN_LIVEKIT_URL without it'
    if (failure === 'malformed') return fails(check, `${host} answers, but not as LiveKit: look at ${place}`)
    return fails(
      check,
      `${host} can't be reached (${failure ?? reasonOf(error)}): look at ${place}, and whether LiveKit runs`,
    )
  }
}

async function tryClient(settings: LiveKitSettings): Promise<readonly Finding[]> {
  const check = 'media client'
  const { host } = new URL(settings.url)
  const roomId = randomInt(2 ** 47)
  const device = { userId: 0n as UserId, deviceId: 0n as DeviceId }
  const { url, token } = new LiveKitTokens(settings).admit({ callId: 0n as CallId, roomId, device })
  const address = url.replace(/^ws/, 'http').replace(/\/+$/, '')
  try {
    const asked = await ask(`${address}/rtc/validate?access_token=${token}`)
    if (asked === 401) return [fails(check, `${host} refuses a token: compare ${PAIR}, and the clocks`)]
    // It would make the room for one who connects, so that this is not tried.
    if (asked === 200) return [ok(check, `${host} takes the server's tokens`), MAKES_ROOMS]
    const connected = asked === 404 ? await ask(`${address}/rtc?access_token=${token}`, UPGRADE) : asked
    return connected === 404
      ? [ok(check, `${host} takes the server's tokens, and makes no room for them`)]
      : [
          fails(
            check,
            `${host} answers status ${connected}: look at CALLSIGN_LIVEKIT_URL and the proxy in front`,
          ),
        ]
  } catch (error) {
    return [
      fails(
        check,
        `${host} can't be reached (${reasonOf(error)}): look at CALLSIGN_LIVEKIT_URL and the proxy in front`,
      ),
    ]
  }
}

/** The status of the answer. */
function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const begin = url.startsWith('https:') ? beginHttps : beginHttp
  return new Promise((resolve, reject) => {
    const request = begin(url, { headers, signal: AbortSignal.timeout(PATIENCE_MS) })
    request.on('error', reject)
    request.on('response', response => {
      response.destroy()
      resolve(response.statusCode ?? 0)
    })
    request.on('upgrade', (_, socket: Duplex) => {
      socket.destroy()
      resolve(101)
    })
    request.end()
  })
}

const PAIR = 'CALLSIGN_LIVEKIT_API_KEY and CALLSIGN_LIVEKIT_API_SECRET with keys of its livekit.yaml'
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': randomBytes(16).toString('base64'),
}
const MAKES_ROOMS = fails(
  'media rooms',
  'LiveKit makes a room for any token: set auto_create: false under room in its livekit.yaml',
)
const PATIENCE_MS = 5_000
