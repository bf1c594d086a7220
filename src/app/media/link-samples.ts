/** Packets and frames received on a connection, as the browser counts them: the one place that reads its statistics. */

import type { LinkSample } from './adaptation.ts'

/** One track's counts, since the connection began. */
export interface TrackSample {
  readonly packets: number
  /** Packets that never came. */
  readonly lost: number
  readonly bytes: number
  /** How often a picture stood still. */
  readonly freezes: number
  /** Samples of sound that were played, and those of them that were made up in place of lost ones, silence not counted. */
  readonly played: number
  readonly concealed: number
  /** Loudness, 0 to 1. */
  readonly level: number
}

/** By the transceiver's mid. */
export async function readSamples(connection: RTCPeerConnection): Promise<ReadonlyMap<string, TrackSample>> {
  const reports = [...(await connection.getStats()).values()]
  return new Map(
    reports
      .filter(({ type }) => type === 'inbound-rtp')
      .map(report => [
        report.mid,
        {
          packets: report.packetsReceived ?? 0,
          lost: report.packetsLost ?? 0,
          bytes: (report.bytesReceived ?? 0) + (report.headerBytesReceived ?? 0),
          freezes: report.freezeCount ?? 0,
          played: report.totalSamplesReceived ?? 0,
          concealed: (report.concealedSamples ?? 0) - (report.silentConcealedSamples ?? 0),
          level: report.audioLevel ?? 0,
        },
      ]),
  )
}

export type LineSample = Omit<LinkSample, 'pictures' | 'hasSmall'>

/** Compares with the time before. */
export class LinkMeter {
  #before: ReadonlyMap<string, TrackSample> = new Map()
  #atMs = 0

  /** `delayOf` a track's frames. */
  take(now: ReadonlyMap<string, TrackSample>, delayOf: (track: string) => number, atMs: number): LineSample {
    const all = { packets: 0, lost: 0, bytes: 0, played: 0, concealed: 0 }
    const sound = { ...all }
    const delays: number[] = []
    for (const [track, sample] of now) {
      const before = this.#before.get(track)
      // The first look at a track has what came before it.
      if (before === undefined) continue
      for (const sum of sample.played > 0 ? [all, sound] : [all])
        for (const name of NAMES) sum[name] += Math.max(0, sample[name] - before[name])
      if (sample.packets > before.packets) delays.push(delayOf(track))
    }
    // A full line keeps all waiting; one alone may have a sender that stumbled.
    const delayMs = Math.min(...(delays.length > 0 ? delays : [0]))
    // A picture that begins anew looks like one that has lost packets.
    const { packets, lost } = sound.packets > 0 && delayMs < WAITING_MS ? sound : all
    const ms = atMs - this.#atMs
    this.#before = now
    this.#atMs = atMs
    return {
      atMs,
      kbits: (all.bytes * 8) / ms,
      soundKbits: (sound.bytes * 8) / ms,
      lost: lost / (packets + lost + FEW_PACKETS),
      concealed: sound.concealed / Math.max(1, sound.played),
      delayMs,
    }
  }
}

/** A single one that is lost among few is no share. */
const FEW_PACKETS = 40
const NAMES = ['packets', 'lost', 'bytes', 'played', 'concealed'] as const
const WAITING_MS = 40
