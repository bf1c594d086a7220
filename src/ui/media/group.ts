/** A call by way of the server's gateway, which can't open what it carries: `@callsign/sdk/app/media` does the work. */

import { type Call, type Callsign, hasCode } from '../../app/app.ts'
import {
  type CallMedia,
  joinMedia,
  type MediaParticipant,
  type Quality,
  type StreamName,
} from '../../app/media/media.ts'
import type { Carrier } from './carrier.ts'
import type { MediaPeer } from './media-view.ts'

export class Group implements Carrier {
  readonly #media: CallMedia
  #speaking: string | undefined
  quality: Quality = 'good'
  problem: string | undefined

  /** Throws `MEDIA_UNSUPPORTED`. */
  constructor(me: Callsign, call: Call, onChange: () => void, newWorker: (() => Worker) | undefined) {
    const relay = () => me.relay()
    const workers = newWorker && { newWorker }
    this.#media = joinMedia(call, { relay, microphone: false, camera: false, ...workers })
    for (const name of ['participant', 'gone', 'state'] as const) this.#media.on(name, onChange)
    this.#media.on('speaking', speaker => {
      this.#speaking = speaker?.feed
      onChange()
    })
    this.#media.on('quality', ({ feed, quality }) => {
      if (feed === 'own') this.quality = quality
      onChange()
    })
    this.#media.on('error', error => {
      // After any other error the next attempt follows, and the page says that it connects.
      if (!hasCode(error, 'MEDIA_UNSUPPORTED')) return
      this.problem = error.sentence
      onChange()
    })
  }

  get peers(): readonly MediaPeer[] {
    return this.#media.participants.map(one => this.#peerOf(one))
  }

  get isSpeaking(): boolean {
    return this.#speaking === 'own'
  }

  send(name: StreamName, track: MediaStreamTrack | undefined): void {
    void this.#media.send(name, track)
  }

  mute(isMuted: boolean): void {
    void this.#media.mute(isMuted)
  }

  close(): void {
    this.#media.leave()
  }

  #peerOf({ userId, feed, microphone, camera, screen, quality, undecryptable }: MediaParticipant): MediaPeer {
    return {
      id: feed,
      userId,
      state: undecryptable !== undefined ? 'undecryptable' : LINKS[quality],
      quality,
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
