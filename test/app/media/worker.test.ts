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

t.test('the first frame that opens ends it', async t => {
  const ann = new FrameCryptor('7')
  const key = new Uint8Array(32)
  ann.setKey(1, key)
  ann.useKey(1)
  const { buffer } = Uint8Array.from((await ann.seal('opus', new Uint8Array(40)))!)
  tell({ kind: 'call', callId: '7' })
  tell({ kind: 'set-key', epoch: 1, key })
  await pass([...Array(12).fill(NO_FRAME), { data: buffer, getMetadata }])
  t.same(reports, [UNDECRYPTABLE, DECRYPTABLE])
})
