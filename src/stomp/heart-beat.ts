/**
 * Heart-beats (STOMP 1.2, "Heart-beating"): what both sides agree on, when our next beat is due and when a silent
 * peer counts as gone. Arithmetic only: the caller owns the clock and the timer wheel.
 */
import { assert } from '../errors.ts'
import { HEART_BEAT_MS, HEART_BEAT_MS_MAX, HEART_BEAT_MS_MIN } from '../limits.ts'
import type { StompVersion } from './frame.ts'
import { FrameRefusal } from './refusal.ts'

/** The agreed intervals. Zero means never, in both directions. */
export interface HeartBeat {
  /** We send something at least every so many milliseconds. */
  readonly beatEveryMs: number
  /** A peer that sends nothing for so many milliseconds is gone. */
  readonly silenceMsMax: number
  /** The value of `heart-beat` in CONNECTED; undefined in 1.0, which has no such header. */
  readonly header: string | undefined
}

/**
 * Agrees with the `heart-beat` header of a CONNECT, `cx,cy` in milliseconds; without one the client neither sends nor
 * wants beats. Throws a `FrameRefusal` unless it is two numbers without sign or leading zero. 1.0 ignores it.
 * Choice: one blank may follow the comma, since some clients write it.
 * Choice: `offerMs` is what we offer in both directions, within the limits of `limits.ts`. We beat at least every
 * `HEART_BEAT_MS_MAX`, which is more often than a client may ask for. A client that offers rarer beats than that is
 * asked for none: the server could not wait for them, and cutting the client sooner would break the agreement.
 */
export function negotiateHeartBeat(
  header: string | undefined,
  version: StompVersion,
  offerMs: number = HEART_BEAT_MS,
): HeartBeat {
  assert(offerMs >= HEART_BEAT_MS_MIN && offerMs <= HEART_BEAT_MS_MAX, 'heart-beat offer out of bounds')
  if (version === '1.0') return { beatEveryMs: 0, silenceMsMax: 0, header: undefined }
  const [sendsEveryMs, wantsEveryMs] = parseHeartBeat(header ?? '0,0')
  const asksFor = sendsEveryMs > HEART_BEAT_MS_MAX ? 0 : offerMs
  const periodMs = sendsEveryMs === 0 || asksFor === 0 ? 0 : Math.max(sendsEveryMs, asksFor)
  return {
    beatEveryMs: wantsEveryMs === 0 ? 0 : Math.min(Math.max(wantsEveryMs, offerMs), HEART_BEAT_MS_MAX),
    silenceMsMax: periodMs === 0 ? 0 : periodMs * SILENT_PERIODS_MAX + SILENCE_GRACE_MS,
    header: `${offerMs},${asksFor}`,
  }
}

/** When a beat is due, in the clock of `sentAtMs`, the last time anything was sent; Infinity for never. */
export function beatDueAtMs(heartBeat: HeartBeat, sentAtMs: number): number {
  return heartBeat.beatEveryMs === 0 ? Infinity : sentAtMs + heartBeat.beatEveryMs
}

/** When the peer counts as gone, in the clock of `heardAtMs`, the last time any octet of it came; Infinity for never. */
export function silentAtMs(heartBeat: HeartBeat, heardAtMs: number): number {
  return heartBeat.silenceMsMax === 0 ? Infinity : heardAtMs + heartBeat.silenceMsMax
}

/** The only beat there is: a single LF. Shared by all senders and never written to. */
export const BEAT: Uint8Array = Uint8Array.of(0x0a)

function parseHeartBeat(header: string): [number, number] {
  const match = HEART_BEAT.exec(header)
  if (match === null) throw new FrameRefusal('heart_beat_invalid', 'heart-beat is not two numbers')
  return [Number(match[1]), Number(match[2])]
}

/** Nine digits are eleven days; above that no number is meant. */
const HEART_BEAT = /^(0|[1-9][0-9]{0,8}), ?(0|[1-9][0-9]{0,8})$/
/** Between stompjs (2) and Spring (3); the second is for a timer that runs late on either side. */
const SILENT_PERIODS_MAX = 2.5
const SILENCE_GRACE_MS = 1_000
