/** What the worker of a call's frames tells the page. */

import t from 'tap'
import { FrameCryptor } from '../../../src/app/media/frame-cryptor.ts'
import type { WorkerReport, WorkerRequest } from '../../../src/app/media/worker.ts'

interface Scope {
  onmessage: (event: { readonly data: WorkerRequest }) => void
  onrtctransform: (event: { readonly transformer: object }) => void
  postMessage: (report: WorkerReport) => void
}

const reports: WorkerReport[] = []
const scope = globalThis as unknown as Scope
scope.postMessage = report => reports.push(report)
await import('../../../src/app/media/worker.ts')

const tell = (data: WorkerRequest) => scope.onmessage({ data })
const startTrack = () => tell({ kind: 'track', track: 'receive 0', format: 'opus' })
const getMetadata = () => ({ rtpTimestamp: 0 })
const NO_FRAME = { data: new ArrayBuffer(40), getMetadata }
/** From one look at the clock to the next: one for each frame that fails. */
let stepMs = 1_000
let nowMs = 0
t.intercept(performance, 'now', { value: () => (nowMs += stepMs) })
const UNDECRYPTABLE = { kind: 'undecryptable', track: 'receive 0', reason: 'no-key' }
const DECRYPTABLE = { kind: 'decryptable', track: 'receive 0' }

/** Has the worker take the frames of a track, up to the last. */
async function pass(frames: readonly { readonly data: ArrayBuffer }[]): Promise<void> {
  reports.length = 0
  startTrack()
  const options = { direction: 'receive', track: 'receive 0' }
  await new Promise<void>(close => {
    const readable = new ReadableStream({
      start(controller) {
        for (const frame of frames) controller.enqueue(frame)
        controller.close()
      },
    })
    const writable = new WritableStream({ close })
    scope.onrtctransform({
      transformer: { options, readable, writable, sendKeyFrameRequest: async () => {} },
    })
  })
}

t.test('a track that another member takes over is not undecryptable any more', async t => {
  await pass(Array(10).fill(NO_FRAME))
  t.same(reports, [UNDECRYPTABLE])
  startTrack()
  startTrack()
  t.same(reports.slice(1), [DECRYPTABLE])
})

t.test('a frame of a sender who is gone says nothing of the next one’s', async t => {
  const last = {
    getMetadata,
    get data() {
      startTrack()
      return NO_FRAME.data
    },
  }
  await pass([...Array(9).fill(NO_FRAME), last])
  t.same(reports, [])
})

t.test('while members change to a new key, frames that it does not open yet are no complaint', async t => {
  stepMs = 100
  await pass(Array(50).fill(NO_FRAME))
  t.same(reports, [])
  await pass(Array(70).fill(NO_FRAME))
  t.same(reports, [UNDECRYPTABLE])
  startTrack()
  stepMs = 1_000
})

/** A frame of Ann's, sealed with the key of this epoch. */
async function frameOf(epoch: number) {
  ann.setKey(epoch, KEY)
  ann.useKey(epoch)
  const { buffer } = Uint8Array.from((await ann.seal('opus', new Uint8Array(40)))!)
  return { data: buffer, getMetadata }
}
const KEY = new Uint8Array(32)
const ann = new FrameCryptor('7')

t.test('the first frame that opens ends it, and each newer epoch of a track is reported once', async t => {
  tell({ kind: 'call', callId: '7' })
  t.same(reports.at(-1), { kind: 'ready' })
  for (const epoch of [1, 2]) tell({ kind: 'set-key', epoch, key: KEY })
  const epochOf = (epoch: number) => ({ kind: 'epoch', track: 'receive 0', epoch })
  const [first, late] = [await frameOf(1), await frameOf(1)]
  const newer = [await frameOf(2), await frameOf(2)]
  await pass([...Array(12).fill(NO_FRAME), first, ...newer, late])
  t.same(reports, [UNDECRYPTABLE, DECRYPTABLE, epochOf(1), epochOf(2)])
})
