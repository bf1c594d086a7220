/**
 * The other members' sound and picture: one handle and one connection for all. The gateway makes every offer; offers are
 * answered in the order in which they come.
 */

import { hasCode } from '../callsign-error.ts'
import type { HandleEvent, PublishedStream, PublisherData, SubscribedStream } from './janus-session.ts'
import { readSamples, type TrackSample } from './link-samples.ts'
import type { FrameFormat } from './media-frame.ts'
import { type Wanted, WHOLE } from './pictures.ts'
import { type Peer, parseDescription, type StreamName } from './publisher.ts'

export interface SubscriberDeps {
  /** Members for the request that joins. */
  readonly join: () => object
  readonly wanted: (feed: string, name: StreamName) => Wanted
  readonly onTracks: () => void
  readonly onError: (error: unknown) => void
}

/** One place of the connection, and whose frames come by it now. */
interface Place {
  readonly track: MediaStreamTrack
  readonly receiver: RTCRtpReceiver
  readonly feed: string
  readonly name: StreamName
}

interface StreamOfFeed {
  readonly feed: number
  readonly mid: string
}

export class Subscriber {
  readonly #peer: Peer
  readonly #deps: SubscriberDeps
  #publishers: ReadonlyMap<string, PublisherData> = new Map()
  /** By mid, which the gateway uses again for another feed. */
  readonly #places = new Map<string, Place>()
  /** The size that the gateway passes on, by mid: 0 is small. It says so of cameras that come in two. */
  readonly #substreams = new Map<string, number>()
  /** How often the gateway may be asked again, by mid. */
  readonly #asksLeft = new Map<string, number>()
  /** The last request to the gateway, by mid. Without one it forwards everything. */
  readonly #asked = new Map<string, string>()
  readonly #attached = new WeakSet<RTCRtpReceiver>()
  /** Streams of publishers, as the gateway has said last. */
  #subscribed: ReadonlyMap<string, StreamOfFeed> = new Map()
  #hasJoined = false
  #updates: Promise<void> = Promise.resolve()
  #answers: Promise<void> = Promise.resolve()

  constructor(peer: Peer, deps: SubscriberDeps) {
    this.#peer = peer
    this.#deps = deps
  }

  /** Receives all that these publish, and nothing else. */
  follow(publishers: ReadonlyMap<string, PublisherData>): void {
    this.#publishers = publishers
    // One at a time: a second one during an answer would break the negotiation.
    this.#updates = this.#updates
      .then(() => this.#update())
      .catch(error => {
        // A publisher has left, and its event is under way.
        if (!hasCode(error, 'MEDIA_REFUSED') || error.members.status !== NO_SUCH_FEED)
          this.#deps.onError(error)
      })
  }

  /** Hand it all events of the handle. */
  onEvent({ data, jsep }: HandleEvent): void {
    if (data.mid !== undefined && data.substream !== undefined) this.#substreams.set(data.mid, data.substream)
    if (jsep === undefined) return
    const { streams = [] } = data
    this.#answers = this.#answers
      .then(async () => {
        await this.#peer.connection.setRemoteDescription(jsep)
        this.#place(streams)
        await this.#peer.connection.setLocalDescription()
        const { sdp = '' } = this.#peer.connection.localDescription!
        await this.#peer.handle.message({ request: 'start' }, { type: 'answer', sdp, e2ee: true })
      })
      .catch(this.#deps.onError)
  }

  /** The track of a publisher's stream. */
  track(feed: string, name: StreamName): MediaStreamTrack | undefined {
    return [...this.#places.values()].find(place => place.feed === feed && place.name === name)?.track
  }

  /** Whose stream it is that the worker knows by this name. */
  placeOf(track: string): Pick<Place, 'feed' | 'name'> | undefined {
    return this.#places.get(track)
  }

  /** By the worker's names. */
  get tracks(): ReadonlyMap<string, Pick<Place, 'feed' | 'name'>> {
    return this.#places
  }

  get state(): RTCPeerConnectionState {
    return this.#peer.connection.connectionState
  }

  /** By the worker's names. */
  async received(): Promise<ReadonlyMap<string, TrackSample>> {
    const samples = await readSamples(this.#peer.connection)
    return new Map([...samples].map(([mid, sample]) => [receivingTrack(mid), sample]))
  }

  /** Asks the gateway for the wanted pictures, if the wishes have changed since the last request. */
  ask(): void {
    const streams = [...this.#places].flatMap(([track, { feed, name }]) => {
      const mid = midOf(track)
      if (name === 'microphone') return []
      const wanted = this.#deps.wanted(feed, name)
      const text = JSON.stringify(wanted)
      if ((this.#asked.get(mid) ?? UNASKED) === text) return []
      this.#asked.set(mid, text)
      this.#asksLeft.set(mid, ASKS_MAX)
      return [{ mid, ...wanted }]
    })
    if (streams.length === 0 || !this.#hasJoined) return
    this.#peer.handle.message({ request: 'configure', streams }).catch(this.#deps.onError)
  }

  /**
   * Asks again for what the gateway does not do yet: a wish is lost while the connection is negotiated anew, or with a key frame
   * that the sender leaves out because it has just made one. `moving` are the tracks that packets come by.
   */
  askAgain(moving: ReadonlySet<string>): void {
    for (const [track, { feed, name }] of this.#places) {
      const mid = midOf(track)
      const { send, substream } = this.#deps.wanted(feed, name)
      const passedOn = this.#substreams.get(mid) ?? substream
      const left = this.#asksLeft.get(mid) ?? 0
      const isLost = send ? passedOn !== substream : moving.has(track)
      if (name === 'microphone' || !isLost || left === 0) continue
      this.#asked.set(mid, '')
      this.ask()
      this.#asksLeft.set(mid, left - 1)
    }
  }

  /** Lays the transform anew on a track whose frames do not come to the worker. */
  mend(track: string): void {
    const place = this.#places.get(track)
    if (place !== undefined) this.#peer.frames.attach(place.receiver, { direction: 'receive', track })
  }

  close(): void {
    this.#peer.close()
  }

  async #update(): Promise<void> {
    const { handle } = this.#peer
    const wanted = new Map<string, StreamOfFeed>(
      [...this.#publishers.values()].flatMap(({ id, streams = [] }) =>
        streams.map(({ mid }) => [`${id} ${mid}`, { feed: id, mid }] as const),
      ),
    )
    const held = this.#subscribed
    const subscribe = [...wanted].filter(([name]) => !held.has(name)).map(([, stream]) => stream)
    const unsubscribe = [...held].filter(([name]) => !wanted.has(name)).map(([, stream]) => stream)
    if (!this.#hasJoined) {
      if (subscribe.length === 0) return
      await handle.message({ ...this.#deps.join(), request: 'join', ptype: 'subscriber', streams: subscribe })
      this.#hasJoined = true
    } else if (subscribe.length > 0 || unsubscribe.length > 0) {
      const changes = {
        ...(subscribe.length > 0 && { subscribe }),
        ...(unsubscribe.length > 0 && { unsubscribe }),
      }
      await handle.message({ request: 'update', ...changes })
    }
    await this.#answers
  }

  #place(streams: readonly SubscribedStream[]): void {
    const active = streams.filter(stream => stream.active !== false)
    this.#subscribed = new Map<string, StreamOfFeed>(
      active.flatMap(({ feed_id, feed_mid }) =>
        feed_id === undefined || feed_mid === undefined
          ? []
          : [[`${feed_id} ${feed_mid}`, { feed: feed_id, mid: feed_mid }] as const],
      ),
    )
    const mids = new Set(active.map(({ mid }) => receivingTrack(mid)))
    for (const track of this.#places.keys()) if (!mids.has(track)) this.#places.delete(track)
    for (const mid of this.#substreams.keys())
      if (!mids.has(receivingTrack(mid))) this.#substreams.delete(mid)
    for (const stream of active) this.#placeStream(stream)
    this.#deps.onTracks()
  }

  #placeStream({ mid, type, feed_id, feed_mid }: SubscribedStream): void {
    const receiver = this.#peer.connection
      .getTransceivers()
      .find(transceiver => transceiver.mid === mid)?.receiver
    if (receiver === undefined) return
    const [track, feed] = [receivingTrack(mid), String(feed_id)]
    if (!this.#attached.has(receiver)) {
      this.#attached.add(receiver)
      this.#peer.frames.attach(receiver, { direction: 'receive', track })
    }
    const published = this.#publishers.get(feed)?.streams?.find(stream => stream.mid === feed_mid)
    const name = nameOf(published, type)
    const before = this.#places.get(track)
    if (before?.feed !== feed || before.name !== name) {
      this.#peer.frames.startTrack(track, type === 'audio' ? 'opus' : formatOf(published?.codec))
    }
    this.#places.set(track, { receiver, track: receiver.track, feed, name })
    if (before?.feed === feed) return
    this.#asked.delete(mid)
    if (before !== undefined) this.#substreams.delete(mid)
  }
}

function receivingTrack(mid: string): string {
  return `${RECEIVING}${mid}`
}

function midOf(track: string): string {
  return track.slice(RECEIVING.length)
}

function nameOf(published: PublishedStream | undefined, type: string): StreamName {
  return parseDescription(published?.description)?.name ?? (type === 'audio' ? 'microphone' : 'camera')
}

function formatOf(codec: string | undefined): FrameFormat {
  return codec === 'h264' ? 'h264' : 'vp8'
}

const RECEIVING = 'receive '
const UNASKED = JSON.stringify(WHOLE)
const NO_SUCH_FEED = 428
/** A sender that is short of bandwidth sends one size alone. */
const ASKS_MAX = 5
