/** The page's side of the worker that seals and opens frames: gives it keys, and lays its transforms on tracks. */

import { CallsignError } from '../callsign-error.ts'
import type { FrameFormat } from './media-frame.ts'
import type { TrackCounts, TransformOptions, WorkerReport, WorkerRequest } from './worker.ts'

export type Counts = ReadonlyMap<string, TrackCounts>

export class FrameWorker {
  readonly #worker: Worker
  readonly #waiting: ((counts: Counts) => void)[] = []
  #isOver = false

  /** Throws `MEDIA_UNSUPPORTED` where frames can't be encrypted: they are never sent in the clear. */
  constructor(
    callId: string,
    newWorker: () => Worker,
    onReport: (report: Exclude<WorkerReport, { readonly kind: 'counts' }>) => void,
  ) {
    if (globalThis.RTCRtpScriptTransform === undefined) {
      const sentence = 'This browser can’t encrypt sound and picture. Take a newer one.'
      throw new CallsignError('MEDIA_UNSUPPORTED', sentence)
    }
    this.#worker = newWorker()
    this.#worker.onmessage = ({ data: report }: MessageEvent<WorkerReport>) => {
      if (report.kind !== 'counts') return onReport(report)
      for (const resolve of this.#waiting.splice(0)) resolve(report.tracks)
    }
    this.#tell({ kind: 'call', callId })
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
    this.#worker.terminate()
    for (const resolve of this.#waiting.splice(0)) resolve(new Map())
  }

  #tell(request: WorkerRequest): void {
    this.#worker.postMessage(request)
  }
}
