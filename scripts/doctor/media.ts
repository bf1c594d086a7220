/**
 * The media gateway: its Admin API with secret and key, and a client's way to it with a token signed like the server's.
 * Reads only; the session that the token opens ends with its connection.
 */

import { randomBytes } from 'node:crypto'
import { request as beginHttp, type IncomingMessage } from 'node:http'
import { request as beginHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import { GatewayError } from '../../src/media/gateway.ts'
import { membersOf } from '../../src/media/gateway-requests.ts'
import { JanusAdmin } from '../../src/media/janus-admin.ts'
import type { JanusSettings } from '../../src/media/janus-settings.ts'
import { RoomTokens } from '../../src/media/room-tokens.ts'
import { type Check, type Finding, fails, off, ok, reasonOf } from './finding.ts'
import { checkLiveKit } from './livekit.ts'

export const checkMedia: Check = async ({ config }) => {
  const { media } = config.application
  if (media?.kind === 'livekit') return checkLiveKit(media.livekit)
  if (media === undefined) {
    return [
      off(
        'media',
        'set CALLSIGN_JANUS_ADMIN_URL and its companions, CALLSIGN_JANUS_FILE, or CALLSIGN_LIVEKIT_URL, for group calls through a gateway',
      ),
    ]
  }
  const { gateways } = media
  const tried = gateways.flatMap(settings => {
    const tried = { settings, isOneOf: gateways.length > 1 }
    return [tryAdmin(tried), tryClient(tried), tryEvents(tried)]
  })
  const areAllDraining = gateways.every(({ isDraining }) => isDraining)
  return [
    ...(await Promise.all(tried)),
    ...(areAllDraining ? [fails('media gateways', 'all of them drain, so that no call gets any')] : []),
  ]
}

interface Tried {
  readonly settings: JanusSettings
  /** Findings of one among several need its name. */
  readonly isOneOf: boolean
}

function checkOf(part: string, { settings: { name }, isOneOf }: Tried): string {
  return isOneOf ? `media ${part} of ${name}` : `media ${part}`
}

/** Where the operator finds it. */
function placeOf(
  member: 'adminUrl' | 'adminSecret' | 'adminKey' | 'tokenSecret' | 'clientUrl',
  tried: Tried,
): string {
  const variable = `CALLSIGN_JANUS_${member.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()}`
  return tried.isOneOf ? `${member} in CALLSIGN_JANUS_FILE` : variable
}

async function tryAdmin(tried: Tried): Promise<Finding> {
  const { adminUrl, adminSecret, adminKey } = tried.settings
  const check = checkOf('admin', tried)
  const adviceOn = adviceFor(tried)
  const { host } = new URL(adminUrl)
  const admin = new JanusAdmin({ adminUrl, adminSecret })
  try {
    await admin.request({ janus: 'list_sessions' })
  } catch (error) {
    return fails(
      check,
      `${host} ${adviceOn(error, `${placeOf('adminSecret', tried)} with its admin_secret`)}`,
    )
  }
  try {
    const { list } = await admin.videoRoom({ request: 'list', admin_key: adminKey })
    return ok(check, `${host} takes secret and key, and has ${Array.isArray(list) ? list.length : 0} rooms`)
  } catch (error) {
    return fails(
      check,
      `${host} ${adviceOn(error, `${placeOf('adminKey', tried)} with admin_key of its VideoRoom`)}`,
    )
  }
}

function adviceFor(tried: Tried): (error: unknown, pair: string) => string {
  const url = placeOf('adminUrl', tried)
  return (error, pair) => {
    const failure = error instanceof GatewayError ? error.failure : undefined
    if (failure === 'refused') return `refuses: compare ${pair}`
    if (failure === 'malformed') return `answers, but not as Janus: look at ${url}`
    return `can't be reached (${failure ?? reasonOf(error)}): look at ${url}, and whether Janus runs`
  }
}

/** Without them every feed is unknown. */
async function tryEvents(tried: Tried): Promise<Finding> {
  const { adminUrl, adminSecret, eventsLogin } = tried.settings
  const check = checkOf('events', tried)
  const { host } = new URL(adminUrl)
  if (eventsLogin === undefined)
    return fails(
      check,
      'set CALLSIGN_JANUS_EVENTS_PORT and CALLSIGN_JANUS_EVENTS_PASSWORD, or eventsPassword in CALLSIGN_JANUS_FILE: else every feed is unknown',
    )
  const advice = 'compare its janus.jcfg and janus.eventhandler.sampleevh.jcfg with those of deploy/janus'
  try {
    // It knows no such request, and says so only while it is on: Janus lists it either way.
    const query = { handler: 'janus.eventhandler.sampleevh', request: { request: 'none' } }
    const { response } = await new JanusAdmin({ adminUrl, adminSecret }).request({
      janus: 'query_eventhandler',
      ...query,
    })
    if (membersOf(response)?.error_code !== undefined) return ok(check, `${host} has its event handler on`)
    return fails(check, `${host} has its event handler off: ${advice}`)
  } catch (error) {
    const pair = `${placeOf('adminSecret', tried)} with its admin_secret`
    return fails(check, `${host} ${adviceFor(tried)(error, pair)}`)
  }
}

async function tryClient(tried: Tried): Promise<Finding> {
  const { clientUrl, tokenSecret } = tried.settings
  const check = checkOf('client', tried)
  const { host } = new URL(clientUrl)
  const tokens = new RoomTokens({ tokenSecret, clientUrl })
  const device = { userId: 0n as UserId, deviceId: 0n as DeviceId }
  const { pluginToken } = tokens.admit({ roomId: 1, device })
  try {
    const answer = await askOnce(clientUrl, { janus: 'create', token: pluginToken, transaction: 'doctor' })
    if (answer.includes('"success"')) return ok(check, `${host} takes the server's tokens`)
    return fails(
      check,
      `${host} refuses a token: compare ${placeOf('tokenSecret', tried)} with its token_auth_secret, and the clocks`,
    )
  } catch (error) {
    return fails(
      check,
      `${host} can't be reached (${reasonOf(error)}): look at ${placeOf('clientUrl', tried)} and the proxy in front`,
    )
  }
}

/** One message by WebSocket (RFC 6455), and the first answer to it. */
function askOnce(clientUrl: string, message: object): Promise<string> {
  const isTls = clientUrl.startsWith('wss:')
  const begin = isTls ? beginHttps : beginHttp
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    'sec-websocket-protocol': 'janus-protocol',
  }
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const request = begin(clientUrl.replace(/^ws/, 'http'), { headers, signal })
    request.on('error', reject)
    request.on('response', ({ statusCode }) =>
      reject(Object.assign(new Error('no upgrade'), { code: `status ${statusCode}` })),
    )
    request.on('upgrade', (_: IncomingMessage, socket: Duplex) => {
      socket.on('error', reject)
      socket.on('data', (bytes: Buffer) => {
        resolve(bytes.toString('utf8'))
        socket.destroy()
      })
      socket.write(textFrame(JSON.stringify(message)))
    })
    request.end()
  })
}

/** Masked with zeros. */
function textFrame(text: string): Uint8Array {
  const payload = Buffer.from(text)
  const head = Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0])
  return Buffer.concat([head, payload])
}

const PATIENCE_MS = 5_000
