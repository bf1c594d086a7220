/** LiveKit's own worker as a call has it, at a gateway that names and ends tracks as it likes. */

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

/** With all keys, and pipes through it by the names that a gateway gives them. */
async function runWorker(t: Test) {
  const file = join(PROJECT_ROOT, 'node_modules/livekit-client/dist/livekit-client.e2ee.worker.js')
  const quiet = Object.fromEntries(['log', 'info', 'debug', 'warn', 'error'].map(name => [name, () => {}]))
  const acknowledged: (() => void)[] = []
  const postMessage = ({ kind }: { kind: string }) => void (kind === 'initAck' && acknowledged.shift()?.())
  const names = { crypto, TransformStream, TextEncoder, setTimeout, clearTimeout, ArrayBuffer, Uint8Array }
  const self: Record<string, unknown> = { ...names, console: quiet, postMessage, onmessage: null }
  self.self = self
  runInNewContext(readFileSync(file, 'utf8'), self)
  const worker = {
    postMessage: (data: object) => (self.onmessage as (event: object) => void)({ data }),
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
    const open = (participantIdentity: string, isReuse: boolean) =>
      post(kind, { ...streams, trackId, participantIdentity, isReuse, hasPacketTrailer: false })
    open(identity, false)
    const [writer, reader] = [before.writable.getWriter(), after.readable.getReader()]
    let timestamp = 0
    /** What comes of a frame; undefined for none. */
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

t.test('no track of the gateway has the worker send in the clear, or play what is not encrypted', async t => {
  const { post, pipe } = await runWorker(t)
  const own = pipe('encode', 'ann', 'own track')
  const bob = pipe('decode', 'bob', 'own track')
  t.equal(await bob.pass(SPOKEN), undefined)
  post('removeTransform', { participantIdentity: 'bob', trackId: 'own track' })
  const sealed = await own.pass(SPOKEN)
  t.type(sealed, 'string', 'it sends')
  t.notMatch(sealed, SPOKEN)
  t.equal(await bob.pass(SPOKEN), undefined, 'one that has ended')
  t.equal(await pipe('decode', 'eve', 'of a stranger').pass(SPOKEN), undefined)
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
  used.reuse('ann')
  t.equal(await used.pass(sealed), SPOKEN)
})
