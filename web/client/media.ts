/**
 * Picture and sound of a call: one's own camera and microphone, and a WebRTC connection to each other device in the
 * call. A real app joins the gateway's room by `roomId`; a mesh needs none, and is good for a few people. Its signals
 * go over a topic that any user of a development server may read, encrypted with a key made from the call's.
 */

import type { CallKeys } from './call-keys.ts'
import { type LinkSignal, PeerLink } from './peer-link.ts'
import type { Session } from './session.ts'
import type { Socket } from './socket.ts'
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

interface Relay {
  readonly turnUsername: string
  readonly turnPassword: string
  readonly uris: string[]
  readonly stunUrl?: string
}

export class Media {
  readonly #store: Store
  readonly #session: Session
  readonly #socket: Socket
  readonly #keys: CallKeys
  /** `<userId>_<deviceId>` of this device. */
  readonly #name: string
  /** Names this run of the page: after a reload the other devices connect anew. */
  readonly #instance = crypto.randomUUID()
  readonly #peers = new Map<string, Peer>()
  readonly #siblings = new BroadcastChannel('callsign-calls')
  #callId: string | undefined
  #iceServers: RTCIceServer[] = []
  #local: MediaStream | undefined
  #unwatch: (() => void) | undefined

  constructor(store: Store, session: Session, socket: Socket, keys: CallKeys, name: string) {
    this.#store = store
    this.#session = session
    this.#socket = socket
    this.#keys = keys
    this.#name = name
    keys.onMediaSignal = text => this.#onSignal(JSON.parse(text))
    // Else the other devices would wait half a minute for a closed page.
    addEventListener('pagehide', () => this.close())
    this.#siblings.onmessage = ({ data }) => this.#onSibling(data)
  }

  /** Opens camera and microphone and connects to the call's devices. A media failure never fails the call. */
  async open(callId: string, isVideo: boolean): Promise<void> {
    if (this.#callId === callId) return
    this.close()
    this.#callId = callId
    this.#siblings.postMessage({ callId, isAsking: true })
    // A question of the browser for the camera may stay open for long: nothing waits for its answer.
    void this.#openDevices(callId, isVideo)
    this.#iceServers = await this.#relays()
    await this.connect()
  }

  /** Says hello on the topic; again after each reconnection, and when there is a key at last. */
  async connect(): Promise<void> {
    const callId = this.#callId
    if (callId === undefined || !this.#keys.has(callId) || !this.#socket.isConnected) return
    const topic = topicOf(callId)
    const unwatch = await this.#socket.watch(topic, ({ epoch, sealed }) =>
      this.#keys.onSealed(callId, epoch, sealed),
    )
    if (this.#callId !== callId) return unwatch()
    this.#unwatch?.()
    this.#unwatch = unwatch
    await this.#send({ ...this.#sender, kind: 'hello' })
  }

  /** Closes connections to those who are not in the call any more. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const name of this.#peers.keys()) if (!names.has(name)) this.#drop(name)
    this.#show()
  }

  close(): void {
    this.#callId = undefined
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

  async #openDevices(callId: string, isVideo: boolean): Promise<void> {
    const { stream, problem } = await openDevices(isVideo)
    if (this.#callId !== callId) {
      for (const track of stream?.getTracks() ?? []) track.stop()
      return
    }
    this.#local = stream
    this.#store.updateMedia({ local: stream, problem })
    if (stream !== undefined) for (const { link } of this.#peers.values()) link.addTracks(stream)
  }

  async #relays(): Promise<RTCIceServer[]> {
    try {
      const relay = await this.#session.request<Relay>('GET', '/credentials')
      const { turnUsername: username, turnPassword: credential, uris, stunUrl } = relay
      return [{ urls: uris, username, credential }, ...(stunUrl === undefined ? [] : [{ urls: stunUrl }])]
    } catch {
      // No relay is configured: devices of one network, as two tabs are, reach one another without.
      return []
    }
  }

  get #sender() {
    return { from: this.#name, instance: this.#instance }
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
    const callId = this.#callId
    if (callId === undefined) return
    try {
      const sealed = await this.#keys.sealText(callId, JSON.stringify(signal))
      if (sealed !== undefined) await this.#socket.send(topicOf(callId), sealed)
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
    if (callId !== this.#callId) return
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

function topicOf(callId: string): string {
  return `/topic/dev.media-${callId}`
}
