/**
 * Picture and sound of a call: one's own camera, microphone and screen, and what carries them to other people, which is the
 * server's gateway or, without one, a mesh.
 */

import type { Call, Callsign } from '../../src/app/app.ts'
import type { Carrier } from './carrier.ts'
import { Group } from './group.ts'
import { Mesh } from './mesh.ts'
import { type MediaPeer, NO_MEDIA, type Store } from './state.ts'

export class Media {
  readonly #me: Callsign
  readonly #store: Store
  readonly #siblings = new BroadcastChannel('callsign-calls')
  #call: Call | undefined
  #carrier: Carrier | undefined
  #local: MediaStream | undefined

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
    // Else the other devices would wait half a minute for a closed page.
    addEventListener('pagehide', () => this.#close())
    this.#siblings.onmessage = ({ data }) => this.#onSibling(data)
  }

  /** Goes along with the call that this tab is in, once it has a key. A media failure never fails the call. */
  follow(call: Call | undefined): void {
    if (this.#call !== undefined && this.#call !== call) this.#close()
    if (call?.fingerprint === undefined) return
    if (this.#call === undefined) void this.#open(call)
    this.#carrier?.onParticipants?.()
  }

  onKey(): void {
    this.#carrier?.onKey?.()
  }

  onConnected(): void {
    this.#carrier?.onConnected?.()
  }

  mute(isMuted: boolean): void {
    for (const track of this.#local?.getAudioTracks() ?? []) track.enabled = !isMuted
    this.#carrier?.mute?.(isMuted)
    this.#store.updateMedia({ isMuted })
  }

  coverCamera(isCameraOff: boolean): void {
    const [camera] = this.#local?.getVideoTracks() ?? []
    if (camera === undefined) return
    camera.enabled = !isCameraOff
    this.#carrier?.coverCamera?.(isCameraOff ? undefined : camera)
    this.#store.updateMedia({ isCameraOff })
  }

  /** Shows a screen or window, which the browser asks for, or none any more. */
  async shareScreen(isOn: boolean): Promise<void> {
    for (const track of this.#store.state.media.screen?.getTracks() ?? []) track.stop()
    const screen = isOn ? await openScreen() : undefined
    const [track] = screen?.getVideoTracks() ?? []
    // The browser has a button of its own that ends it.
    if (track !== undefined) track.onended = () => void this.shareScreen(false)
    this.#carrier?.shareScreen?.(track)
    this.#store.updateMedia({ screen })
  }

  playSound(isSoundOn: boolean): void {
    this.#store.updateMedia({ isSoundOn })
  }

  /** A question of the browser for the camera may stay open for long: nothing waits for its answer. */
  async #open(call: Call): Promise<void> {
    this.#call = call
    const { callId, isVideo } = call
    this.#siblings.postMessage({ callId, isAsking: true })
    const onPeers = (peers: readonly MediaPeer[]) => {
      if (this.#call !== call) return
      const { isLinkLost = false, failure } = this.#carrier ?? {}
      this.#store.updateMedia({ peers, isLinkLost, ...(failure && { problem: failure.sentence }) })
    }
    try {
      const Carrying = call.media?.kind === 'janus' ? Group : Mesh
      this.#carrier = new Carrying(this.#me, call, onPeers)
    } catch (error) {
      this.#store.sayFailure(error)
    }
    this.#store.updateMedia({ canShareScreen: this.#carrier?.shareScreen !== undefined })
    await this.#openDevices(call, isVideo)
  }

  #close(): void {
    if (this.#call === undefined) return
    this.#call = undefined
    this.#carrier?.close()
    this.#carrier = undefined
    const { screen } = this.#store.state.media
    for (const stream of [this.#local, screen]) for (const track of stream?.getTracks() ?? []) track.stop()
    this.#local = undefined
    this.#store.update({ media: NO_MEDIA })
  }

  async #openDevices(call: Call, isVideo: boolean): Promise<void> {
    const { stream, problem } = await openDevices(isVideo)
    if (this.#call !== call) {
      for (const track of stream?.getTracks() ?? []) track.stop()
      return
    }
    this.#local = stream
    this.#store.updateMedia({ local: stream, problem })
    if (stream !== undefined) this.#carrier?.send(stream)
  }

  /** Two tabs of one browser in a call would hear themselves: both stay silent until unmuted. */
  #onSibling({ callId, isAsking }: { callId: string; isAsking: boolean }): void {
    if (callId !== this.#call?.callId) return
    this.playSound(false)
    if (isAsking) this.#siblings.postMessage({ callId, isAsking: false })
  }
}

/** Undefined where the person chose none. */
function openScreen(): Promise<MediaStream | undefined> {
  return navigator.mediaDevices.getDisplayMedia({ video: true }).catch(() => undefined)
}

/** Camera and microphone, or what there is of both; else why there is none. */
async function openDevices(isVideo: boolean): Promise<{ stream?: MediaStream; problem: string | undefined }> {
  const wishes = isVideo
    ? [{ audio: true, video: true }, { video: true }, { audio: true }]
    : [{ audio: true }]
  let name = 'NotFoundError'
  for (const wish of wishes) {
    try {
      const stream = await navigator.mediaDevices.getUserMedia(wish)
      const hasVideo = stream.getVideoTracks().length > 0
      return { stream, problem: isVideo && !hasVideo ? 'No camera: sound only.' : undefined }
    } catch (error) {
      name = error instanceof DOMException ? error.name : name
      if (name === 'NotAllowedError') break
    }
  }
  const what = isVideo ? 'camera or microphone' : 'microphone'
  if (name === 'NotAllowedError') {
    return { problem: `The browser does not let this page use the ${what}: signalling only.` }
  }
  if (name === 'NotReadableError') return { problem: `Another program holds the ${what}: signalling only.` }
  return { problem: `No ${what}: signalling only.` }
}
