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
  readonly close: () => void
}

export interface Coding {
  /** The codec of this device's picture: VP8 unless given. */
  readonly codec?: VideoCodec
  /**
   * Whether the camera goes in two sizes, with VP8, so that each member gets the one that their tile and their line take: from three
   * people on unless given. The large one then has 400 kbit/s.
   */
  readonly simulcast?: boolean
  /**
   * False: silence takes fewer bytes, and the size of each encrypted packet tells the gateway and the networks on the way when this
   * device's user speaks. True unless given.
   */
  readonly constantBitrate?: boolean
}

export interface OwnSample {
  /** Loudness of the microphone, 0 to 1. */
  readonly level: number
  /** As the gateway reports it (RFC 3550, section 6.4): lost packets, or a long way. */
  readonly isBad: boolean
  /** How often it has reported. */
  readonly reports: number
  /** Then it reports. */
  readonly isSending: boolean
  readonly state: RTCPeerConnectionState
}

export class Publisher {
  readonly #peer: Peer
  readonly #tracks: ReadonlyMap<StreamName, MediaStreamTrack>
  readonly #senders: ReadonlyMap<StreamName, RTCRtpSender>
  readonly #isConstant: boolean

  /** Sends the tracks that are on. The camera can go in two sizes if `simulcast`, with VP8. */
  constructor(
    peer: Peer,
    tracks: ReadonlyMap<StreamName, MediaStreamTrack>,
    { codec = 'vp8', simulcast = true, constantBitrate = true }: Coding,
  ) {
    this.#peer = peer
    this.#tracks = tracks
    this.#isConstant = constantBitrate
    const layers = simulcast && codec === 'vp8' ? layersOf(false) : []
    this.#senders = new Map(STREAMS.map(name => [name, this.#addSender(name, codec, layers)]))
  }

  async publish(): Promise<void> {
    const { handle, connection } = this.#peer
    for (const name of STREAMS) await this.replace(name)
    await connection.setLocalDescription(await connection.createOffer())
    const { sdp = '' } = connection.localDescription!
    const publish = { request: 'publish', ...this.#descriptions() }
    const { jsep } = await handle.message(publish, { type: 'offer', sdp: withoutLoudness(sdp), e2ee: true })
    if (jsep === undefined) return
    await connection.setRemoteDescription({ ...jsep, sdp: withSoundCoding(jsep.sdp ?? '', this.#isConstant) })
  }

  /** Sends the track that is there now. Without one, or with one that is not enabled, not a packet is sent. */
  async replace(name: StreamName): Promise<void> {
    await this.#senders.get(name)?.replaceTrack(this.#isOn(name) ? this.#tracks.get(name)! : null)
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

  /** Lays the transform anew on a stream from which no frame has come to the worker. Gives whether frames are to come. */
  mend(name: StreamName): boolean {
    const sender = this.#senders.get(name)
    if (sender?.track?.readyState !== 'live') return false
    this.#attach(name, sender)
    return true
  }

  async sample(): Promise<OwnSample> {
    const { connection } = this.#peer
    const isSending = this.#isOn('microphone') || this.#isOn('camera')
    const sample = { level: 0, isBad: false, reports: 0, isSending, state: connection.connectionState }
    for (const report of (await connection.getStats()).values()) {
      if (report.audioLevel !== undefined) sample.level = report.audioLevel
      if (report.fractionLost > LOST_MAX || report.roundTripTime > ROUND_TRIP_MAX_S) sample.isBad = true
      sample.reports += report.roundTripTimeMeasurements ?? 0
    }
    return sample
  }

  close(): void {
    this.#peer.close()
  }

  #addSender(name: StreamName, codec: VideoCodec, layers: RTCRtpEncodingParameters[]): RTCRtpSender {
    const { connection, frames } = this.#peer
    const kind = name === 'microphone' ? 'audio' : 'video'
    const sendEncodings = name === 'camera' ? layers : name === 'screen' ? [SCREEN] : []
    const transceiver = connection.addTransceiver(kind, { direction: 'sendonly', sendEncodings })
    if (kind === 'video') transceiver.setCodecPreferences(codecsFor(codec))
    frames.startTrack(sendingTrack(name), kind === 'audio' ? 'opus' : codec)
    this.#attach(name, transceiver.sender)
    return transceiver.sender
  }

  #attach(name: StreamName, sender: RTCRtpSender): void {
    this.#peer.frames.attach(sender, { direction: 'send', track: sendingTrack(name) })
  }

  #isOn(name: StreamName): boolean {
    return this.#tracks.get(name)?.enabled === true
  }

  #descriptions() {
    const descriptions = STREAMS.map((name, mid) => ({
      mid: String(mid),
      description: this.#isOn(name) ? name : `${name} off`,
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
  const close = () => {
    connection.close()
    // The browser may keep a closed connection for long.
    connection.onicecandidate = connection.onconnectionstatechange = null
    // It makes no event: a wait for another state ends here.
    onState('closed')
  }
  return { handle, connection, frames, close }
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

/**
 * What this device's encoder does is the receiver's to ask for, which is the gateway's answer: packets of 40 ms, which have half the
 * headers of the usual ones, and `isConstant` ones of one size, in speech and in silence (RFC 7587, section 6.1).
 */
export function withSoundCoding(sdp: string, isConstant: boolean): string {
  const [rtpmap = '', type] = /^a=rtpmap:(\d+) opus.*/im.exec(sdp) ?? []
  if (type === undefined) return sdp
  const long = sdp.replace(rtpmap, `${rtpmap}\r\na=ptime:40`)
  if (!isConstant) return long
  const [format] = new RegExp(`^a=fmtp:${type} .*`, 'm').exec(long) ?? []
  if (format !== undefined) return long.replace(format, `${format.replace('usedtx=1', 'usedtx=0')};cbr=1`)
  return long.replace(rtpmap, `${rtpmap}\r\na=fmtp:${type} cbr=1`)
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
  // Receivers on a narrow line take only every fourth frame.
  const scalabilityMode = 'L1T3'
  return [
    { rid: 'large', maxBitrate: hasSmall ? 400_000 : 500_000, scalabilityMode },
    { rid: 'small', maxBitrate: 100_000, scaleResolutionDownBy: 2, active: hasSmall, scalabilityMode },
  ]
}

/** The screen gets more of a narrow line than the camera: its first picture is a large one. */
const SCREEN: RTCRtpEncodingParameters = { priority: 'high' }
export const STREAMS = ['microphone', 'camera', 'screen'] as const
const LOST_MAX = 0.05
const ROUND_TRIP_MAX_S = 0.8
