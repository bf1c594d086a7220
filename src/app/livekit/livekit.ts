/** The exports of `@callsign/sdk/app/livekit`: calls over LiveKit, by its own SDK, with the call's keys. */

import {
  BaseKeyProvider,
  createKeyMaterialFromString,
  DisconnectReason,
  type KeyInfo,
  KeyProviderEvent,
  type Room,
} from 'livekit-client'
import { fullJitterMs } from '../../back-off.ts'
import { CallsignError } from '../callsign-error.ts'
import { feedLiveKitKeys, type LiveKitCall, type LiveKitSlot, randomKey, SLOTS } from './livekit-keys.ts'

export {
  feedLiveKitKeys,
  type LiveKitCall,
  type LiveKitSender,
  type LiveKitSlot,
  liveKitKey,
} from './livekit-keys.ts'

/**
 * For `encryption` of `new Room`: every frame is sealed with the call's key, and no other is played. The worker is a new one of
 * `livekit-client/e2ee-worker`, and ends with the call. Throws `MEDIA_UNSUPPORTED` unless keys have 256 bits, or 128 where server and app allow it.
 */
export function liveKitEncryption(
  call: LiveKitCall,
  worker: Worker,
  { allowAes128 = false }: { readonly allowAes128?: boolean } = {},
): { readonly keyProvider: BaseKeyProvider; readonly worker: Worker } {
  const keySize = call.media?.keySize ?? 256
  if (keySize !== 256 && !(keySize === 128 && allowAes128)) {
    const sentence = `The server has keys of ${keySize} bits, which this app does not allow.`
    throw new CallsignError('MEDIA_UNSUPPORTED', sentence)
  }
  // Before it had the option, 256 was taken and 128 meant.
  if (!Object.hasOwn(new BaseKeyProvider().getOptions(), 'keySize'))
    throw new CallsignError('MEDIA_UNSUPPORTED', 'This livekit-client has keys of 128 bits alone.')
  const keyProvider = new CallKeyProvider(keySize)
  feedLiveKitKeys(call, slot => keyProvider.take(slot))
  watchWorker(worker, keyProvider)
  const stop = call.on('changed', () => {
    if (call.state !== 'ended') return
    stop()
    worker.terminate()
  })
  return { keyProvider, worker }
}

/**
 * Connects the room to the call's gateway, again by its newest token where the connection is lost or the call has another room,
 * and disconnects it when the call ends. The function given does so without leaving the call.
 */
export function joinLiveKit(
  call: LiveKitCall,
  room: Room,
  onError: (error: unknown) => void = () => undefined,
): () => void {
  let enteredRoomId: number | undefined
  let isEntering = false
  let hasLeft = false
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const retry = () => {
    clearTimeout(timer)
    failures++
    if (!hasLeft) timer = setTimeout(enter, fullJitterMs(BACK_OFF, failures, Math.random()))
  }
  const enter = async () => {
    const { roomId, media, state } = call
    if (state === 'ended') return leave()
    if (hasLeft || isEntering || media?.url === undefined || media.token === undefined) return
    // A newer token is for the next time: LiveKit renews its own while it is connected.
    if (room.state !== 'disconnected' && enteredRoomId === roomId) return
    clearTimeout(timer)
    isEntering = true
    try {
      await room.disconnect()
      await room.setE2EEEnabled(true)
      await room.connect(media.url, media.token)
      enteredRoomId = roomId
      failures = 0
    } catch (error) {
      onError(error)
      retry()
    }
    isEntering = false
    if (hasLeft) await room.disconnect()
    else if (enteredRoomId === roomId) void enter()
  }
  const onLost = (reason?: DisconnectReason) => {
    if (!isEntering && reason !== DisconnectReason.CLIENT_INITIATED) retry()
  }
  const stops = [call.on('changed', enter), call.on('media', enter)]
  room.on('disconnected', onLost)
  const leave = () => {
    if (hasLeft) return
    hasLeft = true
    clearTimeout(timer)
    for (const stop of stops) stop()
    room.off('disconnected', onLost)
    void room.disconnect()
  }
  void enter()
  return leave
}

class CallKeyProvider extends BaseKeyProvider {
  readonly #keys = new Map<string, KeyInfo>()
  #sending: LiveKitSlot | undefined
  #last = Promise.resolve()

  constructor(keySize: 128 | 256) {
    // One slot more, for the spare key below.
    super({ sharedKey: false, ratchetWindowSize: 0, failureTolerance: -1, keyringSize: SLOTS + 1, keySize })
  }

  take(slot: LiveKitSlot): void {
    this.#last = this.#last.then(async () => {
      // If the gateway gives this device another's label, it seals with this key, which no device knows.
      const spare = { ...slot, key: randomKey(), keyIndex: SLOTS, isSending: false }
      if (!slot.isOver && !this.#keys.has(placeOf(spare.identity, SLOTS))) await this.#set(spare)
      await this.#set(slot)
    })
  }

  /** Whether a participant's frames would be sealed with it: with one of the call's, those of this device alone. */
  isCurrent(identity: string | undefined, keyIndex: number | undefined): boolean {
    const own = this.#sending
    return keyIndex === (identity === own?.identity ? own?.keyIndex : SLOTS)
  }

  /** Without those that are over. */
  override getKeys(): KeyInfo[] {
    return [...this.#keys.values()]
  }

  override getLatestManuallySetKeyIndex(): number {
    return this.#sending?.keyIndex ?? SLOTS
  }

  async #set(slot: LiveKitSlot): Promise<void> {
    const { identity, keyIndex, isSending, isOver } = slot
    const info = {
      key: await createKeyMaterialFromString(slot.key),
      participantIdentity: identity,
      keyIndex,
    }
    if (isSending) this.#sending = slot
    if (isOver) this.#keys.delete(placeOf(identity, keyIndex))
    else this.#keys.set(placeOf(identity, keyIndex), info)
    this.emit(KeyProviderEvent.SetKey, info, this.isCurrent(identity, keyIndex))
  }
}

/**
 * Has the worker seal and open all frames, whatever the gateway says: LiveKit's own has frames pass in the clear where a track is
 * said not to be encrypted, and where one ends whose name, which the gateway chooses, is that of a track sent from here. And a key
 * that is there already is not derived once more for each track that comes: each takes 100,000 rounds.
 */
function watchWorker(worker: Worker, keyProvider: CallKeyProvider): void {
  const post = worker.postMessage.bind(worker) as (
    message: WorkerMessage,
    more?: Transferable[] | StructuredSerializeOptions,
  ) => void
  const posted = new Map<string, CryptoKey | undefined>()
  const received = new ReceivedTracks()
  worker.postMessage = (message: WorkerMessage, more?: Transferable[] | StructuredSerializeOptions) => {
    const { kind, data } = message
    if (kind === 'enable') data.enabled = true
    if (kind === 'setKey') {
      const { participantIdentity = '', keyIndex = 0, key } = data
      const place = placeOf(participantIdentity, keyIndex)
      if (posted.get(place) === key) return
      posted.set(place, key)
      data.updateCurrentKeyIndex = keyProvider.isCurrent(participantIdentity, keyIndex)
    }
    // Else the worker lets pass what comes on it.
    if (kind === 'removeTransform') return received.end(data)
    if (kind === 'decode' && data.isReuse !== true) received.begin(data)
    else if ((kind === 'decode' || kind === 'updateCodec') && !received.goOn(data)) return
    if (kind !== 'decode') return post(message, more)
    const { participantIdentity, trackId, codec, hasPacketTrailer } = data
    post({ kind: 'enable', data: { enabled: true, participantIdentity } })
    // The worker has the streams of one that is used again, and no stream can be given twice.
    if (data.isReuse !== true) return post(message, more)
    post({ kind: 'updateCodec', data: { participantIdentity, trackId, codec, hasPacketTrailer } })
  }
}

/** Gives each receiver's track a name of its own in the worker, where those of one name share a participant's keys. */
class ReceivedTracks {
  /** By the gateway's name for them, the latest. */
  readonly #tracks = new Map<string, { readonly name: string; identity: string; hasEnded: boolean }>()
  #count = 0

  begin(data: WorkerMessage['data']): void {
    const { trackId = '', participantIdentity: identity = '' } = data
    data.trackId = `received ${++this.#count}`
    this.#tracks.set(trackId, { name: data.trackId, identity, hasEnded: false })
  }

  /** False for the track of another participant, which is heard as theirs still. */
  goOn(data: WorkerMessage['data']): boolean {
    const track = this.#tracks.get(data.trackId ?? '')
    // One that is sent from here.
    if (track === undefined) return data.isReuse !== true
    const { participantIdentity = '' } = data
    if (!track.hasEnded && track.identity !== participantIdentity) return false
    data.trackId = track.name
    track.identity = participantIdentity
    track.hasEnded = false
    return true
  }

  end({ trackId = '', participantIdentity = '' }: WorkerMessage['data']): void {
    const track = this.#tracks.get(trackId)
    if (track?.identity === participantIdentity) track.hasEnded = true
  }
}

/** As far as it is looked at. */
interface WorkerMessage {
  readonly kind: string
  readonly data: {
    readonly participantIdentity?: string | undefined
    readonly keyIndex?: number
    readonly key?: CryptoKey
    readonly isReuse?: boolean
    readonly codec?: string | undefined
    readonly hasPacketTrailer?: boolean | undefined
    trackId?: string | undefined
    enabled?: boolean
    updateCurrentKeyIndex?: boolean
  }
}

function placeOf(identity: string, keyIndex: number): string {
  return `${identity} ${keyIndex}`
}

const BACK_OFF = { firstMs: 250, maxMs: 5_000 }
