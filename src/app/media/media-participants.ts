/** The members who send into the room, as the app sees them. Tells each change once. */

import type { FrameFailure } from './frame-cryptor.ts'
import type { PublishedStream, PublisherData } from './janus-session.ts'
import type { Quality } from './link-quality.ts'
import type { Picture, Pictures } from './pictures.ts'
import { parseDescription, STREAMS, type StreamName } from './publisher.ts'
import type { Subscriber } from './subscriber.ts'

export interface RemoteStream {
  readonly track: MediaStreamTrack
  /** As the member says it. */
  readonly isOn: boolean
  /** The gateway does not send the picture now: the app does not show it, or the line does not carry it. */
  readonly isPaused: boolean
}

export interface MediaParticipant {
  /** The gateway's name for this device's feed; each reconnection gives a new one. */
  readonly feed: string
  /** Whose the server says the feed is. Undefined for one that it does not know, or not yet: show no name with it. */
  readonly userId: string | undefined
  readonly microphone?: RemoteStream
  readonly camera?: RemoteStream
  readonly screen?: RemoteStream
  /** How well their sound and picture get here: lost when nothing comes for some seconds. */
  readonly quality: Quality
  /** Why frames can't be opened, ten in a row. */
  readonly undecryptable?: FrameFailure
}

export class MediaParticipants {
  /** Whose each feed is, by user id: never the gateway's word. */
  userOfFeed: ReadonlyMap<string, string> = new Map()
  /** Why frames of a track can't be opened. */
  readonly undecryptable = new Map<string, FrameFailure>()
  readonly #pictures: Pictures
  readonly #tell: (change: 'participant' | 'gone', participant: MediaParticipant) => void
  readonly #qualityOf: (feed: string) => Quality
  #shown: ReadonlyMap<string, MediaParticipant> = new Map()

  /** `tell` hears of each who has come, has changed, or is gone. */
  constructor(
    tell: (change: 'participant' | 'gone', participant: MediaParticipant) => void,
    qualityOf: (feed: string) => Quality,
    pictures: Pictures,
  ) {
    this.#pictures = pictures
    this.#tell = tell
    this.#qualityOf = qualityOf
  }

  get all(): readonly MediaParticipant[] {
    return [...this.#shown.values()]
  }

  /** Reports changes, now that these publish and the subscriber has these tracks. */
  show(publishers: ReadonlyMap<string, PublisherData>, subscriber: Subscriber | undefined): void {
    const before = this.#shown
    const now = [...publishers].map(([feed, publisher]) => this.#participantOf(feed, publisher, subscriber))
    this.#shown = new Map(now.map(participant => [participant.feed, participant]))
    for (const participant of now) {
      if (!isSame(before.get(participant.feed), participant)) this.#tell('participant', participant)
    }
    for (const [feed, participant] of before) if (!this.#shown.has(feed)) this.#tell('gone', participant)
  }

  #participantOf(
    feed: string,
    { streams = [] }: PublisherData,
    subscriber: Subscriber | undefined,
  ): MediaParticipant {
    const remote = streams.flatMap(stream => {
      const { name, isOn } = streamOf(stream)
      const track = subscriber?.track(feed, name)
      const isPaused = this.#pictures.isPaused(feed, name)
      return track === undefined ? [] : [[name, { track, isOn, isPaused }] as const]
    })
    const failing = [...(subscriber?.tracks ?? [])].find(
      ([track, place]) =>
        place.feed === feed && this.undecryptable.has(track) && !this.#pictures.isPaused(feed, place.name),
    )
    return {
      feed,
      userId: this.userOfFeed.get(feed),
      ...Object.fromEntries(remote),
      quality: this.#qualityOf(feed),
      ...(failing && { undecryptable: this.undecryptable.get(failing[0])! }),
    }
  }
}

function isSame(one: MediaParticipant | undefined, other: MediaParticipant): boolean {
  const isSameStream = (name: StreamName) =>
    (['track', 'isOn', 'isPaused'] as const).every(what => one?.[name]?.[what] === other[name]?.[what])
  const isSamePerson =
    one?.userId === other.userId &&
    one?.undecryptable === other.undecryptable &&
    one?.quality === other.quality
  return one !== undefined && isSamePerson && STREAMS.every(isSameStream)
}

/** What the members send that can be seen. */
export function picturesOf(publishers: ReadonlyMap<string, PublisherData>): readonly Picture[] {
  return [...publishers].flatMap(([feed, { streams = [] }]) =>
    streams.filter(({ type }) => type === 'video').map(stream => ({ feed, ...streamOf(stream) })),
  )
}

function streamOf({ type, description }: PublishedStream): Omit<Picture, 'feed'> {
  return parseDescription(description) ?? { name: type === 'audio' ? 'microphone' : 'camera', isOn: true }
}
