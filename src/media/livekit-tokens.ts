/**
 * Access tokens for LiveKit: JWTs (RFC 7519, HS256) that it verifies with the shared API secret. A token admits one device to one
 * room, under an identity that reveals nothing about its user. It can't be revoked, so a removed device can reconnect while the
 * room exists; `LiveKitGateway` watches for that.
 *
 * Tokens end at full and half hours, so that every process makes the same ones at a time: one that is made now is good for half
 * an hour to an hour.
 */

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { RoomEntry } from '../domain/calls/call.ts'
import type { LiveKitSettings } from './livekit-settings.ts'

export class LiveKitTokens {
  readonly #url: string
  readonly #signer: LiveKitSigner
  readonly #nowMs: () => number

  constructor(settings: Pick<LiveKitSettings, 'url' | 'apiKey' | 'apiSecret'>, nowMs = () => Date.now()) {
    this.#url = settings.url
    this.#signer = new LiveKitSigner(settings)
    this.#nowMs = nowMs
  }

  /** Returns what a device needs to enter its room. */
  readonly admit = (entry: Pick<RoomEntry, 'callId' | 'roomId' | 'device'>) => {
    const endS = (Math.floor(this.#nowMs() / 1000 / STEP_S) + 2) * STEP_S
    const video = { ...GRANTS, room: String(entry.roomId) }
    return { url: this.#url, token: this.#signer.token({ sub: this.identityOf(entry), exp: endS, video }) }
  }

  /** The same in each room of the call, so that participants still know each other after a change of room. */
  readonly identityOf = ({ callId, device }: Pick<RoomEntry, 'callId' | 'device'>): string => {
    const ids = Buffer.alloc(3 * 8)
    for (const [at, id] of [callId, device.userId, device.deviceId].entries())
      ids.writeBigUInt64BE(id, at * 8)
    return this.#signer.mac(IDENTITY, ids).slice(0, IDENTITY_CHARACTERS)
  }
}

/** Signs with the API secret. */
export class LiveKitSigner {
  readonly #apiKey: string
  readonly #secret: KeyObject

  constructor({ apiKey, apiSecret }: Pick<LiveKitSettings, 'apiKey' | 'apiSecret'>) {
    this.#apiKey = apiKey
    this.#secret = createSecretKey(apiSecret, 'utf8')
  }

  token(claims: object): string {
    const text = `${HEADER}.${base64url(JSON.stringify({ iss: this.#apiKey, ...claims }))}`
    return `${text}.${this.mac(text)}`
  }

  mac(...parts: readonly (string | Uint8Array)[]): string {
    const hmac = createHmac('sha256', this.#secret)
    for (const part of parts) hmac.update(part)
    return hmac.digest('base64url')
  }
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}

/** Without data messages, which bypass the encryption, and without a name or metadata that other participants would see. */
const GRANTS = {
  roomJoin: true,
  canPublish: true,
  canSubscribe: true,
  canPublishData: false,
  canUpdateOwnMetadata: false,
}
const HEADER = base64url(JSON.stringify({ alg: 'HS256', typ: 'JWT' }))
const IDENTITY = 'callsign livekit identity v1\n'
/** 132 bits. */
const IDENTITY_CHARACTERS = 22
const STEP_S = 1_800
