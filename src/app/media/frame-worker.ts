/** The page's side of the worker that seals and opens frames: gives it keys, and lays its transforms on tracks. */

import { CallsignError } from '../callsign-error.ts'
import type { FrameFormat } from './media-frame.ts'
import type { TrackCounts, TransformOptions, WorkerReport, WorkerRequest } from './worker.ts'

export type Counts = ReadonlyMap<string, TrackCounts>

interface Listeners {
  readonly onReport: (report: Exclude<WorkerReport, { readonly kind: 'counts' | 'ready' }>) => void
  /** The worker did not load, or has failed since: `MEDIA_UNSUPPORTED`. It was ended. */
  readonly onFailed: (error: CallsignError) => void
}

export class FrameWorker {
  readonly #worker: Worker
  readonly #waiting: ((counts: Counts) => void)[] = []
  readonly #onFailed: Listeners['onFailed']
  readonly #timer: ReturnType<typeof setTimeout>
  #isOver = false
  /** Resolves once frames pass it, or it has ended. */
  readonly ready: Promise<void>
  #resolveReady = () => {}

  /** Throws `MEDIA_UNSUPPORTED` where frames can't be encrypted: they are never sent in the clear. */
  constructor(callId: string, newWorker: () => Worker, { onReport, onFailed }: Listeners) {
    if (globalThis.RTCRtpScriptTransform === undefined) {
      const sentence = 'This browser can’t encrypt sound and picture. Take a newer one.'
      throw new CallsignError('MEDIA_UNSUPPORTED', sentence)
    }
    this.#onFailed = onFailed
    this.ready = new Promise(resolve => {
      this.#resolveReady = resolve
    })
    this.#worker = opened(newWorker)
    this.#worker.onmessage = ({ data: report }: MessageEvent<WorkerReport>) => {
      if (report.kind === 'ready') return this.#onReady()
      if (report.kind !== 'counts') return onReport(report)
      for (const resolve of this.#waiting.splice(0)) resolve(report.tracks)
    }
    this.#worker.onerror = this.#worker.onmessageerror = () => this.#fail()
    this.#timer = setTimeout(() => this.#fail(), LOADING_MS)
    this.#tell({ kind: 'call', callId })
  }

  /** Another call takes another worker. */
  get isOver(): boolean {
    return this.#isOver
  }

  setKey(epoch: number, key: Uint8Array): void {
    this.#tell({ kind: 'set-key', epoch, key: Uint8Array.from(key) })
  }

  useKey(epoch: number | undefined): void {
    this.#tell({ kind: 'use-key', epoch })
  }

  dropKey(epoch: number): void {
    this.#tell({ kind: 'drop-key', epoch })
  }

  /** Counts from zero again. */
  startTrack(track: string, format: FrameFormat): void {
    this.#tell({ kind: 'track', track, format })
  }

  /**
   * Call it before anything is sent or played: without it, received frames are noise and sent frames are in the clear.
   */
  attach(to: RTCRtpSender | RTCRtpReceiver, options: TransformOptions): void {
    to.transform = new RTCRtpScriptTransform(this.#worker, options)
  }

  counts(): Promise<Counts> {
    return new Promise(resolve => {
      if (this.#isOver) resolve(new Map())
      else if (this.#waiting.push(resolve) === 1) this.#tell({ kind: 'counts' })
    })
  }

  /** Keys go with it. */
  end(): void {
    this.#isOver = true
    this.#onReady()
    this.#worker.terminate()
    for (const resolve of this.#waiting.splice(0)) resolve(new Map())
  }

  #onReady(): void {
    clearTimeout(this.#timer)
    this.#resolveReady()
  }

  #fail(): void {
    if (this.#isOver) return
    this.end()
    this.#onFailed(notRunning())
  }

  #tell(request: WorkerRequest): void {
    this.#worker.postMessage(request)
  }
}

function opened(newWorker: () => Worker): Worker {
  try {
    return newWorker()
  } catch (cause) {
    throw notRunning(cause)
  }
}

function notRunning(cause?: unknown): CallsignError {
  const sentence =
    'The worker that encrypts media does not run. Allow it in the page’s Content-Security-Policy by worker-src blob:, or serve its file and pass newWorker.'
  return new CallsignError('MEDIA_UNSUPPORTED', sentence, { cause })
}

/** A worker loads in some tens of milliseconds. */
const LOADING_MS = 5_000
