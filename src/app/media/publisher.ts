/**
 * This device's own sound and picture on their way to the gateway. Microphone, camera and screen have their places from the
 * start, so that switching one on or off negotiates nothing anew.
 */

import type { FrameWorker } from './frame-worker.ts'
import type { JanusHandle, Jsep } from './janus-session.ts'

export type StreamName = 'microphone' | 'camera' | 'screen'

export type VideoCodec = 'vp8' | 'h264'

/** One connection to the gateway, which its handle negotiates; all that it carries passes the worker. */
export interface Peer {
  readonly handle: JanusHandle
  readonly connection: RTCPeerConnection
  readonly frames: FrameWorker
}

export class Publisher {
  readonly #peer: Peer
  readonly #tracks: ReadonlyMap<StreamName, MediaStreamTrack>
  readonly #senders: ReadonlyMap<StreamName, RTCRtpSender>

  /** Sends the tracks that are on. The camera can go in two sizes if `simulcast`, with VP8. */
  constructor(
    peer: Peer,
    tracks: ReadonlyMap<StreamName, MediaStreamTrack>,
    codec: VideoCodec,
    simulcast: boolean,
  ) {
    this.#peer = peer
    this.#tracks = tracks
    const layers = simulcast && codec === 'vp8' ? layersOf(false) : []
    this.#senders = new Map(STREAMS.map(name => [name, this.#addSender(name, codec, layers)]))
  }

  async publish(): Promise<void> {
    const { handle, connection } = this.#peer
    for (const [name, track] of this.#tracks) await this.#senders.get(name)?.replaceTrack(track)
    await connection.setLocalDescription(await connection.createOffer())
    const { sdp = '' } = connection.localDescription!
    const publish = { request: 'publish', ...this.#descriptions() }
    const { jsep } = await handle.message(publish, { type: 'offer', sdp: withoutLoudness(sdp), e2ee: true })
    if (jsep !== undefined) await connection.setRemoteDescription(jsep)
  }

  /** Sends this track instead, or nothing. */
  async replace(name: StreamName, track: MediaStreamTrack | undefined): Promise<void> {
    await this.#senders.get(name)?.replaceTrack(track ?? null)
  }

  /** Whether the camera goes in two sizes now: nothing is negotiated for it. */
  async sendSmall(isOn: boolean): Promise<void> {
    const sender = this.#senders.get('camera')!
    const parameters = sender.getParameters()
    if (parameters.encodings[1] === undefined || parameters.encodings[1].active === isOn) return
    for (const [at, layer] of layersOf(isOn).entries()) Object.assign(parameters.encodings[at]!, layer)
    await sender.setParameters(parameters)
  }

  /** Tells the other members which streams are on. */
  async describe(): Promise<void> {
    await this.#peer.handle.message({ request: 'configure', ...this.#descriptions() })
  }

  /** Lays the transform anew on a stream from which no frame has come to the worker. */
  mend(name: StreamName): void {
    const sender = this.#senders.get(name)
    if (sender?.track?.readyState === 'live') this.#attach(name, sender)
  }

  /** Loudness of the microphone, 0 to 1. */
  async level(): Promise<number> {
    for (const report of (await this.#senders.get('microphone')!.getStats()).values()) {
      if (report.type === 'media-source') return report.audioLevel ?? 0
    }
    return 0
  }

  close(): void {
    this.#peer.connection.close()
  }

  #addSender(name: StreamName, codec: VideoCodec, layers: RTCRtpEncodingParameters[]): RTCRtpSender {
    const { connection, frames } = this.#peer
    const kind = name === 'microphone' ? 'audio' : 'video'
    const sendEncodings = name === 'camera' ? layers : []
    const transceiver = connection.addTransceiver(kind, { direction: 'sendonly', sendEncodings })
    if (kind === 'video') transceiver.setCodecPreferences(codecsFor(codec))
    frames.startTrack(sendingTrack(name), kind === 'audio' ? 'opus' : codec)
    this.#attach(name, transceiver.sender)
    return transceiver.sender
  }

  #attach(name: StreamName, sender: RTCRtpSender): void {
    this.#peer.frames.attach(sender, { direction: 'send', track: sendingTrack(name) })
  }

  #descriptions() {
    const isOn = (name: StreamName) => this.#tracks.get(name)?.enabled === true
    const descriptions = STREAMS.map((name, mid) => ({
      mid: String(mid),
      description: isOn(name) ? name : `${name} off`,
    }))
    return { descriptions }
  }
}

export function openPeer(
  handle: JanusHandle,
  frames: FrameWorker,
  configuration: RTCConfiguration,
  onState: (state: RTCPeerConnectionState) => void,
): Peer {
  const connection = new RTCPeerConnection(configuration)
  connection.onicecandidate = ({ candidate }) => handle.trickle(candidate)
  connection.onconnectionstatechange = () => onState(connection.connectionState)
  return { handle, connection, frames }
}

/** Undefined for a description that this SDK does not make. */
export function parseDescription(
  description: string | undefined,
): { readonly name: StreamName; readonly isOn: boolean } | undefined {
  const [first, off] = (description ?? '').split(' ')
  const name = STREAMS.find(each => each === first)
  return name && { name, isOn: off === undefined }
}

/** How the worker names it. */
export function sendingTrack(name: StreamName): string {
  return `send ${name}`
}

/** How loud this device is, second by second, would reach the gateway in the clear (RFC 6464). */
function withoutLoudness(sdp: Jsep['sdp'] & string): string {
  return sdp.replaceAll(/^a=extmap:.*ssrc-audio-level.*\r\n/gm, '')
}

function codecsFor(codec: VideoCodec) {
  const isWanted = ({
    mimeType,
    sdpFmtpLine = '',
  }: {
    readonly mimeType: string
    readonly sdpFmtpLine?: string
  }) => mimeType.toLowerCase() === `video/${codec}` && !sdpFmtpLine.includes('packetization-mode=0')
  const { codecs } = RTCRtpSender.getCapabilities('video')!
  return codecs.filter(each => isWanted(each) || each.mimeType === 'video/rtx')
}

/** The best one first, as the gateway counts. Both together are within what the server lets a device send. */
function layersOf(hasSmall: boolean): (RTCRtpEncodingParameters & { readonly scalabilityMode: string })[] {
  // A receiver whose line is narrow takes a quarter of the pictures.
  const scalabilityMode = 'L1T3'
  return [
    { rid: 'large', maxBitrate: hasSmall ? 400_000 : 500_000, scalabilityMode },
    { rid: 'small', maxBitrate: 100_000, scaleResolutionDownBy: 2, active: hasSmall, scalabilityMode },
  ]
}

export const STREAMS = ['microphone', 'camera', 'screen'] as const
