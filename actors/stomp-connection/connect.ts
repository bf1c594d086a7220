/**
 * CONNECT and CONNECTED (STOMP 1.2, "CONNECT"; contract 7.1): version, credentials, and the reply. Liberal in what a
 * CONNECT may look like, because apps differ in it most.
 */

import { RING_S } from '../../src/domain/calls/call.ts'
import { formatPosition } from '../../src/domain/messages/inbox.ts'
import { FRAME_BYTES_MAX } from '../../src/limits.ts'
import {
  type Frame,
  type Headers,
  negotiateVersion,
  STOMP_VERSIONS,
  type StompVersion,
} from '../../src/stomp/frame.ts'
import type { InboxHead } from '../../src/store/messages/inbox-records.ts'
import type { ConnectedDevice, StompConnectionDeps, TokenOwner } from './deps.ts'
import { ConnectionRefusal, protocolRefusal } from './refusal.ts'

/** The best version that both speak. Throws a `ConnectionRefusal` that lists ours where there is none. */
export function versionOf(frame: Frame): StompVersion {
  const version = negotiateVersion(frame.header('accept-version'))
  if (version !== undefined) return version
  const message = `this server speaks STOMP ${STOMP_VERSIONS.join(', ')}`
  throw protocolRefusal('version_unsupported', message, ['version', STOMP_VERSIONS.join(',')])
}

/**
 * Whose the credentials of a CONNECT are; those of the upgrade count where it has none. The token says whose they are,
 * so `login`, which many clients can't leave out, may have any value. Throws a code of status 401 for
 * bad ones, a `ConnectionRefusal` for good ones of a session without a device.
 */
export function signInWith(
  frame: Frame,
  upgradeAuthorization: string,
  authenticate: StompConnectionDeps['authenticate'],
): TokenOwner & ConnectedDevice {
  const token = nativeCredential(frame)
  const passcode = token === undefined ? nonEmpty(frame.header('passcode')) : undefined
  const credential = token ?? passcode ?? nonEmpty(upgradeAuthorization)
  const caller = authenticate(credential === undefined ? '' : `Bearer ${withoutScheme(credential)}`)
  const { deviceId } = caller
  if (deviceId === undefined) throw noDevice()
  return { ...caller, deviceId }
}

/** The headers of CONNECTED, which is never escaped: printable ASCII, no backslash. */
export function connectedHeaders(
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

const MAX_FRAME = String(FRAME_BYTES_MAX)
const RING_TTL = String(RING_S * 1_000)
/** The convention of Spring's clients first, then other common names. */
const CREDENTIAL_HEADERS = ['authorization', 'x-authorization', 'token', 'access-token'] as const
