/**
 * A WebRTC connection to each other device in the call, where the server has no gateway: good for a few people. Its
 * signals go over a topic that any user of a development server may read, encrypted with a key made from the call's.
 */

import type { Call, Callsign } from '../../src/app/app.ts'
import type { Carrier } from './carrier.ts'
import { type LinkSignal, PeerLink } from './peer-link.ts'
import { openSignal, type SealedSignal, sealSignal } from './signals.ts'
import type { MediaPeer } from './state.ts'

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

/** Names this run of the page: after a reload the other devices connect anew. */
const INSTANCE = crypto.randomUUID()

export class Mesh implements Carrier {
  readonly #me: Callsign
  readonly #call: Call
  readonly #onPeers: (peers: readonly MediaPeer[]) => void
  readonly #peers = new Map<string, Peer>()
  #iceServers: RTCIceServer[] = []
  #local: MediaStream | undefined
  #unwatch: (() => void) | undefined
  #isClosed = false
  /** Signals of an epoch whose key has not come yet. */
  #early: SealedSignal[] = []
  /** An offer is to be read before its candidates. */
  #inOrder: Promise<void> = Promise.resolve()

  constructor(me: Callsign, call: Call, onPeers: (peers: readonly MediaPeer[]) => void) {
    this.#me = me
    this.#call = call
    this.#onPeers = onPeers
    void this.#open()
  }

  async #open(): Promise<void> {
    this.#iceServers = await this.#relays()
    if (this.#isClosed) return
    const onMessage = (message: unknown) => this.#onSealed(message as SealedSignal)
    const unwatch = await this.#me.watch(topicOf(this.#call), onMessage).catch(() => () => {})
    if (this.#isClosed) return unwatch()
    this.#unwatch = unwatch
    this.onConnected()
  }

  onParticipants(): void {
    const present = this.#call.participants.filter(({ state }) => state === 'joined')
    const names = new Set(present.map(({ userId, deviceId }) => `${userId}_${deviceId}`))
    for (const name of this.#peers.keys()) if (!names.has(name)) this.#drop(name)
    this.#show()
  }

  onKey(): void {
    for (const signal of this.#early.splice(0)) this.#onSealed(signal)
  }

  /** Says hello on the topic; again after each reconnection. */
  onConnected(): void {
    void this.#send({ ...this.#sender, kind: 'hello' })
  }

  send(local: MediaStream): void {
    this.#local = local
    for (const { link } of this.#peers.values()) link.addTracks(local)
  }

  close(): void {
    this.#isClosed = true
    this.#unwatch?.()
    for (const name of this.#peers.keys()) this.#drop(name)
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
    return { from: this.#name, instance: INSTANCE }
  }

  get #name(): string {
    return `${this.#me.userId}_${this.#me.deviceId}`
  }

  #onSealed(signal: SealedSignal): void {
    const call = this.#call
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
    if (signal.toInstance === INSTANCE) this.#peerOf(signal).link.onSignal(signal)
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
    try {
      const sealed = await sealSignal(this.#call, signal)
      if (sealed !== undefined) await this.#me.send(topicOf(this.#call), sealed)
    } catch {
      // The connection broke: after the next one there is another hello.
    }
  }

  #drop(name: string): void {
    this.#peers.get(name)?.link.close()
    this.#peers.delete(name)
  }

  #show(): void {
    if (this.#isClosed) return
    const peers = [...this.#peers].map(([name, { link }]) => {
      const hasStream = link.stream.getTracks().length > 0
      const play = (video: HTMLVideoElement) => {
        if (video.srcObject !== link.stream) video.srcObject = link.stream
      }
      const hasPicture = link.stream.getVideoTracks().length > 0
      return { id: name, userId: name.split('_')[0]!, state: link.state, hasStream, hasPicture, play }
    })
    this.#onPeers(peers)
  }
}

function topicOf({ callId }: Call): string {
  return `/topic/dev.media-${callId}`
}

const EARLY_MAX = 100
