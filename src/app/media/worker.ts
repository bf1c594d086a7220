/**
 * The worker that a call's frames pass through, sealed on the way out and opened on the way in (W3C WebRTC Encoded
 * Transform). A frame that can't be sealed or opened goes no further.
 */

import type { Bytes } from '../devices/device-keys.ts'
import { FrameCryptor, type FrameFailure } from './frame-cryptor.ts'
import type { FrameFormat } from './media-frame.ts'
import { WayDelay } from './way-delay.ts'

/** A transform is made with them. */
export interface TransformOptions {
  readonly direction: 'send' | 'receive'
  readonly track: string
}

export type WorkerRequest =
  | { readonly kind: 'call'; readonly callId: string }
  | { readonly kind: 'set-key'; readonly epoch: number; readonly key: Bytes }
  | { readonly kind: 'drop-key'; readonly epoch: number }
  | { readonly kind: 'use-key'; readonly epoch: number | undefined }
  /** The track has frames of this format from now on, of another sender perhaps. */
  | { readonly kind: 'track'; readonly track: string; readonly format: FrameFormat }
  | { readonly kind: 'counts' }

export type WorkerReport =
  /** It has the call. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'counts'; readonly tracks: ReadonlyMap<string, TrackCounts> }
  /** Frames of the track come with the key of a newer epoch. */
  | { readonly kind: 'epoch'; readonly track: string; readonly epoch: number }
  /** Many frames in a row were not opened; then one was, or the track has another sender. */
  | { readonly kind: 'undecryptable'; readonly track: string; readonly reason: FrameFailure }
  | { readonly kind: 'decryptable'; readonly track: string }
  /** Frames of further senders are not opened with the key of this epoch. */
  | { readonly kind: 'epoch-full'; readonly epoch: number }

export interface TrackCounts {
  /** Frames that came to the worker. */
  readonly frames: number
  /** Those that were sealed, or opened. */
  readonly passed: number
  readonly failed: Readonly<Partial<Record<FrameFailure | 'not-sealed', number>>>
  readonly delay: Pick<WayDelay, 'ms'>
}

interface Track {
  readonly format: FrameFormat
  frames: number
  passed: number
  readonly failed: Partial<Record<FrameFailure | 'not-sealed', number>>
  failedInRow: number
  readonly delay: WayDelay
  /** When the first one in the row failed. */
  failingSinceMs: number
  /** The newest of the frames that were opened. */
  epoch: number
}

interface EncodedFrame {
  data: ArrayBuffer
  getMetadata(): { readonly rtpTimestamp?: number }
}

/** `RTCRtpScriptTransformer`, which the types of pages lack. */
interface Transformer {
  readonly options: TransformOptions
  readonly readable: ReadableStream<EncodedFrame>
  readonly writable: WritableStream<EncodedFrame>
  sendKeyFrameRequest(): Promise<unknown>
  /** Not in Chromium: there the receivers ask. */
  generateKeyFrame?(): Promise<unknown>
}

interface WorkerScope {
  onmessage: ((event: MessageEvent<WorkerRequest>) => void) | null
  onrtctransform: ((event: { readonly transformer: Transformer }) => void) | null
  postMessage(report: WorkerReport): void
}

const scope = globalThis as unknown as WorkerScope
const transformers = new Map<string, Transformer>()
const tracks = new Map<string, Track>()
/** Tracks that the page knows as such, also under a later sender. */
const undecryptable = new Set<string>()
let cryptor: FrameCryptor | undefined

scope.onmessage = ({ data: request }) => {
  switch (request.kind) {
    case 'call':
      cryptor = new FrameCryptor(request.callId)
      return scope.postMessage({ kind: 'ready' })
    case 'set-key':
      cryptor?.setKey(request.epoch, request.key)
      // Else the picture stays frozen until the browser asks, after three seconds.
      return askForKeyFrames('receive')
    case 'use-key':
      cryptor?.useKey(request.epoch)
      return askForKeyFrames('send')
    case 'drop-key':
      cryptor?.dropKey(request.epoch)
      return
    case 'track':
      tellDecryptable(request.track)
      return void tracks.set(request.track, newTrack(request.format))
    case 'counts':
      scope.postMessage({ kind: 'counts', tracks })
  }
}

scope.onrtctransform = ({ transformer }) => {
  const { direction, track } = transformer.options
  transformers.set(track, transformer)
  const pass = direction === 'send' ? seal : open
  const transform = async (
    frame: EncodedFrame,
    controller: TransformStreamDefaultController<EncodedFrame>,
  ) => {
    const counted = tracks.get(track)
    if (counted === undefined) return
    counted.frames++
    const { rtpTimestamp = 0 } = frame.getMetadata()
    counted.delay.note(rtpTimestamp / (counted.format === 'opus' ? 48 : 90), Date.now())
    const passed = await pass(track, counted, new Uint8Array(frame.data))
    if (passed === undefined) return
    counted.passed++
    frame.data = passed.buffer
    controller.enqueue(frame)
  }
  // It ends with its connection.
  transformer.readable
    .pipeThrough(new TransformStream({ transform }))
    .pipeTo(transformer.writable)
    .catch(() => {})
}

function newTrack(format: FrameFormat): Track {
  const delay = new WayDelay()
  return { format, frames: 0, passed: 0, failed: {}, failedInRow: 0, failingSinceMs: 0, epoch: 0, delay }
}

async function seal(_: string, track: Track, frame: Bytes): Promise<Bytes | undefined> {
  const sealed = await cryptor?.seal(track.format, frame).catch(() => undefined)
  if (sealed === undefined) track.failed['not-sealed'] = (track.failed['not-sealed'] ?? 0) + 1
  return sealed
}

async function open(name: string, track: Track, frame: Bytes): Promise<Bytes | undefined> {
  const opened = await cryptor?.open(track.format, frame)
  if (opened?.kind === 'opened') {
    tellDecryptable(name)
    track.failedInRow = 0
    if (opened.epoch > track.epoch) {
      track.epoch = opened.epoch
      scope.postMessage({ kind: 'epoch', track: name, epoch: opened.epoch })
    }
    if (opened.fillsEpoch) scope.postMessage({ kind: 'epoch-full', epoch: opened.epoch })
    return opened.frame
  }
  const reason = opened?.reason ?? 'no-key'
  track.failed[reason] = (track.failed[reason] ?? 0) + 1
  const nowMs = performance.now()
  if (track.failedInRow++ === 0) track.failingSinceMs = nowMs
  // While the members change to a new key, theirs or this device's may be under way.
  const isDue = reason !== 'no-key' || nowMs - track.failingSinceMs >= CHANGING_MS
  // Its sender may have gone while the frame was opened.
  const isCurrent = tracks.get(name) === track
  if (isCurrent && isDue && track.failedInRow >= FAILED_IN_ROW && !undecryptable.has(name)) {
    undecryptable.add(name)
    scope.postMessage({ kind: 'undecryptable', track: name, reason })
  }
  return undefined
}

/** Ends an `undecryptable`: a frame was opened, or those to come are of another sender. */
function tellDecryptable(track: string): void {
  if (undecryptable.delete(track)) scope.postMessage({ kind: 'decryptable', track })
}

/** Asks the other side, or this side's encoder. Sound has none, and refuses. */
function askForKeyFrames(direction: TransformOptions['direction']): void {
  for (const transformer of transformers.values()) {
    if (transformer.options.direction !== direction) continue
    const asked = direction === 'send' ? transformer.generateKeyFrame?.() : transformer.sendKeyFrameRequest()
    asked?.catch(() => {})
  }
}

const FAILED_IN_ROW = 10
/** A little longer than members take until all send with a new key. */
const CHANGING_MS = 6_000
