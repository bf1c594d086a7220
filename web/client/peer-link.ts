/**
 * One WebRTC connection to one other device, negotiated as W3C webrtc, section 10.7 ("The perfect negotiation example")
 * has it: either side may offer at any time, and of two offers at once the polite one gives way.
 */

import type { MediaPeer } from './state.ts'

export interface Description {
  readonly kind: 'description'
  readonly description: RTCSessionDescriptionInit
}

export interface Candidate {
  readonly kind: 'candidate'
  readonly candidate: RTCIceCandidateInit
}

export type LinkSignal = Description | Candidate

export interface PeerLinkOptions {
  readonly isPolite: boolean
  readonly iceServers: RTCIceServer[]
  readonly local: MediaStream | undefined
  readonly send: (signal: LinkSignal) => void
  /** Something to be seen has changed: its state, or what it receives. */
  readonly onChange: () => void
}

export class PeerLink {
  readonly #connection: RTCPeerConnection
  readonly #options: PeerLinkOptions
  readonly stream = new MediaStream()
  #isOffering = false
  #isIgnoringOffer = false
  #wasConnected = false
  #hasLeft = false
  /** One signal after the other, in the order in which they came. */
  #lastSignal: Promise<void> = Promise.resolve()

  constructor(options: PeerLinkOptions) {
    this.#options = options
    const connection = new RTCPeerConnection({ iceServers: options.iceServers })
    this.#connection = connection
    connection.onnegotiationneeded = () => void this.#offer()
    connection.onicecandidate = ({ candidate }) => {
      if (candidate !== null) options.send({ kind: 'candidate', candidate: candidate.toJSON() })
    }
    connection.ontrack = ({ track }) => this.#addTrack(track)
    connection.onconnectionstatechange = () => {
      if (connection.connectionState === 'connected') this.#wasConnected = true
      if (connection.connectionState === 'failed' && !this.#hasLeft) connection.restartIce()
      options.onChange()
    }
    // Two devices without camera and microphone connect by this, so that one sees that they can. It
    // closes with the other page, long before silence is noticed.
    const presence = connection.createDataChannel('presence', { negotiated: true, id: 0 })
    presence.onclose = () => {
      this.#hasLeft = true
      options.onChange()
    }
    if (options.local !== undefined) this.addTracks(options.local)
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

  /** Starts sending one's camera and microphone. */
  addTracks(local: MediaStream): void {
    const sent = new Set(this.#connection.getSenders().map(({ track }) => track))
    for (const track of local.getTracks()) if (!sent.has(track)) this.#connection.addTrack(track, local)
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

  #addTrack(track: MediaStreamTrack): void {
    this.stream.addTrack(track)
    track.onended = () => {
      this.stream.removeTrack(track)
      this.#options.onChange()
    }
    this.#options.onChange()
  }
}
