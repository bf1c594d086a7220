/** LiveKit's own worker with a call's keys, at a gateway that names and ends tracks as it likes. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import type { CallEvents } from '../../../src/app/app.ts'
import { Emitter } from '../../../src/app/emitter.ts'
import { type LiveKitCall, liveKitEncryption } from '../../../src/app/livekit/livekit.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

/** Ann's, with Bob and Cat. */
class OwnCall extends Emitter<CallEvents> implements LiveKitCall {
  readonly callId = '42'
  readonly roomId = 1
  state: LiveKitCall['state'] = 'active'
  readonly keys = [{ epoch: 1, key: new Uint8Array(32).fill(1), fingerprint: 'of 1' }]
  readonly sendingKey = this.keys[0]
  readonly media = { kind: 'livekit', keySize: 256 }
  readonly participants = ['ann', 'bob', 'cat'].map((identity, at) => {
    const id = String(at + 1)
    return { userId: id, deviceId: id, state: 'joined', identity }
  })
  readonly self = this.participants[0]

  end(): void {
    this.state = 'ended'
    this.emit('changed', undefined)
  }
}

interface Frame {
  data: ArrayBuffer
  readonly timestamp: number
  readonly getMetadata: () => object
}

interface Streams {
  readonly readableStream: ReadableStream<Frame>
  readonly writableStream: WritableStream<Frame>
}

const browser = globalThis as unknown as {
  RTCRtpScriptTransform: new (worker: unknown, options: object) => object
}

/** As Firefox and Safari have it: a worker, and options with the streams that the test gives. */
class ScriptTransform {
  constructor(worker: { readonly transform: (options: object) => void }, options: object) {
    worker.transform(options)
  }
}

/** With all keys, and pipes through it by the names that a gateway gives them. */
async function runWorker(t: Test, { hasTransforms = false } = {}) {
  t.intercept(browser, 'RTCRtpScriptTransform', {
    value: hasTransforms ? ScriptTransform : undefined,
    writable: true,
    configurable: true,
  })
  const file = join(PROJECT_ROOT, 'node_modules/livekit-client/dist/livekit-client.e2ee.worker.js')
  const quiet = Object.fromEntries(['log', 'info', 'debug', 'warn', 'error'].map(name => [name, () => {}]))
  const acknowledged: (() => void)[] = []
  const postMessage = ({ kind }: { kind: string }) => void (kind === 'initAck' && acknowledged.shift()?.())
  const names = { crypto, TransformStream, TextEncoder, setTimeout, clearTimeout, ArrayBuffer, Uint8Array }
  const self: Record<string, unknown> = { ...names, console: quiet, postMessage, onmessage: null }
  self.self = self
  self.RTCTransformEvent = Object
  runInNewContext(readFileSync(file, 'utf8'), self)
  const worker = {
    postMessage: (data: object) => (self.onmessage as (event: object) => void)({ data }),
    transform: ({ readableStream: readable, writableStream: writable, ...options }: Streams & object) =>
      (self.onrtctransform as (event: object) => void)({ transformer: { readable, writable, options } }),
    terminate: () => {},
  } as unknown as Parameters<typeof liveKitEncryption>[1]
  const call = new OwnCall()
  t.teardown(() => call.end())
  const { keyProvider } = liveKitEncryption(call, worker)
  const post = (kind: string, data: object) => worker.postMessage({ kind, data })
  /** Until the worker has taken all that was posted. */
  const settle = async () => {
    const settled = new Promise<void>(resolve => acknowledged.push(resolve))
    post('init', { keyProviderOptions: keyProvider.getOptions(), loglevel: 5 })
    await settled
  }
  await settle()
  // With one spare key each.
  while (keyProvider.getKeys().length < 6) await new Promise(resolve => setImmediate(resolve))
  for (const info of keyProvider.getKeys()) post('setKey', info)
  for (const participantIdentity of ['ann', 'bob', 'cat'])
    post('enable', { enabled: true, participantIdentity })
  const pipe = (kind: 'encode' | 'decode', identity: string, trackId: string) => {
    const [before, after] = [new TransformStream<Frame, Frame>(), new TransformStream<Frame, Frame>()]
    const streams = { readableStream: before.readable, writableStream: after.writable }
    const open = (participantIdentity: string, isReuse: boolean) => {
      const data = { ...streams, trackId, participantIdentity, hasPacketTrailer: false }
      if (hasTransforms) new browser.RTCRtpScriptTransform(worker, { kind, ...data })
      else post(kind, { ...data, isReuse })
    }
    open(identity, false)
    const [writer, reader] = [before.writable.getWriter(), after.readable.getReader()]
    let timestamp = 0
    /** The frame on the other side; undefined for none. */
    const pass = async (text: string) => {
      await settle()
      const data = Uint8Array.from(Buffer.from(text, 'latin1')).buffer
      const frame = { data, timestamp: timestamp++, getMetadata: () => ({ synchronizationSource: 7 }) }
      const first = reader.read()
      void writer.write(frame)
      // It passes always, and shows that the first does not.
      void writer.write({ ...frame, data: new ArrayBuffer(0) })
      const { value } = await first
      if (value === undefined || value.data.byteLength === 0) return undefined
      await reader.read()
      return Buffer.from(value.data).toString('latin1')
    }
    return { pass, reuse: (by: string) => open(by, true) }
  }
  return { post, pipe }
}

const SPOKEN = 'nobody else is to hear this'

for (const hasTransforms of [false, true])
  t.test(
    `no track of the gateway has the worker send in the clear, or play clear frames, ${hasTransforms ? 'with' : 'without'} transforms of it`,
    async t => {
      const { post, pipe } = await runWorker(t, { hasTransforms })
      const own = pipe('encode', 'ann', 'own track')
      const bob = pipe('decode', 'bob', 'own track')
      t.equal(await bob.pass(SPOKEN), undefined)
      post('removeTransform', { participantIdentity: 'bob', trackId: 'own track' })
      const sealed = await own.pass(SPOKEN)
      t.type(sealed, 'string', 'it sends')
      t.notMatch(sealed, SPOKEN)
      t.equal(await bob.pass(SPOKEN), undefined, 'one that has ended')
      t.equal(await pipe('decode', 'eve', 'of a stranger').pass(SPOKEN), undefined)
      // As it connects again by another label.
      t.equal(await pipe('encode', 'no label of the call', 'own track').pass(SPOKEN), undefined)
      t.not(await own.pass(SPOKEN), SPOKEN)
    },
  )

t.test('a transform opens frames of the participant whom it is shown as, and of no other', async t => {
  const { post, pipe } = await runWorker(t, { hasTransforms: true })
  const sealed = (await pipe('encode', 'ann', 'own track').pass(SPOKEN))!
  const cat = pipe('decode', 'cat', 'track')
  t.throws(() => pipe('decode', 'ann', 'track'), 'it is shown as Cat still')
  t.equal(await cat.pass(sealed), undefined)
  post('removeTransform', { participantIdentity: 'cat', trackId: 'track' })
  t.equal(await pipe('decode', 'ann', 'track').pass(sealed), SPOKEN)
})

t.test('a receiver opens frames of the participant whom it is shown as, and of no other', async t => {
  const { post, pipe } = await runWorker(t)
  const sealed = (await pipe('encode', 'ann', 'own track').pass(SPOKEN))!
  const [cat, ann] = [pipe('decode', 'cat', 'track'), pipe('decode', 'ann', 'track')]
  t.equal(await cat.pass(sealed), undefined, 'two of one name')
  t.equal(await ann.pass(sealed), SPOKEN)
  const used = pipe('decode', 'cat', 'used again')
  used.reuse('ann')
  post('updateCodec', { participantIdentity: 'ann', trackId: 'used again', codec: 'vp8' })
  t.equal(await used.pass(sealed), undefined, 'it is shown as Cat still')
  post('removeTransform', { participantIdentity: 'cat', trackId: 'used again' })
  t.equal(await used.pass(sealed), SPOKEN)
  post('removeTransform', { participantIdentity: 'ann', trackId: 'used again' })
  used.reuse('cat')
  t.equal(await used.pass(sealed), undefined)
})
