/**
 * CONNECT and CONNECTED (STOMP 1.2, "Connecting"; contract 7.1): version, credentials, and the reply. Liberal in what a
 * CONNECT may look like, because apps differ in it most.
 */

import { RING_S } from '../../src/domain/calls/call.ts'
import { formatPosition } from '../../src/domain/messages/inbox-position.ts'
import { isTokenRefusal } from '../../src/errors.ts'
import { FRAME_BYTES_MAX } from '../../src/limits.ts'
import {
  type Frame,
  type Headers,
  negotiateVersion,
  STOMP_VERSIONS,
  type StompVersion,
} from '../../src/stomp/frame.ts'
import { type HeartBeat, negotiateHeartBeat } from '../../src/stomp/heart-beat.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import type { InboxHead } from '../../src/store/messages/message-tables.ts'
import type { ConnectedDevice, StompConnectionDeps, TokenOwner } from './deps.ts'
import { ConnectionRefusal, protocolRefusal, rateRefusal } from './refusal.ts'
import type { ConnectionState } from './state.ts'

/**
 * Signs the connection in and sends CONNECTED; returns what both sides agreed about heart-beats ("Heart-beating").
 * `known` holds one object for each agreement, shared by all connections.
 */
export function onConnect(
  connection: ConnectionState,
  frame: Frame,
  known: Map<string, HeartBeat>,
): HeartBeat {
  if (connection.stage === 'live') throw protocolRefusal('connected_already', 'a second CONNECT')
  const { deps, context, peer } = connection
  connection.language = deps.languageOf(frame.header('accept-language'))
  const version = versionOf(frame)
  const heartBeat = negotiateHeartBeat(frame.header('heart-beat'), version)
  const { userId, deviceId, sessionName } = signIn(connection, frame)
  connection.signedIn = { userId, deviceId }
  const isRestricted = deps.restrictionOf(connection.signedIn) !== undefined
  connection.stage = 'live'
  peer.version = version
  context.cancelTimer('connect')
  deps.users(String(userId)).tellControl({
    kind: 'attached',
    connection: { deviceId, sessionName, isRestricted, ref: context.self },
  })
  const [{ server }, nowMs, connectionId] = [deps, context.nowMs(), context.self.id]
  const facts = { version, userId, deviceId, connectionId, heartBeat: heartBeat.header, server, nowMs }
  const headers = connectedHeaders(facts, deps.inbox.head(userId, deviceId))
  peer.send(encodeFrame('CONNECTED', headers, version), true)
  return sharedHeartBeat(known, heartBeat)
}

/** Bad credentials count against their address, which has to wait beyond some; good ones count for their session. */
function signIn({ deps, peer }: ConnectionState, frame: Frame): TokenOwner & ConnectedDevice {
  const { authorization, network } = peer.connection
  const credential = credentialOf(frame, authorization)
  const owner = ownerOf(credential, network, deps)
  const waitMs = deps.admission?.connected(network, owner.sessionName) ?? 0
  if (waitMs > 0) throw rateRefusal('too many requests of this session, or from this address', waitMs)
  const { deviceId } = owner
  if (deviceId === undefined) throw noDevice()
  return { ...owner, deviceId }
}

/** Throws a code of status 401 for bad ones. */
function ownerOf(
  credential: string,
  network: string,
  { authenticate, admission }: Pick<StompConnectionDeps, 'authenticate' | 'admission'>,
): TokenOwner {
  try {
    return authenticate(credential)
  } catch (error) {
    const isBad = credential === '' || isTokenRefusal(error)
    const waitMs = isBad ? (admission?.failedConnect(network, credential) ?? 0) : 0
    if (waitMs > 0) throw rateRefusal('too many failed CONNECTs from this address', waitMs)
    throw error
  }
}

function sharedHeartBeat(known: Map<string, HeartBeat>, heartBeat: HeartBeat): HeartBeat {
  const name = `${heartBeat.beatEveryMs} ${heartBeat.silenceMsMax}`
  const shared = known.get(name)
  if (shared === undefined && known.size < HEART_BEATS_KEPT_MAX) known.set(name, heartBeat)
  return shared ?? heartBeat
}

/** STOMP 1.2, "Protocol Negotiation": the best version that both speak. Throws a `ConnectionRefusal` that lists ours where there is none. */
function versionOf(frame: Frame): StompVersion {
  const version = negotiateVersion(frame.header('accept-version'))
  if (version !== undefined) return version
  const message = `this server speaks STOMP ${STOMP_VERSIONS.join(', ')}`
  throw protocolRefusal('version_unsupported', message, ['version', STOMP_VERSIONS.join(',')])
}

/**
 * A CONNECT's credentials, or the upgrade's where it has none, as an `Authorization` header; empty for none. The token names
 * its owner, so `login`, which many clients can't leave out, may have any value.
 */
function credentialOf(frame: Frame, upgradeAuthorization: string): string {
  const token = nativeCredential(frame)
  const passcode = token === undefined ? nonEmpty(frame.header('passcode')) : undefined
  const credential = token ?? passcode ?? nonEmpty(upgradeAuthorization)
  return credential === undefined ? '' : `Bearer ${withoutScheme(credential)}`
}

/** The headers of CONNECTED (STOMP 1.2, "CONNECTED Frame"), which is never escaped: printable ASCII, no backslash. */
function connectedHeaders(
  facts: {
    readonly version: StompVersion
    readonly connectionId: string
    readonly server: string
    readonly heartBeat: string | undefined
    readonly nowMs: number
  } & ConnectedDevice,
  head: InboxHead,
): Headers {
  const { version, connectionId, server, heartBeat, nowMs, userId, deviceId } = facts
  const position = formatPosition({ epoch: head.epoch, offset: head.nextOffset - 1 })
  const dashAt = position.indexOf('-')
  const headers = ['version', version, 'session', connectionId, 'server', server]
  // Pushed, since spreads take as long as all the rest of a CONNECT (`connect-rate` in `bench/`).
  if (heartBeat !== undefined) headers.push('heart-beat', heartBeat)
  headers.push('user-name', String(userId), 'device', String(deviceId))
  headers.push('inbox-epoch', position.slice(0, dashAt), 'inbox-offset', position.slice(dashAt + 1))
  headers.push('max-frame', MAX_FRAME, 'ring-ttl', RING_TTL, 'server-time', String(nowMs))
  return headers
}

/** A credential in a header of CONNECT that is named in any case: the first that is not empty. */
function nativeCredential({ headers }: Frame): string | undefined {
  for (const name of CREDENTIAL_HEADERS) {
    for (let at = 0; at < headers.length; at += 2) {
      const value = headers[at + 1]!
      if (value !== '' && headers[at]!.toLowerCase() === name) return value
    }
  }
  return undefined
}

function withoutScheme(credential: string): string {
  return credential.replace(/^\s*bearer\s+/i, '').trim()
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}

function noDevice(): ConnectionRefusal {
  return new ConnectionRefusal(
    { reason: 'device_not_registered', closeCode: 1008, retry: 'false' },
    'DEVICE_NOT_REGISTERED',
    'register a device first',
  )
}

const HEART_BEATS_KEPT_MAX = 256
const MAX_FRAME = String(FRAME_BYTES_MAX)
const RING_TTL = String(RING_S * 1_000)
/** The convention of Spring's clients first, then other common names. */
const CREDENTIAL_HEADERS = ['authorization', 'x-authorization', 'token', 'access-token'] as const
