/** A worker that does not load, or fails: media is closed, and the app hears why. */

import t, { type Test } from 'tap'
import { GatewayMedia, type GatewayMediaOptions } from '../../../src/app/media/media.ts'
import { withSoundCoding } from '../../../src/app/media/publisher.ts'

type Kind = 'error' | 'messageerror' | 'message'

/** Media with a worker that does nothing until the test has it do so. */
function open(t: Test) {
  const waits: { readonly run: () => void; readonly ms: number | undefined }[] = []
  const sockets: { onclose?: () => void }[] = []
  const browser = {
    RTCRtpScriptTransform: class {},
    WebSocket: class {
      onclose?: () => void
      constructor() {
        sockets.push(this)
      }
      close() {}
      send() {}
    },
    addEventListener: () => undefined,
    setTimeout: (run: () => void, ms?: number) => waits.push({ run, ms }),
    clearTimeout: (timer?: number) => timer !== undefined && waits.splice(timer - 1, 1, NOTHING),
  }
  for (const [name, value] of Object.entries(browser))
    t.intercept(globalThis, name as keyof typeof globalThis, { value, configurable: true })
  const told: unknown[] = []
  const worker: Record<string, (event?: unknown) => void> = {
    postMessage: request => told.push(request),
    terminate: () => told.push('terminate'),
  }
  const newWorker = () => worker as unknown as ReturnType<NonNullable<GatewayMediaOptions['newWorker']>>
  const media = new GatewayMedia({ callId: '7', newWorker })
  const heard: unknown[] = []
  media.on('error', ({ code }) => heard.push(code))
  media.on('state', state => heard.push(state))
  media.on('quality', ({ feed, quality }) => heard.push(`${feed} ${quality}`))
  const join = () => media.join({ url: 'ws://janus', roomId: 1, roomToken: '', pluginToken: '' })
  const says = (kind: Kind, data?: unknown) => worker[`on${kind}`]!({ data })
  return { media, heard, told, sockets, join, says, run: (ms: number) => run(waits, ms) }
}

const NOTHING = { run: () => {}, ms: undefined }

function run(waits: readonly { readonly run: () => void; readonly ms: number | undefined }[], ms: number) {
  for (const wait of [...waits]) if (wait.ms === ms) wait.run()
}

t.test('a worker that says nothing for five seconds closes the media, for good', async t => {
  const { media, heard, told, sockets, join, run } = open(t)
  void join()
  run(5_000)
  t.same(heard, ['connecting', 'MEDIA_UNSUPPORTED', 'closed'])
  t.equal(told.at(-1), 'terminate')
  await join()
  t.equal(media.state, 'closed')
  t.equal(sockets.length, 1, 'no further attempt')
})

for (const kind of ['error', 'messageerror'] as const)
  t.test(`so does its ${kind}, also later`, async t => {
    const { media, heard, join, says, run } = open(t)
    void join()
    says('message', { kind: 'ready' })
    run(5_000)
    t.equal(media.state, 'connecting')
    says(kind)
    says(kind)
    t.same(heard, ['connecting', 'MEDIA_UNSUPPORTED', 'closed'])
  })

t.test('media that was left hears nothing of its worker', async t => {
  const { media, heard, says, run } = open(t)
  media.leave()
  run(5_000)
  says('error')
  t.same(heard, ['closed'])
})

t.test('two seconds out of the room this device says that its own link is lost', async t => {
  const { media, heard, join, sockets, run } = open(t)
  void join()
  sockets[0]!.onclose!()
  await new Promise(setImmediate)
  run(2_000)
  t.same(heard, ['connecting', 'MEDIA_UNANSWERED', 'reconnecting', 'own lost'])
  media.leave()
  t.same(heard.slice(4), ['closed', 'own good'])
})

t.test('a page that may have no worker gets no media', async t => {
  t.intercept(globalThis, 'RTCRtpScriptTransform' as keyof typeof globalThis, { value: class {} })
  const newWorker = () => {
    throw new Error('SecurityError')
  }
  t.throws(() => new GatewayMedia({ callId: '7', newWorker }), {
    code: 'MEDIA_UNSUPPORTED',
    message: /Content-Security-Policy by worker-src blob:, .* newWorker/,
    cause: { message: 'SecurityError' },
  })
})

t.test('the answer of the gateway asks for long packets, and of one size', async t => {
  const sdp = (...lines: readonly string[]) =>
    ['m=audio 9 UDP/TLS/RTP/SAVPF 111', ...lines, 'm=video 9 UDP/TLS/RTP/SAVPF 96', ''].join('\r\n')
  const rtpmap = 'a=rtpmap:111 opus/48000/2'
  const long = 'a=ptime:40'
  const asked = (...lines: readonly string[]) => withSoundCoding(sdp(...lines), true)
  t.equal(asked(rtpmap), sdp(rtpmap, 'a=fmtp:111 cbr=1', long))
  t.equal(
    asked(rtpmap, 'a=fmtp:111 useinbandfec=1;usedtx=1'),
    sdp(rtpmap, long, 'a=fmtp:111 useinbandfec=1;usedtx=0;cbr=1'),
  )
  t.equal(asked('a=rtpmap:0 PCMU/8000'), sdp('a=rtpmap:0 PCMU/8000'))
  const format = 'a=fmtp:111 usedtx=1'
  t.equal(
    withSoundCoding(sdp(rtpmap, format), false),
    sdp(rtpmap, long, format),
    'the app may have it otherwise',
  )
})
