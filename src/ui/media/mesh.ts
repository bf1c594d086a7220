/**
 * A WebRTC connection to each other device in the call, where the server has no gateway: good for a few people. Its
 * signals go over a topic that any user of a development server may read, encrypted with a key made from the call's. For
 * development only: the topic names no sender, so a member of the call can send signals in another member's name.
 */

import { type Call, type Callsign, hasCode } from '../../app/app.ts'
import { LinkWatch } from '../../app/media/link-watch.ts'
import type { Quality, StreamName } from '../../app/media/media.ts'
import { word } from '../words.ts'
import type { Carrier } from './carrier.ts'
import type { MediaPeer } from './media-view.ts'
import { type LinkSignal, PeerLink } from './peer-link.ts'
import { openSignal, type SealedSignal, sealSignal } from './signals.ts'

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
  readonly #onChange: () => void
  readonly #tracks = new Map<StreamName, MediaStreamTrack>()
  readonly #links = new LinkWatch(() => this.#show())
  readonly #looking: ReturnType<typeof setInterval>
  problem: string | undefined
  readonly #peers = new Map<string, Peer>()
  /** Names of the devices in the call, as it told them last. */
  #present: ReadonlySet<string> = new Set()
  #iceServers: RTCIceServer[] = []
  #unwatch: (() => void) | undefined
  #isClosed = false
  #isLooking = false
  #looks = 0
  /** Signals of an epoch whose key has not come yet. */
  #early: SealedSignal[] = []
  /** An offer is to be read before its candidates. */
  #inOrder: Promise<void> = Promise.resolve()

  constructor(me: Callsign, call: Call, onChange: () => void) {
    this.#me = me
    this.#call = call
    this.#onChange = onChange
    this.#looking = setInterval(() => void this.#look(), LOOK_MS)
    void this.#open()
  }

  get peers(): readonly MediaPeer[] {
    return [...this.#peers].map(([name, { link }]) => this.#peerView(name, link))
  }

  get quality(): Quality {
    return this.#links.qualityOf(OWN)
  }

  get isSpeaking(): boolean {
    return this.#links.speaking.active === OWN
  }

  async #open(): Promise<void> {
    this.#iceServers = await this.#relays()
    if (this.#isClosed) return
    const onMessage = (message: unknown) => {
      // Any user of the server may send to the topic.
      if (isSealed(message)) this.#onSealed(message)
    }
    const unwatch = await this.#me
      .watch(topicOf(this.#call), onMessage)
      .catch(error => this.#onRefused(error))
    if (unwatch === undefined) return
    if (this.#isClosed) return unwatch()
    this.#unwatch = unwatch
    this.onConnected()
  }

  /** Only development servers have the topic. */
  #onRefused(error: unknown): undefined {
    if (hasCode(error, 'OFFLINE')) return
    this.problem = word('no-gateway')
    this.#show()
  }

  onParticipants(): void {
    const present = this.#call.participants.filter(({ state }) => state === 'joined')
    const names = new Set(present.map(({ userId, deviceId }) => `${userId}_${deviceId}`))
    // A hello can overtake the news that its sender has come: only one who was here can have left.
    for (const name of this.#present) if (!names.has(name)) this.#drop(name)
    this.#present = names
    this.#show()
  }

  onKey(): void {
    for (const signal of this.#early.splice(0)) this.#onSealed(signal)
    // Links that older keys asked for were not made.
    if (this.#unwatch !== undefined) this.onConnected()
  }

  /** Says hello on the topic; again after each reconnection. */
  onConnected(): void {
    void this.#send({ ...this.#sender, kind: 'hello' })
  }

  send(name: StreamName, track: MediaStreamTrack | undefined): void {
    if (track === undefined) this.#tracks.delete(name)
    else this.#tracks.set(name, track)
    for (const { link } of this.#peers.values()) link.put(name, track)
  }

  /** The track is muted already: tells each device. */
  mute(): void {
    for (const { link } of this.#peers.values()) link.describe()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#looking)
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
      .then(async () => this.#onSignal((await openSignal(call, signal)) as Signal, signal.epoch))
      // Not from one in the call, or of a key that is gone.
      .catch(() => {})
  }

  #onSignal(signal: Signal, epoch: number): void {
    if (this.#isClosed || signal.from === this.#name) return
    // Someone who was removed has older keys for a while: they make no new link.
    const isNewest = epoch === this.#call.keys[0]?.epoch
    if (!isNewest && this.#peers.get(signal.from)?.instance !== signal.instance) return
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
      tracks: this.#tracks,
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
    if (!this.#isClosed) this.#onChange()
  }

  #peerView(name: string, link: PeerLink): MediaPeer {
    const quality = link.state === 'interrupted' ? 'lost' : this.#links.qualityOf(name)
    const play = (video: HTMLVideoElement, isScreen: boolean) => {
      const stream = isScreen ? link.screen : link.stream
      if (video.srcObject !== stream) video.srcObject = stream
    }
    return {
      id: name,
      userId: name.split('_')[0]!,
      state: link.state === 'connected' ? LINKS[quality] : link.state,
      quality,
      hasStream: link.stream.getTracks().length > 0,
      hasPicture: link.has('camera'),
      hasScreen: link.has('screen'),
      play,
      isMuted: link.isMuted,
      isSpeaking: this.#links.speaking.active === name,
    }
  }

  /** Follows the active speaker and each link's quality, by the rules of calls with a gateway. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const looked = await Promise.all(
      [...this.#peers].map(async ([feed, { link }]) => ({ feed, ...(await link.look()) })),
    ).finally(() => {
      this.#isLooking = false
    })
    if (this.#isClosed) return
    const streams = looked.flatMap(({ feed, received }) => received.map(one => ({ ...one, feed })))
    const own = {
      level: Math.max(0, ...looked.map(({ level }) => level)),
      isBad: looked.length > 0 && looked.every(({ isBad }) => isBad),
      isSending: false,
      reports: 0,
      state: 'connected' as const,
    }
    if (this.#links.listen(streams, own)) this.#show()
    const feeds = looked.map(({ feed }) => feed)
    if (++this.#looks % LOOKS_OF_WATCH === 0) this.#links.measure(feeds, streams, own)
  }
}

const LINKS = { good: 'connected', poor: 'weak', lost: 'interrupted' } as const
/** This device's own voice and link, as the watch names them. */
const OWN = 'own'
const LOOK_MS = 250
const LOOKS_OF_WATCH = 8

function topicOf({ callId }: Call): string {
  return `/topic/dev.media-${callId}`
}

function isSealed(message: unknown): message is SealedSignal {
  const { epoch, sealed } = Object(message) as Partial<Record<keyof SealedSignal, unknown>>
  return typeof epoch === 'number' && typeof sealed === 'string'
}

const EARLY_MAX = 100
