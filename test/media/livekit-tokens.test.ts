/** Tokens for LiveKit, as other programs read them: jose, and LiveKit's own SDK for servers. */

import { jwtVerify } from 'jose'
import { TokenVerifier } from 'livekit-server-sdk'
import t from 'tap'
import type { CallDeviceRef } from '../../src/domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { LiveKitTokens } from '../../src/media/livekit-tokens.ts'
import { keyed } from '../support/livekit-settings.ts'

const HOUR_MS = 3_600_000
const HALF_PAST_MS = Date.UTC(2030, 0, 1, 12, 30)
const settings = keyed()
const callId = 7n as CallId
const ann: CallDeviceRef = { userId: 42n as UserId, deviceId: 1n as DeviceId }
const entry = { callId, roomId: 4_711, device: ann }

function tokensAt(nowMs: number, more: Partial<typeof settings> = {}): LiveKitTokens {
  return new LiveKitTokens({ ...settings, ...more }, () => nowMs)
}

t.test('a token lets one identity into one room, and says nothing more', async t => {
  const tokens = new LiveKitTokens(settings)
  const { token, url } = tokens.admit(entry)
  t.equal(url, settings.url)
  const { payload, protectedHeader } = await jwtVerify(token, Buffer.from(settings.apiSecret), {
    algorithms: ['HS256'],
    issuer: settings.apiKey,
  })
  t.same(protectedHeader, { alg: 'HS256', typ: 'JWT' })
  const { exp, ...claims } = payload
  t.same(claims, {
    iss: settings.apiKey,
    sub: tokens.identityOf(entry),
    video: {
      roomJoin: true,
      canPublish: true,
      canSubscribe: true,
      canPublishData: false,
      canUpdateOwnMetadata: false,
      room: '4711',
    },
  })
  const leftMs = exp! * 1000 - Date.now()
  t.ok(leftMs >= HOUR_MS / 2 && leftMs <= HOUR_MS)
  t.match(await new TokenVerifier(settings.apiKey, settings.apiSecret).verify(token), claims)
})

t.test('no other secret and no other key signs it', async t => {
  const { token } = new LiveKitTokens(settings).admit(entry)
  await t.rejects(new TokenVerifier(settings.apiKey, keyed().apiSecret).verify(token), {
    code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
  })
  await t.rejects(new TokenVerifier('another', settings.apiSecret).verify(token), {
    code: 'ERR_JWT_CLAIM_VALIDATION_FAILED',
  })
})

t.test('each process makes the same, until the half hour', async t => {
  const token = (nowMs: number) => tokensAt(nowMs).admit(entry).token
  t.equal(token(HALF_PAST_MS), token(HALF_PAST_MS + HOUR_MS / 2 - 1))
  t.not(token(HALF_PAST_MS), token(HALF_PAST_MS + HOUR_MS / 2))
  const endOf = (text: string) => JSON.parse(Buffer.from(text.split('.')[1]!, 'base64url').toString()).exp
  t.equal(endOf(token(HALF_PAST_MS)) * 1000, HALF_PAST_MS + HOUR_MS)
  t.equal(endOf(token(HALF_PAST_MS + 1)) * 1000, HALF_PAST_MS + HOUR_MS)
})

t.test('an identity is of a call’s device, the same in each room of the call', async t => {
  const { identityOf, admit } = tokensAt(HALF_PAST_MS)
  const identity = identityOf(entry)
  t.match(identity, /^[\w-]{22}$/)
  t.equal(tokensAt(0).identityOf({ callId, device: { ...ann } }), identity)
  t.not(admit({ ...entry, roomId: 4_712 }).token, admit(entry).token)
  const others = [
    identityOf({ callId: 8n as CallId, device: ann }),
    identityOf({ callId, device: { ...ann, deviceId: 2n as DeviceId } }),
    identityOf({ callId, device: { ...ann, userId: 43n as UserId } }),
    identityOf({ callId, device: { userId: 1n as UserId, deviceId: 42n as DeviceId } }),
    tokensAt(0, { apiSecret: keyed().apiSecret }).identityOf(entry),
  ]
  t.equal(new Set([identity, ...others]).size, 6)
})
