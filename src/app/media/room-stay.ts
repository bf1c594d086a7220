/** One stay in the room: a session at the gateway, with what this device sends and what it receives. */

import type { FrameWorker } from './frame-worker.ts'
import { type HandleEvent, type JanusHandle, JanusSession } from './janus-session.ts'
import { type LineSample, LinkMeter, type TrackSample } from './link-samples.ts'
import type { Pictures } from './pictures.ts'
import {
  type Coding,
  type OwnSample,
  openPeer,
  Publisher,
  type StreamName,
  sendingTrack,
} from './publisher.ts'
import { Subscriber } from './subscriber.ts'

export interface GatewayMediaOptions extends Coding {
  readonly callId: string
  /** Pictures that come at once, at most: nine unless given. */
  readonly picturesMax?: number
  /** A function is asked before each time it joins. */
  readonly iceServers?: RTCIceServer[] | (() => Promise<RTCIceServer[]>)
  readonly iceTransportPolicy?: RTCIceTransportPolicy
  /** Makes the worker of `@callsign/sdk/app/media-worker`, where the page's policy (CSP) allows none of a Blob URL. */
  readonly newWorker?: () => Worker
}

/** Lets this device into the room. */
export interface Admission {
  readonly url: string
  readonly roomId: number
  readonly roomToken: string
  readonly pluginToken: string
}

export interface StayHost {
  readonly admission: () => Admission
  readonly options: GatewayMediaOptions
  readonly frames: FrameWorker
  /** This device's own. */
  readonly tracks: ReadonlyMap<StreamName, MediaStreamTrack>
  readonly pictures: Pictures
  /** How long a connection may take to come to be. */
  readonly connectingMs: () => number
  readonly onConnected: (isInTime: boolean) => void
  /** Media flows all the time. */
  readonly onSocket: (state: 'lost' | 'back') => void
  /** Events of the publishing handle. */
  readonly onEvent: (event: HandleEvent) => void
  readonly onTracks: () => void
  readonly onLost: (error?: unknown) => void
}

interface Look {
  readonly received: ReadonlyMap<string, TrackSample>
  readonly own: OwnSample
  readonly link: LineSample
}

export class RoomStay {
  readonly session: JanusSession
  readonly publisher: Publisher
  readonly subscriber: Subscriber
  /** How often a transform that the browser had lost was laid anew. */
  mended = 0
  readonly #host: StayHost
  readonly #own: JanusHandle
  readonly #ownId: number | string | undefined
  readonly #meter = new LinkMeter()
  #isMeasuring = false
  #isLooking = false
  #isOver = false
  /** Packets and frames by track, at the last look for lost transforms. */
  readonly #looked = new Map<string, { readonly packets: number; readonly frames: number }>()

  private constructor(
    host: StayHost,
    session: JanusSession,
    own: JanusHandle,
    ownId: number | string | undefined,
    peers: { readonly publisher: Publisher; readonly subscriber: Subscriber },
  ) {
    this.#host = host
    this.session = session
    this.#own = own
    this.#ownId = ownId
    this.publisher = peers.publisher
    this.subscriber = peers.subscriber
  }

  /** Joins the room; publishes and receives nothing yet. The session ends with the signal. */
  static async open(host: StayHost, signal: AbortSignal): Promise<RoomStay> {
    const { callId, iceServers = [], iceTransportPolicy = 'all' } = host.options
    const servers = typeof iceServers === 'function' ? await iceServers() : iceServers
    signal.throwIfAborted()
    const configuration: RTCConfiguration = {
      iceServers: servers,
      iceTransportPolicy,
      bundlePolicy: 'max-bundle',
    }
    const { roomId, roomToken } = host.admission()
    const session = new JanusSession(host.admission(), host.onSocket, host.onLost)
    signal.addEventListener('abort', () => session.destroy())
    // Else the other members would see a ghost for as long as a lost session is kept.
    globalThis.addEventListener('pagehide', () => session.destroy(), { signal })
    try {
      await session.open()
      const own = await session.attach(callId, host.onEvent)
      // A random label: the gateway learns no names.
      const display = crypto.randomUUID()
      const join = { request: 'join', ptype: 'publisher', room: roomId, token: roomToken, display }
      const { data } = await own.message(join)
      const handle = await session.attach(callId, event => subscriber.onEvent(event))
      const openOn = (handle: JanusHandle) =>
        openPeer(handle, host.frames, configuration, watchConnection(host))
      const subscriber: Subscriber = new Subscriber(openOn(handle), {
        join: () => ({ room: roomId, token: host.admission().roomToken, private_id: data.private_id }),
        wanted: (feed, name) => host.pictures.wanted(feed, name),
        onTracks: host.onTracks,
        onError: host.onLost,
      })
      const publisher = new Publisher(openOn(own), host.tracks, host.options)
      return new RoomStay(host, session, own, data.id, { publisher, subscriber })
    } catch (error) {
      session.destroy()
      throw error
    }
  }

  /** The other members' feeds, of those who send. */
  async feeds(): Promise<readonly string[]> {
    const { data } = await this.#own.message({
      request: 'listparticipants',
      room: this.#host.admission().roomId,
    })
    const sending = (data.participants ?? []).filter(one => one.publisher && one.id !== this.#ownId)
    return sending.map(({ id }) => String(id))
  }

  /** Chromium loses a transform now and then: its frames come neither here nor to the other side. */
  async mendTransforms(): Promise<void> {
    const { frames, tracks } = this.#host
    // A look that takes longer than the pause goes on alone: a transform that is laid twice in a row may be lost again.
    if (this.#isLooking || this.mended >= MENDED_MAX) return
    this.#isLooking = true
    const counts = await frames.counts()
    const received = await this.subscriber.received()
    this.#isLooking = false
    if (this.#isOver) return
    for (const name of tracks.keys()) {
      if (counts.get(sendingTrack(name))?.frames !== 0) continue
      if (this.publisher.mend(name)) this.mended++
    }
    const moving = new Set<string>()
    for (const [track, { packets }] of received) {
      const frames = counts.get(track)?.frames ?? 0
      const before = this.#looked.get(track) ?? { packets: 0, frames: 0 }
      this.#looked.set(track, { packets, frames })
      if (packets > before.packets) moving.add(track)
      if (packets - before.packets < PACKETS_MIN || frames !== before.frames) continue
      this.mended++
      this.subscriber.mend(track)
    }
    this.subscriber.askAgain(moving)
  }

  /** Reads all statistics. Undefined while an earlier call, slow on a busy device, is still running. */
  async look(): Promise<Look | undefined> {
    if (this.#isMeasuring) return undefined
    this.#isMeasuring = true
    const [received, own, counts] = await Promise.all([
      this.subscriber.received(),
      this.publisher.sample(),
      this.#host.frames.counts(),
    ]).finally(() => {
      this.#isMeasuring = false
    })
    const link = this.#meter.take(received, track => counts.get(track)?.delay.ms ?? 0, performance.now())
    return { received, own, link }
  }

  close(): void {
    this.#isOver = true
    this.session.destroy()
    this.publisher.close()
    this.subscriber.close()
  }
}

/** Watches one connection. */
function watchConnection({
  connectingMs,
  onConnected,
  onLost,
}: StayHost): (state: RTCPeerConnectionState) => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  return state => {
    clearTimeout(timer)
    if (state === 'failed') onLost()
    if (state === 'disconnected') timer = setTimeout(onLost, DISCONNECTED_MS)
    if (state === 'connected') onConnected(true)
    if (state === 'connecting') {
      timer = setTimeout(() => {
        onConnected(false)
        onLost()
      }, connectingMs())
    }
  }
}

/** A connection that has been away for so long is made anew. */
const DISCONNECTED_MS = 4_000
/** Without a frame among so many a track's transform is lost. */
const PACKETS_MIN = 20
/** In one stay. */
const MENDED_MAX = 20
