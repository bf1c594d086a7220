/**
 * Tokens for Janus: texts that it checks by itself, with the secret that both know. A token names a device beside what it
 * is good for, which Janus passes on in its events, so that a session is known to be that device's.
 *
 *     <end>,janus,janus.plugin.videoroom,device=42_1:<HMAC-SHA1>              every request
 *     <end>,janus.plugin.videoroom,room=<id>,device=42_1:<HMAC-SHA1>          joining the room
 *
 * Tokens end at full and half hours, so that every process makes the same ones at a time: one that is made now is good for half an
 * hour to an hour.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { RoomEntry } from '../domain/calls/call.ts'
import { type DeviceId, parseUint64, type UserId } from '../domain/ids.ts'
import type { JanusSettings } from './janus-settings.ts'

export type TokenDevice = RoomEntry['device']

type TokenEntry = Pick<RoomEntry, 'roomId' | 'device'>

export class RoomTokens {
  readonly #settings: Pick<JanusSettings, 'tokenSecret' | 'clientUrl'>
  readonly #nowMs: () => number

  constructor(settings: Pick<JanusSettings, 'tokenSecret' | 'clientUrl'>, nowMs = () => Date.now()) {
    this.#settings = settings
    this.#nowMs = nowMs
  }

  /** Returns what a device needs to enter its room. */
  readonly admit = (entry: TokenEntry) => ({
    url: this.#settings.clientUrl,
    roomToken: this.#roomToken(entry, this.#endS(0)),
    pluginToken: this.#signed(`${this.#endS(0)},janus,${VIDEO_ROOM},${deviceText(entry.device)}`),
  })

  /** Those that a device may hold, from the one before, which a gateway with a late clock still takes, to the next one. */
  roomTokens(entry: TokenEntry): string[] {
    return [-2, -1, 0, 1].map(steps => this.#roomToken(entry, this.#endS(steps)))
  }

  /** Those before them, which a list may have still. */
  endedTokens(entry: TokenEntry): string[] {
    return [-4, -3].map(steps => this.#roomToken(entry, this.#endS(steps)))
  }

  #roomToken({ roomId, device }: TokenEntry, endS: number): string {
    return this.#signed(`${endS},${VIDEO_ROOM},room=${roomId},${deviceText(device)}`)
  }

  /** For a token made so many steps from now. */
  #endS(steps: number): number {
    return (Math.floor(this.#nowMs() / 1000 / STEP_S) + 2 + steps) * STEP_S
  }

  /** The device that a token was made for; undefined for a text that was not signed here. */
  deviceOf(token: string): TokenDevice | undefined {
    const at = token.lastIndexOf(':')
    if (at < 0 || token.length > TOKEN_CHARACTERS_MAX || !isSame(token, this.#signed(token.slice(0, at)))) {
      return undefined
    }
    const [, userText = '', deviceText = ''] = /,device=(\d{1,20})_(\d{1,20})$/.exec(token.slice(0, at)) ?? []
    const [userId, deviceId] = [parseUint64(userText), parseUint64(deviceText)]
    if (userId === undefined || deviceId === undefined) return undefined
    return { userId: userId as UserId, deviceId: deviceId as DeviceId }
  }

  #signed(text: string): string {
    return `${text}:${createHmac('sha1', this.#settings.tokenSecret).update(text).digest('base64')}`
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function deviceText({ userId, deviceId }: TokenDevice): string {
  return `device=${userId}_${deviceId}`
}

export const VIDEO_ROOM = 'janus.plugin.videoroom'
const STEP_S = 1_800
const TOKEN_CHARACTERS_MAX = 512
