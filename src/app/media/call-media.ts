/**
 * Sound and picture of a call of the SDK: joins the call's room when the server lets this device in, takes its keys as they
 * come, and leaves with the call.
 */

import type { Call, CallMember } from '../calls/call.ts'
import { CallsignError } from '../callsign-error.ts'
import { Emitter } from '../emitter.ts'
import type { FrameFailure } from './frame-cryptor.ts'
import { GatewayMedia, type MediaEvents, type MediaState } from './gateway-media.ts'
import type { MediaParticipant } from './media-participants.ts'
import type { MediaStatistics } from './media-statistics.ts'
import type { PictureSize } from './pictures.ts'
import type { StreamName } from './publisher.ts'
import { keepRelay, type Relay } from './relay.ts'
import type { GatewayMediaOptions } from './room-stay.ts'
import { SeenEpochs } from './seen-epochs.ts'

export interface CallMediaOptions extends Omit<GatewayMediaOptions, 'callId' | 'iceServers'> {
  /**
   * `() => me.relay()`: asked before each time it joins. Where that fails, it joins with the credentials that it has while they last.
   * Without any it joins without a relay, after an `error`, unless that is `TURN_NOT_CONFIGURED`: the operator has no relay.
   */
  readonly relay?: () => Promise<Relay>
  /** False: not opened at the start. Else the device with this id, or the browser's choice. */
  readonly microphone?: boolean | string
  /** Likewise: open from the start in a video call. */
  readonly camera?: boolean | string
}

export interface CallMediaEvents extends MediaEvents {
  /** This device's own tracks have changed. */
  readonly own: undefined
}

/** A call as far as its media needs it. */
export interface MediaCall
  extends Partial<Pick<Call, 'isHost' | 'renewKey' | 'useKey'>>,
    Pick<
      Call,
      'callId' | 'isVideo' | 'state' | 'keys' | 'sendingKey' | 'roomId' | 'media' | 'on' | 'askForKey'
    > {
  readonly participants: readonly Pick<CallMember, 'userId' | 'feedIds' | 'state'>[]
  readonly self?: Pick<CallMember, 'userId'> | undefined
}

/**
 * Brings media to a call, whichever state it is in. Throws `MEDIA_UNSUPPORTED` where the browser can't encrypt it. A call
 * whose `media.kind` is `client` has no gateway: then only this device's own tracks are there. A call by LiveKit is
 * refused likewise.
 */
export function joinMedia(call: MediaCall, options: CallMediaOptions = {}): CallMedia {
  if (call.media?.kind === 'livekit') throw notForLiveKit()
  return new CallMedia(call, options)
}

export class CallMedia extends Emitter<CallMediaEvents> {
  readonly #call: MediaCall
  readonly #gateway: GatewayMedia
  /** Fingerprints by epoch. */
  readonly #held = new Map<number, string>()
  readonly #stops: readonly (() => void)[]
  readonly #own = new Map<StreamName, MediaStreamTrack>()
  readonly #seen = new SeenEpochs()
  #isMuted = false
  /** The room and the end of the tokens that the gateway was last given. */
  #roomId: number | undefined
  #endS = 0
  #hasLeft = false

  constructor(call: MediaCall, { relay, microphone, camera, ...options }: CallMediaOptions) {
    super()
    this.#call = call
    const iceServers = relay && { iceServers: keepRelay(relay, error => this.emit('error', error)) }
    this.#gateway = new GatewayMedia({ ...options, callId: call.callId, ...iceServers })
    for (const name of GATEWAY_EVENTS) this.#gateway.on(name, event => this.emit(name, event))
    this.#stops = [
      call.on('changed', () => this.#follow()),
      // It comes again when the gateway has lost its rooms.
      call.on('media', () => this.#enter()),
      call.on('state', state => state === 'active' && this.state === 'closed' && this.#enter()),
    ]
    this.on('epoch', ({ feed, epoch }) => this.#onEpoch(feed, epoch))
    this.on('participant', ({ userId, undecryptable }) => this.#askForKey(userId, undecryptable))
    // No further sender is opened with this key. Should it fail, the call says so.
    this.on('epochFull', () => this.#call.isHost && this.#call.renewKey?.().catch(() => {}))
    this.#follow()
    if (microphone !== false) this.#openQuietly('microphone', microphone)
    if (camera ?? call.isVideo) this.#openQuietly('camera', camera)
  }

  get state(): MediaState {
    return this.#gateway.state
  }

  /** Epoch of the key that seals frames now. */
  get epoch(): number | undefined {
    return this.#gateway.epoch
  }

  get participants(): readonly MediaParticipant[] {
    return this.#gateway.participants
  }

  /** This device's own tracks, for a picture of oneself. They end with the call. */
  get own(): ReadonlyMap<StreamName, MediaStreamTrack> {
    return this.#own
  }

  get isMuted(): boolean {
    return this.#isMuted
  }

  /** Switches to this microphone or camera. Rejects with `MEDIA_DEVICE_UNAVAILABLE`. */
  async openDevice(name: 'microphone' | 'camera', deviceId?: string): Promise<void> {
    const wish = deviceId === undefined ? true : { deviceId: { exact: deviceId } }
    const devices = navigator.mediaDevices
    const ask = () => devices.getUserMedia(name === 'microphone' ? { audio: wish } : { video: wish })
    await this.#take(name, await opened(ask))
  }

  /** Shows a screen or window, which the browser asks for. Rejects with `MEDIA_DEVICE_UNAVAILABLE`. */
  async shareScreen(): Promise<void> {
    await this.#take('screen', await opened(openScreen))
  }

  /** Sends a track of the app's, which stays the app's to stop, or nothing without one. */
  async send(name: StreamName, track: MediaStreamTrack | undefined): Promise<void> {
    if (name === 'microphone' && track !== undefined && this.#isMuted) track.enabled = false
    await this.#gateway.send(name, track)
  }

  /** Ends the track: the camera's light goes out. */
  async close(name: StreamName): Promise<void> {
    this.#own.get(name)?.stop()
    this.#own.delete(name)
    this.emit('own', undefined)
    await this.send(name, undefined)
  }

  /** Sends nothing from the microphone. */
  async mute(isMuted: boolean): Promise<void> {
    this.#isMuted = isMuted
    this.emit('own', undefined)
    await this.#gateway.mute(isMuted)
  }

  /**
   * Plays a member's stream in the element, sound and picture in one or in two. Its picture comes as large as the element is, and not at
   * all while it is not visible. A later call can give the element to another feed.
   */
  show(feed: string, name: StreamName, element: HTMLMediaElement): void {
    this.#gateway.show(feed, name, element)
  }

  /** For apps that draw the tracks themselves: what they show of a member's picture. Large unless told. */
  resize(feed: string, size: PictureSize, name?: StreamName): void {
    this.#gateway.resize(feed, size, name)
  }

  statistics(): Promise<MediaStatistics> {
    return this.#gateway.statistics()
  }

  /** Without leaving the call. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    for (const stop of this.#stops) stop()
    for (const track of this.#own.values()) {
      track.stop()
      track.onended = null
    }
    this.#own.clear()
    this.#gateway.leave()
  }

  #follow(): void {
    const { state, keys, sendingKey, participants } = this.#call
    if (state === 'ended') return this.leave()
    const feeds = participants.flatMap(({ userId, feedIds = [] }) =>
      feedIds.map(feed => [String(feed), userId] as const),
    )
    this.#gateway.vouch(new Map(feeds))
    for (const { epoch, key, fingerprint } of keys) {
      if (this.#held.get(epoch) === fingerprint) continue
      this.#held.set(epoch, fingerprint)
      this.#gateway.setKey(epoch, key)
    }
    if (sendingKey?.epoch !== this.epoch) this.#gateway.useKey(sendingKey?.epoch)
    for (const epoch of this.#held.keys()) if (!keys.some(one => one.epoch === epoch)) this.#drop(epoch)
    const isOtherRoom = this.#call.roomId !== this.#roomId
    if (this.state === 'off' || isOtherRoom || endOf(this.#call.media) > this.#endS) this.#enter()
  }

  /** A new key is used once each other device in the call was seen to have it; else the call has it wait. */
  #onEpoch(feed: string, epoch: number): void {
    this.#seen.note(feed, epoch)
    const { sendingKey, participants, self } = this.#call
    if (sendingKey === undefined || sendingKey.epoch >= epoch) return
    if (this.#seen.haveAll(epoch, participants, self?.userId)) this.#call.useKey?.(epoch).catch(() => {})
  }

  #drop(epoch: number): void {
    this.#held.delete(epoch)
    this.#gateway.dropKey(epoch)
  }

  async #askForKey(userId: string | undefined, reason: FrameFailure | undefined): Promise<void> {
    if (userId === undefined) return
    if (reason === 'no-key' || reason === 'not-authentic') await this.#call.askForKey(userId)
  }

  #enter(): void {
    const { media, roomId } = this.#call
    if (media?.kind === 'livekit' && !this.#hasLeft) {
      // The record came after the join.
      this.emit('error', notForLiveKit())
      return this.leave()
    }
    const { url, roomToken, pluginToken } = media ?? {}
    const isReady =
      roomId !== undefined && url !== undefined && roomToken !== undefined && pluginToken !== undefined
    if (!isReady || this.#hasLeft || this.#held.size === 0) return
    this.#roomId = roomId
    this.#endS = endOf(media)
    void this.#gateway.join({ url, roomId, roomToken, pluginToken })
  }

  #openQuietly(name: 'microphone' | 'camera', wish: boolean | string | undefined): void {
    const deviceId = typeof wish === 'string' ? wish : undefined
    this.openDevice(name, deviceId).catch(error => this.emit('error', error))
  }

  async #take(name: StreamName, stream: MediaStream): Promise<void> {
    const [track] = stream.getTracks()
    if (track === undefined) return
    if (this.#hasLeft) return track.stop()
    this.#own.get(name)?.stop()
    this.#own.set(name, track)
    // It was pulled out, or the browser's own button ended it.
    track.onended = () => void this.close(name)
    this.emit('own', undefined)
    await this.send(name, track)
  }
}

/** A screen or window, which the browser asks for. On a narrow line it loses pictures and keeps its size, for text. */
export async function openScreen(): Promise<MediaStream> {
  const screen = await navigator.mediaDevices.getDisplayMedia({ video: true })
  for (const track of screen.getVideoTracks()) track.contentHint = 'detail'
  return screen
}

async function opened(ask: () => Promise<MediaStream>): Promise<MediaStream> {
  try {
    return await ask()
  } catch (cause) {
    const name = cause instanceof DOMException ? cause.name : 'TypeError'
    const sentence = 'The browser does not give the device, or there is none.'
    throw new CallsignError('MEDIA_DEVICE_UNAVAILABLE', sentence, { members: { name }, cause })
  }
}

function notForLiveKit(): CallsignError {
  const sentence = 'The gateway is LiveKit: use joinLiveKit of @callsign/sdk/app/livekit.'
  return new CallsignError('MEDIA_UNSUPPORTED', sentence)
}

/** Seconds since 1970, before the first comma of a token. */
function endOf(media: MediaCall['media']): number {
  return Number.parseInt(media?.pluginToken ?? '0', 10)
}

const GATEWAY_EVENTS = [
  'participant',
  'gone',
  'state',
  'speaking',
  'quality',
  'epochFull',
  'epoch',
  'kicked',
  'error',
] as const
