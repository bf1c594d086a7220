/** Frames and loudness of a call's media, as counted here: what the gateway says of them is not asked. */

import type { FrameFailure } from './frame-cryptor.ts'
import type { Counts } from './frame-worker.ts'
import { type Publisher, STREAMS, type StreamName, sendingTrack } from './publisher.ts'
import type { Subscriber } from './subscriber.ts'
import type { TrackCounts } from './worker.ts'

export interface ParticipantStatistics {
  /** Frames that were opened, by stream. */
  readonly opened: Readonly<Partial<Record<StreamName, number>>>
  /** Frames that were not, by reason. */
  readonly failed: Readonly<Partial<Record<FrameFailure, number>>>
  /** Loudness, 0 to 1. */
  readonly level: number
}

export interface MediaStatistics {
  readonly own: { readonly sealed: number; readonly notSealed: number; readonly level: number }
  /** By feed. */
  readonly participants: ReadonlyMap<string, ParticipantStatistics>
}

/** The worker's counts, with loudness while this device is in the room. */
export async function readStatistics(
  counts: Counts,
  stay: { readonly publisher: Publisher; readonly subscriber: Subscriber } | undefined,
): Promise<MediaStatistics> {
  const received = (await stay?.subscriber.received()) ?? new Map()
  const own = STREAMS.map(name => counts.get(sendingTrack(name)))
  const participants = new Map<string, ParticipantStatistics>()
  for (const [track, { feed, name }] of stay?.subscriber.tracks ?? []) {
    const before = participants.get(feed)
    const level = name === 'microphone' ? (received.get(track)?.level ?? 0) : (before?.level ?? 0)
    participants.set(feed, withCounts(before, name, counts.get(track), level))
  }
  return {
    own: {
      sealed: own.reduce((sum, one) => sum + (one?.passed ?? 0), 0),
      notSealed: own.reduce((sum, one) => sum + (one?.failed['not-sealed'] ?? 0), 0),
      level: (await stay?.publisher.sample())?.level ?? 0,
    },
    participants,
  }
}

function withCounts(
  before: ParticipantStatistics | undefined,
  name: StreamName,
  counts: TrackCounts | undefined,
  level: number,
): ParticipantStatistics {
  const failed: Partial<Record<string, number>> = { ...before?.failed }
  for (const [reason, count] of Object.entries(counts?.failed ?? {})) {
    failed[reason] = (failed[reason] ?? 0) + count
  }
  return { opened: { ...before?.opened, [name]: counts?.passed ?? 0 }, failed, level }
}
