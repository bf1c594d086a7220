/** A call by way of the server's gateway, which can't open what it carries: `@callsign/sdk/app/media` does the work. */

import type { Call, Callsign } from '../../src/app/app.ts'
import { type CallMedia, joinMedia, type MediaParticipant } from '../../src/app/media/media.ts'
import type { Carrier } from './carrier.ts'
import type { MediaPeer } from './state.ts'

export class Group implements Carrier {
  readonly #media: CallMedia
  readonly #onPeers: (peers: readonly MediaPeer[]) => void
  #speaking: ReadonlySet<string> = new Set()
  readonly #timer: ReturnType<typeof setInterval>

  /** Throws `MEDIA_UNSUPPORTED`. */
  constructor(me: Callsign, call: Call, onPeers: (peers: readonly MediaPeer[]) => void) {
    this.#onPeers = onPeers
    const relay = () => me.relay()
    this.#media = joinMedia(call, { relay, microphone: false, camera: false, newWorker })
    for (const name of ['participant', 'gone', 'state'] as const) this.#media.on(name, () => this.#show())
    // The next attempt follows, and the tiles say that they connect.
    this.#media.on('error', () => {})
    this.#timer = setInterval(() => void this.#listen(), LISTEN_MS)
  }

  send(local: MediaStream): void {
    const [microphone] = local.getAudioTracks()
    const [camera] = local.getVideoTracks()
    if (microphone !== undefined) void this.#media.send('microphone', microphone)
    if (camera !== undefined) void this.#media.send('camera', camera)
  }

  mute(isMuted: boolean): void {
    void this.#media.mute(isMuted)
  }

  coverCamera(camera: MediaStreamTrack | undefined): void {
    void this.#media.send('camera', camera)
  }

  shareScreen(screen: MediaStreamTrack | undefined): void {
    void this.#media.send('screen', screen)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#media.leave()
  }

  /** A person who is loud enough has the ring. */
  async #listen(): Promise<void> {
    const { participants } = await this.#media.statistics()
    const loud = [...participants].filter(([, { level }]) => level > LOUD).map(([feed]) => feed)
    if (loud.length === this.#speaking.size && loud.every(feed => this.#speaking.has(feed))) return
    this.#speaking = new Set(loud)
    this.#show()
  }

  #show(): void {
    this.#onPeers(this.#media.participants.map(one => this.#peerOf(one)))
  }

  #peerOf({ userId, feed, microphone, camera, screen, undecryptable }: MediaParticipant): MediaPeer {
    const isLinked = this.#media.state === 'connected'
    return {
      id: feed,
      userId,
      state: undecryptable !== undefined ? 'undecryptable' : isLinked ? 'connected' : 'interrupted',
      hasStream: microphone !== undefined || camera !== undefined,
      hasPicture: camera?.isOn === true && !camera.isPaused,
      hasScreen: screen?.isOn === true,
      play: (video, isScreen) => {
        if (isScreen) return this.#media.show(feed, 'screen', video)
        this.#media.show(feed, 'microphone', video)
        this.#media.show(feed, 'camera', video)
      },
      isMuted: microphone?.isOn === false,
      isSpeaking: microphone?.isOn === true && this.#speaking.has(feed),
    }
  }
}

const LISTEN_MS = 300
/** Between 0 and 1: speech, not the noise of a room. */
const LOUD = 0.03

/** A file of this server: the policy of its pages allows no worker of a Blob URL. */
function newWorker(): Worker {
  return new Worker(new URL('../../src/app/media/worker.js', import.meta.url), { type: 'module' })
}
