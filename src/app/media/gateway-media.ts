/**
 * Sound and picture of one call by way of a Janus VideoRoom, every frame encrypted with the call's keys. Stays in the room,
 * through lost networks and restarts of the gateway, until `leave`.
 */

import { fullJitterMs } from '../../back-off.ts'
import { CallsignError } from '../callsign-error.ts'
import { Emitter } from '../emitter.ts'
import { FrameWorker } from './frame-worker.ts'
import type { HandleEvent, PublisherData } from './janus-session.ts'
import type { Quality } from './link-quality.ts'
import type { LineSample } from './link-samples.ts'
import { LinkWatch } from './link-watch.ts'
import { type MediaParticipant, MediaParticipants, picturesOf } from './media-participants.ts'
import { type MediaStatistics, readStatistics } from './media-statistics.ts'
import { newWorker } from './new-worker.ts'
import { type PictureSize, Pictures } from './pictures.ts'
import type { StreamName } from './publisher.ts'
import { type Admission, type GatewayMediaOptions, RoomStay } from './room-stay.ts'
import { Tiles } from './tiles.ts'

export type MediaState = 'off' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** A member's device, or this one: `own`. */
export interface FeedOrOwn {
  readonly feed: string
  /** Undefined for this device, and for a feed that the server does not know, or not yet. */
  readonly userId: string | undefined
}

export interface MediaEvents {
  /** One has come, or has changed. */
  readonly participant: MediaParticipant
  readonly gone: MediaParticipant
  readonly state: MediaState
  /** The active speaker, if there is one, from the sound that this device has opened and not by the gateway's word. */
  readonly speaking: FeedOrOwn | undefined
  readonly quality: FeedOrOwn & { readonly quality: Quality }
  /** Frames of the feed come with the key of this epoch: its device has it. */
  readonly epoch: { readonly feed: string; readonly epoch: number }
  /** So many senders came with the key of this epoch that no further one's frames are opened: the call needs a new key. */
  readonly epochFull: number
  /** The server has put this device out of the room: the state is `closed`. */
  readonly kicked: undefined
  /** An attempt has failed, and the next one follows; none does after `MEDIA_UNSUPPORTED`: the state is `closed`. */
  readonly error: CallsignError
}

export class GatewayMedia extends Emitter<MediaEvents> {
  readonly #options: GatewayMediaOptions
  readonly #frames: FrameWorker
  readonly #tracks = new Map<StreamName, MediaStreamTrack>()
  readonly #epochs = new Set<number>()
  #epoch: number | undefined
  readonly #pictures: Pictures
  #tiles: Tiles | undefined
  #state: MediaState = 'off'
  #admission: Admission | undefined
  /** Aborted when the attempts go by another admission, or end. */
  #attempts: AbortController | undefined
  #stay: RoomStay | undefined
  #publishers: ReadonlyMap<string, PublisherData> = new Map()
  readonly #links = new LinkWatch(feed => this.#onQuality(feed))
  readonly #participants: MediaParticipants
  #watchdog: ReturnType<typeof setInterval> | undefined
  #away: ReturnType<typeof setTimeout> | undefined
  #mended = 0
  /** Whether a long answer of the gateway is under way. */
  #isTiming = false
  /** Longer after each time that it was not enough: a device or gateway may be busy. */
  #connectingMs = CONNECTING_MS

  /** Throws `MEDIA_UNSUPPORTED` where the browser can't encrypt frames: nothing is ever sent in the clear. */
  constructor(options: GatewayMediaOptions) {
    super()
    this.#options = options
    const speakers = () => this.#links.speaking.latest
    this.#pictures = new Pictures(options.picturesMax ?? PICTURES_MAX, speakers)
    this.#participants = new MediaParticipants(
      (change, participant) => {
        if (change === 'participant') this.#tiles?.update(participant)
        else this.#tiles?.forget(participant.feed)
        this.emit(change, participant)
      },
      feed => this.#links.qualityOf(feed),
      this.#pictures,
    )
    this.#frames = new FrameWorker(options.callId, options.newWorker ?? newWorker, {
      onReport: report => {
        if (report.kind === 'epoch-full') return this.emit('epochFull', report.epoch)
        if (report.kind === 'epoch') return this.#onEpoch(report)
        const { undecryptable } = this.#participants
        if (report.kind === 'decryptable') undecryptable.delete(report.track)
        else undecryptable.set(report.track, report.reason)
        this.#show()
      },
      onFailed: error => {
        this.#report(error)
        this.#close()
      },
    })
  }

  get state(): MediaState {
    return this.#state
  }

  /** Whose key frames are sealed with. */
  get epoch(): number | undefined {
    return this.#epoch
  }

  get participants(): readonly MediaParticipant[] {
    return this.#participants.all
  }

  /** Adds the key that opens frames of this epoch. */
  setKey(epoch: number, key: Uint8Array): void {
    this.#frames.setKey(epoch, key)
    this.#epochs.add(epoch)
    // Before the first key it asked for nothing: each picture that can't be opened asks all senders for key frames.
    if (this.#epochs.size === 1) this.#stay?.subscriber.follow(this.#publishers)
  }

  /** Seals frames with this epoch's key; call `setKey` before. Without an epoch nothing is sent. */
  useKey(epoch: number | undefined): void {
    this.#frames.useKey(epoch)
    this.#epoch = epoch
  }

  dropKey(epoch: number): void {
    this.#frames.dropKey(epoch)
    this.#epochs.delete(epoch)
  }

  /** Whose each feed is, by user id: never the gateway's word. */
  vouch(userOfFeed: ReadonlyMap<string, string>): void {
    this.#participants.userOfFeed = userOfFeed
    this.#show()
  }

  /**
   * Resolves when this device is in the room. Goes on trying until it is, or `leave`. An admission with newer tokens, which end
   * within the hour, is taken without a pause; one to another room is joined.
   */
  async join(admission: Admission): Promise<void> {
    if (this.#frames.isOver) return
    const before = this.#admission
    this.#admission = admission
    const isThere = before?.url === admission.url && before.roomId === admission.roomId
    // Newer tokens: the session goes on with them.
    if (isThere && this.#stay !== undefined) return this.#stay.session.renew(admission.pluginToken)
    this.#attempts?.abort()
    this.#setState(this.#state === 'off' || this.#state === 'closed' ? 'connecting' : 'reconnecting')
    await this.#joinAgain()
  }

  /** Ends the worker, and its keys with it: another call takes another `GatewayMedia`. */
  leave(): void {
    this.#close()
    this.#tiles?.end()
    this.#frames.end()
  }

  /** Sends the track, or nothing without one. It stays the app's to stop. */
  async send(name: StreamName, track: MediaStreamTrack | undefined): Promise<void> {
    if (track === undefined) this.#tracks.delete(name)
    else this.#tracks.set(name, track)
    await this.#stay?.publisher.replace(name)
    await this.#describe()
  }

  /** Sends nothing from the microphone: not even silence, which would have a size. */
  async mute(isMuted: boolean): Promise<void> {
    const microphone = this.#tracks.get('microphone')
    if (microphone !== undefined) microphone.enabled = !isMuted
    await this.#stay?.publisher.replace('microphone')
    await this.#describe()
  }

  /**
   * Plays a member's stream in the element, sound and picture in one or in two. Its picture comes as large as the element is, and not at
   * all while it is not visible. A later call can give the element to another feed.
   */
  show(feed: string, name: StreamName, element: HTMLMediaElement): void {
    this.#tiles ??= new Tiles((feed, name, size) => this.resize(feed, size, name))
    this.#tiles.show(feed, name, element)
    const participant = this.participants.find(one => one.feed === feed)
    if (participant !== undefined) this.#tiles.update(participant)
  }

  /** For apps that draw the tracks themselves: what they show of a member's picture. Large unless told. */
  resize(feed: string, size: PictureSize, name: StreamName = 'camera'): void {
    this.#pictures.resize(feed, name, size)
    this.#show()
  }

  async statistics(): Promise<MediaStatistics> {
    const stay = this.#stay
    return readStatistics(await this.#frames.counts(), stay)
  }

  /** How often a transform that the browser had lost was laid anew. */
  get transformsMended(): number {
    return this.#mended + (this.#stay?.mended ?? 0)
  }

  async #joinAgain(): Promise<void> {
    const attempts = new AbortController()
    this.#attempts = attempts
    this.#endStay()
    for (let failures = 1; !attempts.signal.aborted; failures++) {
      try {
        await this.#enter(attempts.signal)
        return
      } catch (error) {
        if (attempts.signal.aborted) return
        this.#endStay()
        this.#report(error)
        this.#setState('reconnecting')
        await pause(fullJitterMs(BACK_OFF, failures, Math.random()), attempts.signal)
      }
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    const again = (error?: unknown) => {
      if (!signal.aborted) this.#lose(error)
    }
    const stay = await RoomStay.open(
      {
        admission: () => this.#admission!,
        options: this.#options,
        frames: this.#frames,
        tracks: this.#tracks,
        pictures: this.#pictures,
        connectingMs: () => this.#connectingMs,
        onConnected: isInTime => {
          this.#connectingMs = isInTime ? CONNECTING_MS : Math.min(2 * this.#connectingMs, CONNECTING_MAX_MS)
        },
        onSocket: state => {
          this.#setState(state === 'lost' ? 'reconnecting' : 'connected')
          if (state === 'back') void this.#catchUp().catch(again)
        },
        onEvent: event => this.#onEvent(event, again),
        onTracks: () => this.#show(),
        onLost: again,
      },
      signal,
    )
    if (signal.aborted) return stay.close()
    this.#stay = stay
    this.#follow()
    await this.#frames.ready
    if (!signal.aborted) await stay.publisher.publish()
    if (signal.aborted) return
    clearInterval(this.#watchdog)
    let looks = 0
    this.#watchdog = setInterval(() => {
      void this.#look(stay, ++looks)
      if (looks % LOOKS_OF_WATCH === 0) void stay.mendTransforms()
    }, LOOK_MS)
    // The app may leave at this word.
    this.#setState('connected')
    // A track may have come while the rest was published.
    void this.#describe()
  }

  #onEvent({ data }: HandleEvent, again: () => void): void {
    const { videoroom, publishers, unpublished, leaving, kicked, reason } = data
    if (videoroom === 'destroyed') return again()
    if (leaving === 'ok' && reason === 'kicked') {
      this.#close()
      return this.emit('kicked', undefined)
    }
    const gone = unpublished ?? leaving ?? kicked
    const present = new Map(this.#publishers)
    for (const publisher of publishers ?? []) present.set(String(publisher.id), publisher)
    if (gone !== undefined) present.delete(String(gone))
    this.#publishers = present
    this.#follow()
  }

  /** Updates the active speaker and everyone's quality, and adapts the pictures to the line. */
  async #look(stay: RoomStay, looks: number): Promise<void> {
    const looked = await stay.look()
    if (looked === undefined || this.#stay !== stay) return
    const { received, own, link } = looked
    const streams = [...stay.subscriber.tracks].flatMap(([track, { feed, name }]) => {
      const sample = received.get(track)
      const stream = this.participants.find(one => one.feed === feed)?.[name]
      return sample && stream?.isOn && !stream.isPaused ? [{ ...sample, feed, name }] : []
    })
    if (this.#links.listen(streams, own)) this.#showSpeaking()
    if (looks % LOOKS_OF_WATCH === 0) {
      const feeds = [...this.#publishers.keys()]
      this.#links.measure(feeds, streams, own)
      // A device that loses one of two networks sends by the other; the gateway goes on sending to the lost one.
      const isConnected = [own.state, stay.subscriber.state].every(state => state === 'connected')
      if (this.#links.isDeaf(feeds, isConnected)) return this.#lose()
    }
    await this.#adapt(stay, link)
  }

  async #adapt(stay: RoomStay, link: LineSample): Promise<void> {
    const { adaptation, count, hasSmall } = this.#pictures
    if (adaptation.take({ ...link, pictures: count, hasSmall })) this.#show()
    if (!adaptation.isAsking || this.#isTiming) return
    this.#isTiming = true
    const lineKbits = await stay.session.lineKbits().catch(() => 0)
    this.#isTiming = false
    if (adaptation.answer(lineKbits)) this.#show()
  }

  #showSpeaking(): void {
    const { active } = this.#links.speaking
    this.emit('speaking', active === undefined ? undefined : this.#named(active))
    this.#show()
  }

  #onQuality(feed: string): void {
    this.emit('quality', { ...this.#named(feed), quality: this.#links.qualityOf(feed) })
    this.#show()
  }

  #named(feed: string): FeedOrOwn {
    return { feed, userId: this.#participants.userOfFeed.get(feed) }
  }

  #onEpoch({ track, epoch }: { readonly track: string; readonly epoch: number }): void {
    const feed = this.#stay?.subscriber.placeOf(track)?.feed
    if (feed !== undefined) this.emit('epoch', { feed, epoch })
  }

  #follow(): void {
    if (this.#epochs.size > 0) this.#stay?.subscriber.follow(this.#publishers)
    const { simulcast = this.#publishers.size > 1 } = this.#options
    this.#stay?.publisher.sendSmall(simulcast).catch(error => this.#report(error))
    this.#show()
  }

  #show(): void {
    this.#pictures.decide(picturesOf(this.#publishers))
    this.#stay?.subscriber.ask()
    this.#participants.show(this.#publishers, this.#stay?.subscriber)
  }

  /** The gateway keeps no events for a socket that is lost: where members came or went, this device joins anew. */
  async #catchUp(): Promise<void> {
    await this.#describe()
    const feeds = await this.#stay?.feeds()
    const known = [...this.#publishers.keys()]
    if (feeds !== undefined && `${feeds.toSorted()}` !== `${known.toSorted()}`) this.#lose()
  }

  async #describe(): Promise<void> {
    if (this.#state === 'connected')
      await this.#stay?.publisher.describe().catch(error => this.#report(error))
  }

  #lose(error?: unknown): void {
    if (error !== undefined) this.#report(error)
    this.#attempts?.abort()
    this.#setState('reconnecting')
    void this.#joinAgain()
  }

  #close(): void {
    if (this.#state === 'closed') return
    this.#attempts?.abort()
    this.#endStay()
    this.#setState('closed')
  }

  #endStay(): void {
    const stay = this.#stay
    this.#stay = undefined
    clearInterval(this.#watchdog)
    if (this.#links.speaking.look(new Map())) this.#showSpeaking()
    this.#mended += stay?.mended ?? 0
    stay?.close()
    this.#publishers = new Map()
    this.#participants.undecryptable.clear()
    this.#show()
  }

  #setState(state: MediaState): void {
    if (this.#state === state) return
    this.#state = state
    this.emit('state', state)
    clearTimeout(this.#away)
    // Into another room it takes less.
    if (state === 'reconnecting') this.#away = setTimeout(() => this.#links.setAway(true), AWAY_MS)
    else this.#links.setAway(false)
  }

  #report(error: unknown): void {
    const told = error instanceof CallsignError ? error : new CallsignError('INTERNAL', String(error))
    this.emit('error', told)
  }
}

function pause(forMs: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, forMs)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

const BACK_OFF = { firstMs: 250, maxMs: 5_000 }
/** A connection that has not come to be in so long is made anew. */
const CONNECTING_MS = 10_000
const CONNECTING_MAX_MS = 60_000
/** Statistics are read this often; every eighth time slower checks run too. */
const LOOK_MS = 250
const LOOKS_OF_WATCH = 8
const AWAY_MS = 2_000
const PICTURES_MAX = 9
