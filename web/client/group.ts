/** A call by way of the server's gateway, which can't open what it carries: `@callsign/sdk/app/media` does the work. */

import { type Call, type Callsign, type CallsignError, hasCode } from '../../src/app/app.ts'
import { type CallMedia, joinMedia, type MediaParticipant } from '../../src/app/media/media.ts'
import type { Carrier } from './carrier.ts'
import type { MediaPeer } from './state.ts'

export class Group implements Carrier {
  readonly #media: CallMedia
  readonly #onPeers: (peers: readonly MediaPeer[]) => void
  #speaking: string | undefined
  isLinkLost = false
  failure: CallsignError | undefined

  /** Throws `MEDIA_UNSUPPORTED`. */
  constructor(me: Callsign, call: Call, onPeers: (peers: readonly MediaPeer[]) => void) {
    this.#onPeers = onPeers
    const relay = () => me.relay()
    this.#media = joinMedia(call, { relay, microphone: false, camera: false, newWorker })
    for (const name of ['participant', 'gone', 'state'] as const) this.#media.on(name, () => this.#show())
    this.#media.on('speaking', speaker => {
      this.#speaking = speaker?.feed
      this.#show()
    })
    this.#media.on('quality', ({ feed, quality }) => {
      if (feed === 'own') this.isLinkLost = quality === 'lost'
      this.#show()
    })
    this.#media.on('error', error => {
      // After any other error the next attempt follows, and the page says that it connects.
      if (!hasCode(error, 'MEDIA_UNSUPPORTED')) return
      this.failure = error
      this.#show()
    })
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
    this.#media.leave()
  }

  #show(): void {
    this.#onPeers(this.#media.participants.map(one => this.#peerOf(one)))
  }

  #peerOf({ userId, feed, microphone, camera, screen, quality, undecryptable }: MediaParticipant): MediaPeer {
    return {
      id: feed,
      userId,
      state: undecryptable !== undefined ? 'undecryptable' : LINKS[quality],
      hasStream: microphone !== undefined || camera !== undefined,
      hasPicture: camera?.isOn === true && !camera.isPaused,
      hasScreen: screen?.isOn === true,
      play: (video, isScreen) => {
        if (isScreen) return this.#media.show(feed, 'screen', video)
        this.#media.show(feed, 'microphone', video)
        this.#media.show(feed, 'camera', video)
      },
      isMuted: microphone?.isOn === false,
      isSpeaking: feed === this.#speaking,
    }
  }
}

const LINKS = { good: 'connected', poor: 'weak', lost: 'interrupted' } as const

/** A file of this server: the policy of its pages allows no worker of a Blob URL. */
function newWorker(): Worker {
  return new Worker(new URL('../../src/app/media/worker.js', import.meta.url), { type: 'module' })
}
