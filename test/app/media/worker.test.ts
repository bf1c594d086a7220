/** What the worker of a call's frames tells the page. */

import t from 'tap'
import type { WorkerReport, WorkerRequest } from '../../../src/app/media/worker.ts'

interface Scope {
  onmessage: (event: { readonly data: WorkerRequest }) => void
  onrtctransform: (event: { readonly transformer: object }) => void
  postMessage: (report: WorkerReport) => void
}

t.test('a track that another member takes over is not undecryptable any more', async t => {
  const reports: WorkerReport[] = []
  const scope = globalThis as unknown as Scope
  scope.postMessage = report => reports.push(report)
  await import('../../../src/app/media/worker.ts')
  const tell = (data: WorkerRequest) => scope.onmessage({ data })
  const startTrack = () => tell({ kind: 'track', track: 'receive 0', format: 'opus' })
  startTrack()
  const { readable, writable } = new TransformStream()
  const transformer = { options: { direction: 'receive', track: 'receive 0' }, readable }
  scope.onrtctransform({ transformer: { ...transformer, writable: new WritableStream() } })
  const sender = writable.getWriter()
  for (let frame = 0; frame < 10; frame++) await sender.write({ data: new ArrayBuffer(40) })
  await sender.close()
  t.same(reports, [{ kind: 'undecryptable', track: 'receive 0', reason: 'no-key' }])
  startTrack()
  startTrack()
  t.same(reports.slice(1), [{ kind: 'decryptable', track: 'receive 0' }])
})
