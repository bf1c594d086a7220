/**
 * Picture and sound of one call: one's own camera, microphone and screen, and what carries them to other people, which is the
 * server's gateway or, without one, a mesh. A failure here never fails the call.
 */

import type { Call, Callsign, CallsignError } from '../../app/app.ts'
import { Emitter } from '../../app/emitter.ts'
import { openScreen } from '../../app/media/call-media.ts'
import { Speaking } from '../../app/media/speaking.ts'
import { sentenceOf } from '../sentence.ts'
import { word } from '../words.ts'
import { type Carrier, carrierFor } from './carrier.ts'
import type { MediaDeviceList } from './device-list.ts'
import { Group } from './group.ts'
import { forgetSwitches, keepSwitches, withKeptSwitches } from './kept-switches.ts'
import { type MediaPeer, type MediaView, NO_MEDIA } from './media-view.ts'
import { Mesh } from './mesh.ts'
import { choiceFor, type MediaChoice, OwnDevices } from './own-devices.ts'

export interface MediaEvents {
  readonly changed: undefined
  readonly error: CallsignError
}

export class Media extends Emitter<MediaEvents> {
  view: MediaView = NO_MEDIA
  readonly #me: Callsign
  readonly #call: Call
  readonly #own: OwnDevices
  readonly #newWorker: (() => Worker) | undefined
  readonly #siblings = new BroadcastChannel('callsign-calls')
  readonly #stops: readonly (() => void)[]
  readonly #voice = new Speaking()
  #carrier: Carrier | undefined
  #isOpen = false
  #isClosed = false
  #screen: MediaStream | undefined
  #isSoundOn = true
  #failure: string | undefined

  /** Begins once the call has a key, and ends with it. */
  constructor(me: Callsign, call: Call, choice: MediaChoice = {}) {
    super()
    this.#me = me
    this.#call = call
    const chosen = { camera: call.isVideo, ...choice, ...choiceFor(call) }
    this.#own = new OwnDevices(withKeptSwitches(call.callId, chosen))
    this.#keepSwitches()
    this.#newWorker = choice.newWorker
    // Else the other devices would wait half a minute for a closed page.
    const close = () => this.close()
    addEventListener('pagehide', close)
    this.#siblings.onmessage = ({ data }) => this.#onSibling(data)
    const look = setInterval(() => this.#listen(), LISTEN_MS)
    this.#stops = [
      call.on('changed', () => this.#follow()),
      call.on('key', () => this.#carrier?.onKey?.()),
      me.on('connection', state => state === 'connected' && this.#carrier?.onConnected?.()),
      this.#own.on('changed', () => this.#show()),
      this.#own.on('track', kind => this.#carrier?.send(kind, this.#own.track(kind))),
      () => removeEventListener('pagehide', close),
      () => clearInterval(look),
    ]
    this.#follow()
  }

  get devices(): MediaDeviceList {
    return this.#own.devices
  }

  mute(isMuted: boolean): void {
    void this.#own.mute(isMuted)
    this.#keepSwitches()
    this.#carrier?.mute(isMuted)
  }

  coverCamera(isCameraOff: boolean): void {
    void this.#own.coverCamera(isCameraOff)
    this.#keepSwitches()
  }

  useMicrophone(id: string): Promise<void> {
    return this.#own.useMicrophone(id)
  }

  useCamera(id: string): Promise<void> {
    return this.#own.useCamera(id)
  }

  useSpeaker(id: string): Promise<void> {
    return this.#own.useSpeaker(id)
  }

  /** Shows a screen or window, which the browser asks for, or none any more. */
  async shareScreen(isOn: boolean): Promise<void> {
    this.#endScreen()
    // Undefined where the person chose none.
    const screen = isOn ? await openScreen().catch(() => undefined) : undefined
    const [track] = screen?.getVideoTracks() ?? []
    if (this.#isClosed) return track?.stop()
    this.#endScreen()
    this.#screen = screen
    // The browser has a button of its own that ends it.
    if (track !== undefined) track.onended = () => void this.shareScreen(false)
    this.#carrier?.send('screen', track)
    this.#show()
  }

  playSound(isSoundOn: boolean): void {
    this.#isSoundOn = isSoundOn
    this.#show()
  }

  /** Ends the tracks, without leaving the call. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const stop of this.#stops) stop()
    this.#siblings.close()
    this.#carrier?.close()
    this.#own.close()
    this.#endScreen()
    this.view = NO_MEDIA
    this.emit('changed', undefined)
  }

  #follow(): void {
    if (this.#call.state === 'ended') {
      forgetSwitches(this.#call.callId)
      return this.close()
    }
    if (this.#call.fingerprint === undefined) return
    if (!this.#isOpen) this.#open()
    this.#carrier?.onParticipants?.()
  }

  #keepSwitches(): void {
    const { isMuted, isCameraOff } = this.#own
    if (!this.#isClosed) keepSwitches(this.#call.callId, { isMuted, isCameraOff })
  }

  /** A question of the browser for the camera may stay open for long: nothing waits for its answer. */
  #open(): void {
    this.#isOpen = true
    this.#siblings.postMessage({ callId: this.#call.callId, isAsking: true })
    void this.#carry()
    void this.#own.open()
    this.#show()
  }

  async #carry(): Promise<void> {
    try {
      const carrier = await this.#newCarrier()
      if (this.#isClosed) return carrier.close()
      this.#carrier = carrier
      carrier.mute(this.#own.isMuted)
      for (const kind of ['microphone', 'camera'] as const) carrier.send(kind, this.#own.track(kind))
    } catch (error) {
      this.#failure = sentenceOf(error)
    }
    this.#show()
  }

  #newCarrier(): Carrier | Promise<Carrier> {
    const onChange = () => this.#show()
    const [me, call] = [this.#me, this.#call]
    const kind = call.media?.kind
    const other = carrierFor(kind)
    if (other !== undefined) return other(call, onChange)
    if (kind === 'livekit') throw new Error(word('no-livekit'))
    return kind === 'janus' ? new Group(me, call, onChange, this.#newWorker) : new Mesh(me, call, onChange)
  }

  #endScreen(): void {
    for (const track of this.#screen?.getTracks() ?? []) {
      track.onended = null
      track.stop()
    }
    this.#screen = undefined
  }

  #show(): void {
    if (this.#isClosed) return
    const { local, problem, isMuted, isCameraOff, devices } = this.#own
    const { quality = 'good', isSpeaking = false, peers = [] } = this.#carrier ?? {}
    this.view = {
      local,
      screen: this.#screen,
      canShareScreen: this.#carrier !== undefined && 'getDisplayMedia' in navigator.mediaDevices,
      problem: this.#failure ?? this.#carrier?.problem ?? problem,
      hasMicrophone: devices.microphones.length > 0,
      hasCamera: devices.cameras.length > 0,
      isMuted,
      isCameraOff,
      isSpeaking,
      isSpeakingMuted: isMuted && this.#voice.active !== undefined,
      isSoundOn: this.#isSoundOn,
      peers: peers.map(peer => this.#heard(peer)),
      quality,
      isLinkLost: quality === 'lost',
    }
    this.emit('changed', undefined)
  }

  /** The peer, played by the chosen speaker. */
  #heard(peer: MediaPeer): MediaPeer {
    const play = (video: HTMLVideoElement, isScreen: boolean) => {
      peer.play(video, isScreen)
      const { speaker } = this.#own.devices.chosen
      if (speaker === undefined || video.sinkId === undefined || video.sinkId === speaker) return
      // One that was pulled out leaves the system's choice.
      video.setSinkId(speaker).catch(() => undefined)
    }
    return { ...peer, play }
  }

  #listen(): void {
    const levels = this.#own.isMuted ? [['own', this.#own.level] as const] : []
    if (this.#voice.look(new Map(levels))) this.#show()
  }

  /** Two tabs of one browser in a call would hear themselves: both stay silent until unmuted. */
  #onSibling({ callId, isAsking }: { readonly callId: string; readonly isAsking: boolean }): void {
    if (callId !== this.#call.callId || !this.#isOpen) return
    this.playSound(false)
    if (isAsking) this.#siblings.postMessage({ callId, isAsking: false })
  }
}

const LISTEN_MS = 250
