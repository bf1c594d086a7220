/** A call by way of LiveKit, by its own SDK: `@callsign/sdk/app/livekit` gives it the call's keys. */

import { ConnectionQuality, type RemoteParticipant, Room, Track } from 'livekit-client'
import type { Call } from '../../app/app.ts'
import { joinLiveKit, liveKitEncryption } from '../../app/livekit/livekit.ts'
import type { Quality, StreamName } from '../../app/media/media.ts'
import type { Carrier } from './carrier.ts'
import type { MediaPeer } from './media-view.ts'
import { fill } from './peer-link.ts'

export class LiveKitRoom implements Carrier {
  readonly problem = undefined
  readonly #call: Call
  readonly #room: Room
  readonly #leave: () => void
  readonly #tracks = new Map<StreamName, MediaStreamTrack>()
  /** LiveKit stops what it is given when it reconnects, so it gets copies. */
  readonly #copies = new Map<StreamName, MediaStreamTrack>()
  readonly #streams = new Map<string, readonly [stream: MediaStream, screen: MediaStream]>()
  #isMuted = false
  #inOrder: Promise<void> = Promise.resolve()

  /** Throws `MEDIA_UNSUPPORTED`. */
  constructor(call: Call, onChange: () => void, worker: Worker) {
    this.#call = call
    this.#room = new Room({ encryption: liveKitEncryption(call, worker) })
    for (const event of EVENTS) this.#room.on(event, onChange)
    this.#room.on('connected', () => {
      for (const name of this.#tracks.keys()) this.#publish(name)
    })
    this.#leave = joinLiveKit(call, this.#room, onChange)
  }

  get peers(): readonly MediaPeer[] {
    return [...this.#room.remoteParticipants.values()].map(one => this.#peerOf(one))
  }

  get quality(): Quality {
    return this.#room.state === 'reconnecting'
      ? 'lost'
      : qualityOf(this.#room.localParticipant.connectionQuality)
  }

  get isSpeaking(): boolean {
    return this.#room.activeSpeakers[0] === this.#room.localParticipant
  }

  send(name: StreamName, track: MediaStreamTrack | undefined): void {
    // A camera's light goes out with its last copy.
    if (track === undefined) this.#copies.get(name)?.stop()
    if (track === undefined) this.#tracks.delete(name)
    else this.#tracks.set(name, track)
    this.#publish(name)
  }

  mute(isMuted: boolean): void {
    this.#isMuted = isMuted
    this.#do(() => this.#muteSent())
  }

  close(): void {
    this.#leave()
    for (const copy of this.#copies.values()) copy.stop()
  }

  #publish(name: StreamName): void {
    this.#do(async () => {
      const { localParticipant, state } = this.#room
      if (state !== 'connected') return
      const before = localParticipant.getTrackPublication(SOURCES[name])?.track
      if (before !== undefined) await localParticipant.unpublishTrack(before, true)
      const copy = this.#tracks.get(name)?.clone()
      this.#copies.get(name)?.stop()
      if (copy === undefined) return void this.#copies.delete(name)
      this.#copies.set(name, copy)
      await localParticipant.publishTrack(copy, { source: SOURCES[name] })
      if (name === 'microphone') await this.#muteSent()
    })
  }

  async #muteSent(): Promise<void> {
    const microphone = this.#room.localParticipant.getTrackPublication(SOURCES.microphone)
    await (this.#isMuted ? microphone?.mute() : microphone?.unmute())
  }

  /** After a lost connection all is published anew. */
  #do(work: () => Promise<void>): void {
    this.#inOrder = this.#inOrder.then(work).catch(() => undefined)
  }

  #peerOf(participant: RemoteParticipant): MediaPeer {
    const { identity, connectionQuality } = participant
    const [microphone, camera, screen] = NAMES.map(name => participant.getTrackPublication(SOURCES[name]))
    const [stream, screenStream] = this.#streams.get(identity) ?? [new MediaStream(), new MediaStream()]
    this.#streams.set(identity, [stream, screenStream])
    const tracksOf = (...all: readonly (typeof microphone)[]) =>
      all.flatMap(one => (one?.track === undefined ? [] : [one.track.mediaStreamTrack]))
    fill(stream, tracksOf(microphone, camera))
    fill(screenStream, tracksOf(screen))
    const quality = qualityOf(connectionQuality)
    return {
      id: identity,
      // The gateway's word is the label alone.
      userId: this.#call.participants.find(one => one.identity === identity)?.userId,
      state: LINKS[quality],
      quality,
      hasStream: stream.getTracks().length > 0,
      hasPicture: camera?.track !== undefined && !camera.isMuted,
      hasScreen: screen?.track !== undefined,
      play: (video, isScreen) => {
        const wanted = isScreen ? screenStream : stream
        if (video.srcObject !== wanted) video.srcObject = wanted
      },
      isMuted: microphone?.isMuted === true,
      isSpeaking: this.#room.activeSpeakers[0] === participant,
    }
  }
}

function qualityOf(quality: ConnectionQuality): Quality {
  if (quality === ConnectionQuality.Lost) return 'lost'
  return quality === ConnectionQuality.Poor ? 'poor' : 'good'
}

const NAMES = ['microphone', 'camera', 'screen'] as const
const SOURCES = {
  microphone: Track.Source.Microphone,
  camera: Track.Source.Camera,
  screen: Track.Source.ScreenShare,
} as const
const LINKS = { good: 'connected', poor: 'weak', lost: 'interrupted' } as const
const EVENTS = [
  'connected',
  'connectionStateChanged',
  'participantConnected',
  'participantDisconnected',
  'trackSubscribed',
  'trackUnsubscribed',
  'trackMuted',
  'trackUnmuted',
  'activeSpeakersChanged',
  'connectionQualityChanged',
] as const
