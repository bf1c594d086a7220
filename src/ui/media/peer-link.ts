/**
 * One WebRTC connection to one other device, negotiated as W3C webrtc, section 10.7 ("The perfect negotiation example")
 * has it: either side may offer at any time, and of two offers at once the polite one gives way.
 */

import { readSamples, type TrackSample } from '../../app/media/link-samples.ts'
import type { StreamName } from '../../app/media/media.ts'
import type { MediaPeer } from './media-view.ts'

export interface Description {
  readonly kind: 'description'
  readonly description: RTCSessionDescriptionInit
}

export interface Candidate {
  readonly kind: 'candidate'
  readonly candidate: RTCIceCandidateInit
}

export type LinkSignal = Description | Candidate

/** One of a device's streams: the other side hears of it by the connection's data channel. */
interface StreamDescription {
  readonly name: StreamName
  readonly mid: string
  readonly isOn: boolean
}

/** One look at how the link does. */
export interface LinkLook {
  readonly received: readonly (TrackSample & { readonly name: StreamName })[]
  /** Loudness of the own microphone, 0 to 1. */
  readonly level: number
  /** The other side has lost packets of this one's, or is far. */
  readonly isBad: boolean
}

export interface LinkStart {
  readonly isPolite: boolean
  readonly iceServers: RTCIceServer[]
  /** The own tracks that there are. */
  readonly tracks: ReadonlyMap<StreamName, MediaStreamTrack>
  readonly send: (signal: LinkSignal) => void
  /** Something to be seen has changed: its state, or what it receives. */
  readonly onChange: () => void
}

export class PeerLink {
  readonly #connection: RTCPeerConnection
  readonly #options: LinkStart
  readonly #presence: RTCDataChannel
  readonly #senders = new Map<StreamName, RTCRtpSender>()
  #described: readonly StreamDescription[] = []
  /** Sound and the camera's picture. */
  readonly stream = new MediaStream()
  readonly screen = new MediaStream()
  #isOffering = false
  #isIgnoringOffer = false
  #wasConnected = false
  #hasLeft = false
  /** One signal after the other, in the order in which they came. */
  #lastSignal: Promise<void> = Promise.resolve()

  constructor(options: LinkStart) {
    this.#options = options
    const connection = new RTCPeerConnection({ iceServers: options.iceServers })
    this.#connection = connection
    connection.onnegotiationneeded = () => void this.#offer()
    connection.onicecandidate = ({ candidate }) => {
      if (candidate !== null) options.send({ kind: 'candidate', candidate: candidate.toJSON() })
    }
    connection.ontrack = () => this.#receive()
    connection.onsignalingstatechange = () => {
      if (connection.signalingState !== 'stable') return
      this.describe()
      this.#receive()
    }
    connection.onconnectionstatechange = () => {
      if (connection.connectionState === 'connected') this.#wasConnected = true
      if (connection.connectionState === 'failed' && !this.#hasLeft) connection.restartIce()
      options.onChange()
    }
    // Two devices without camera and microphone connect by this, so that one sees that they can. It
    // closes with the other page, long before silence is noticed.
    this.#presence = connection.createDataChannel('presence', { negotiated: true, id: 0 })
    this.#presence.onopen = () => this.describe()
    this.#presence.onmessage = ({ data }) => {
      this.#described = descriptionsIn(data)
      this.#receive()
    }
    this.#presence.onclose = () => {
      this.#hasLeft = true
      options.onChange()
    }
    for (const [name, track] of options.tracks) this.put(name, track)
  }

  get state(): MediaPeer['state'] {
    if (this.#hasLeft) return 'gone'
    switch (this.#connection.connectionState) {
      case 'connected':
        return 'connected'
      case 'disconnected':
        return 'interrupted'
      case 'failed':
        return this.#wasConnected ? 'gone' : 'unreachable'
      case 'closed':
        return 'gone'
      default:
        return 'connecting'
    }
  }

  /** Whether the stream comes, and its device says that it is on. */
  has(name: StreamName): boolean {
    const stream = name === 'screen' ? this.screen : this.stream
    const described = this.#described.find(one => one.name === name)
    const kind = name === 'microphone' ? 'audio' : 'video'
    return described?.isOn === true && stream.getTracks().some(track => track.kind === kind)
  }

  /** Whether its device says that its microphone is off. */
  get isMuted(): boolean {
    return this.#described.some(({ name, isOn }) => name === 'microphone' && !isOn)
  }

  /** Sends the track, or nothing without one. Only a stream's first track negotiates anew. */
  put(name: StreamName, track: MediaStreamTrack | undefined): void {
    const sender = this.#senders.get(name)
    if (sender !== undefined) void sender.replaceTrack(track ?? null).catch(() => undefined)
    else if (track !== undefined) this.#senders.set(name, this.#connection.addTrack(track))
    this.describe(new Map([[name, track]]))
  }

  /** Tells the other device which streams there are. A track that was replaced just now is not the sender's yet. */
  describe(now: ReadonlyMap<StreamName, MediaStreamTrack | undefined> = new Map()): void {
    if (this.#presence.readyState !== 'open') return
    const transceivers = this.#connection.getTransceivers()
    const descriptions = [...this.#senders].map(([name, sender]) => {
      const track = now.has(name) ? now.get(name) : sender.track
      const mid = transceivers.find(one => one.sender === sender)?.mid
      return { name, mid, isOn: track?.enabled === true }
    })
    this.#presence.send(JSON.stringify(descriptions))
  }

  async look(): Promise<LinkLook> {
    const [samples, reports] = await Promise.all([readSamples(this.#connection), this.#connection.getStats()])
    const received = this.#described.flatMap(({ name, mid, isOn }) => {
      const sample = samples.get(mid)
      return isOn && sample !== undefined ? [{ ...sample, name }] : []
    })
    const all = [...reports.values()]
    return {
      received,
      level: all.find(one => one.type === 'media-source' && one.kind === 'audio')?.audioLevel ?? 0,
      isBad: all.some(one => one.fractionLost > LOST_MAX || one.roundTripTime > ROUND_TRIP_MAX_S),
    }
  }

  onSignal(signal: LinkSignal): void {
    this.#lastSignal = this.#lastSignal
      .then(() => this.#onSignal(signal))
      .catch(() => {
        // The connection has been closed, or goes to "failed", which is shown.
      })
  }

  close(): void {
    this.#connection.close()
  }

  async #offer(): Promise<void> {
    try {
      this.#isOffering = true
      await this.#connection.setLocalDescription()
      this.#sendDescription()
    } catch {
      // It has been closed.
    } finally {
      this.#isOffering = false
    }
  }

  async #onSignal(signal: LinkSignal): Promise<void> {
    if (signal.kind === 'candidate') return this.#onCandidate(signal)
    const { description } = signal
    const isCollision =
      description.type === 'offer' && (this.#isOffering || this.#connection.signalingState !== 'stable')
    this.#isIgnoringOffer = !this.#options.isPolite && isCollision
    if (this.#isIgnoringOffer) return
    await this.#connection.setRemoteDescription(description)
    if (description.type !== 'offer') return
    await this.#connection.setLocalDescription()
    this.#sendDescription()
  }

  async #onCandidate({ candidate }: Candidate): Promise<void> {
    try {
      await this.#connection.addIceCandidate(candidate)
    } catch (error) {
      // Candidates of an offer that was ignored belong to nothing.
      if (!this.#isIgnoringOffer) throw error
    }
  }

  #sendDescription(): void {
    const { localDescription } = this.#connection
    if (localDescription !== null) {
      this.#options.send({ kind: 'description', description: localDescription.toJSON() })
    }
  }

  /** Sorts the received tracks into the two streams. */
  #receive(): void {
    const tracksOf = (names: readonly StreamName[]) =>
      this.#connection.getTransceivers().flatMap(({ mid, receiver, currentDirection }) => {
        const isMeant = this.#described.some(one => one.mid === mid && names.includes(one.name))
        return isMeant && RECEIVING.has(currentDirection ?? '') ? [receiver.track] : []
      })
    fill(this.stream, tracksOf(['microphone', 'camera']))
    fill(this.screen, tracksOf(['screen']))
    this.#options.onChange()
  }
}

/** Gives the stream these tracks and no others. */
export function fill(stream: MediaStream, tracks: readonly MediaStreamTrack[]): void {
  for (const track of stream.getTracks()) if (!tracks.includes(track)) stream.removeTrack(track)
  for (const track of tracks) stream.addTrack(track)
}

function descriptionsIn(text: unknown): readonly StreamDescription[] {
  const said: unknown = JSON.parse(String(text))
  return Array.isArray(said) ? said.filter(one => typeof one?.mid === 'string') : []
}

const RECEIVING: ReadonlySet<string> = new Set(['sendrecv', 'recvonly'])
const LOST_MAX = 0.05
const ROUND_TRIP_MAX_S = 0.8
