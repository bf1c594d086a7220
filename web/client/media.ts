/**
 * Picture and sound of a call: one's own camera and microphone, and a WebRTC connection to each other device in the
 * call. A real app joins the gateway's room by `roomId`; a mesh needs none, and is good for a few people. Its signals
 * go over a topic that any user of a development server may read, encrypted with a key made from the call's.
 */

import type { Call, Callsign } from '../../src/app/app.ts'
import { type LinkSignal, PeerLink } from './peer-link.ts'
import { openSignal, type SealedSignal, sealSignal } from './signals.ts'
import { NO_MEDIA, type Store } from './state.ts'

/** `hello` asks all present devices to connect; `here` answers that this one waits for an offer. */
type Signal = { readonly from: string; readonly instance: string } & (
  | { readonly kind: 'hello' }
  | { readonly kind: 'here'; readonly to: string }
  | ({ readonly to: string; readonly toInstance: string } & LinkSignal)
)

interface Peer {
  readonly instance: string
  readonly link: PeerLink
}

export class Media {
  readonly #me: Callsign
  readonly #store: Store
  /** Names this run of the page: after a reload the other devices connect anew. */
  readonly #instance = crypto.randomUUID()
  readonly #peers = new Map<string, Peer>()
  readonly #siblings = new BroadcastChannel('callsign-calls')
  #call: Call | undefined
  #iceServers: RTCIceServer[] = []
  #local: MediaStream | undefined
  #unwatch: (() => void) | undefined
  /** Signals of an epoch whose key has not come yet. */
  #early: SealedSignal[] = []
  /** An offer is to be read before its candidates. */
  #inOrder: Promise<void> = Promise.resolve()

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
    const present = call.participants.filter(({ state }) => state === 'joined')
    const names = new Set(present.map(({ userId, deviceId }) => `${userId}_${deviceId}`))
    for (const name of this.#peers.keys()) if (!names.has(name)) this.#drop(name)
    this.#show()
  }

  onKey(): void {
    for (const signal of this.#early.splice(0)) this.#onSealed(signal)
  }

  /** Says hello on the topic; again after each reconnection. */
  hello(): void {
    void this.#send({ ...this.#sender, kind: 'hello' })
  }

  async #open(call: Call): Promise<void> {
    this.#call = call
    const { callId, isVideo } = call
    this.#siblings.postMessage({ callId, isAsking: true })
    // A question of the browser for the camera may stay open for long: nothing waits for its answer.
    void this.#openDevices(call, isVideo)
    this.#iceServers = await this.#relays()
    const onMessage = (message: unknown) => this.#onSealed(message as SealedSignal)
    const unwatch = await this.#me.watch(topicOf(call), onMessage).catch(() => () => {})
    if (this.#call !== call) return unwatch()
    this.#unwatch = unwatch
    this.hello()
  }

  #close(): void {
    if (this.#call === undefined) return
    this.#call = undefined
    this.#early = []
    this.#unwatch?.()
    this.#unwatch = undefined
    for (const name of this.#peers.keys()) this.#drop(name)
    for (const track of this.#local?.getTracks() ?? []) track.stop()
    this.#local = undefined
    this.#store.update({ media: NO_MEDIA })
  }

  mute(isMuted: boolean): void {
    for (const track of this.#local?.getAudioTracks() ?? []) track.enabled = !isMuted
    this.#store.updateMedia({ isMuted })
  }

  coverCamera(isCameraOff: boolean): void {
    for (const track of this.#local?.getVideoTracks() ?? []) track.enabled = !isCameraOff
    this.#store.updateMedia({ isCameraOff })
  }

  playSound(isSoundOn: boolean): void {
    this.#store.updateMedia({ isSoundOn })
  }

  async #openDevices(call: Call, isVideo: boolean): Promise<void> {
    const { stream, problem } = await openDevices(isVideo)
    if (this.#call !== call) {
      for (const track of stream?.getTracks() ?? []) track.stop()
      return
    }
    this.#local = stream
    this.#store.updateMedia({ local: stream, problem })
    if (stream !== undefined) for (const { link } of this.#peers.values()) link.addTracks(stream)
  }

  async #relays(): Promise<RTCIceServer[]> {
    try {
      const relay = await this.#me.relay()
      const { turnUsername: username, turnPassword: credential, uris, stunUrl } = relay
      return [
        { urls: [...uris], username, credential },
        ...(stunUrl === undefined ? [] : [{ urls: stunUrl }]),
      ]
    } catch {
      // No relay is configured: devices of one network, as two tabs are, reach one another without.
      return []
    }
  }

  get #sender() {
    return { from: this.#name, instance: this.#instance }
  }

  get #name(): string {
    return `${this.#me.userId}_${this.#me.deviceId}`
  }

  #onSealed(signal: SealedSignal): void {
    const call = this.#call
    if (call === undefined) return
    if (!call.keys.some(({ epoch }) => epoch === signal.epoch)) {
      this.#early = [...this.#early, signal].slice(-EARLY_MAX)
      return
    }
    this.#inOrder = this.#inOrder
      .then(async () => this.#onSignal((await openSignal(call, signal)) as Signal))
      // Not from one in the call, or of a key that is gone.
      .catch(() => {})
  }

  #onSignal(signal: Signal): void {
    if (signal.from === this.#name) return
    if (signal.kind === 'hello') return this.#onHello(signal)
    if (signal.to !== this.#name) return
    if (signal.kind === 'here') return void this.#peerOf(signal)
    if (signal.toInstance === this.#instance) this.#peerOf(signal).link.onSignal(signal)
  }

  /** The greater name of two makes the first offer; the other announces that it is there to get it. */
  #onHello(signal: Signal): void {
    const peer = this.#peers.get(signal.from)
    if (peer?.link.state === 'gone' || peer?.link.state === 'unreachable') this.#drop(signal.from)
    if (this.#name > signal.from) this.#peerOf(signal)
    else void this.#send({ ...this.#sender, kind: 'here', to: signal.from })
  }

  #peerOf({ from, instance }: Signal): Peer {
    const known = this.#peers.get(from)
    if (known?.instance === instance) return known
    this.#drop(from)
    const link = new PeerLink({
      isPolite: this.#name < from,
      iceServers: this.#iceServers,
      local: this.#local,
      send: signal => void this.#send({ ...this.#sender, to: from, toInstance: instance, ...signal }),
      onChange: () => this.#show(),
    })
    const peer = { instance, link }
    this.#peers.set(from, peer)
    this.#show()
    return peer
  }

  async #send(signal: Signal): Promise<void> {
    const call = this.#call
    if (call === undefined) return
    try {
      const sealed = await sealSignal(call, signal)
      if (sealed !== undefined) await this.#me.send(topicOf(call), sealed)
    } catch {
      // The connection broke: after the next one there is another hello.
    }
  }

  #drop(name: string): void {
    this.#peers.get(name)?.link.close()
    this.#peers.delete(name)
  }

  #show(): void {
    const peers = [...this.#peers].map(([name, { link }]) => {
      const stream = link.stream.getTracks().length === 0 ? undefined : link.stream
      return { userId: name.split('_')[0]!, state: link.state, stream }
    })
    this.#store.updateMedia({ peers })
  }

  /** Two tabs of one browser in a call would hear themselves: both stay silent until unmuted. */
  #onSibling({ callId, isAsking }: { callId: string; isAsking: boolean }): void {
    if (callId !== this.#call?.callId) return
    this.playSound(false)
    if (isAsking) this.#siblings.postMessage({ callId, isAsking: false })
  }
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

function topicOf({ callId }: Call): string {
  return `/topic/dev.media-${callId}`
}

const EARLY_MAX = 100
