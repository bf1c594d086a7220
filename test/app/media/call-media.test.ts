/** The keys of a call as its media takes, uses and drops them. */

import t, { type Test } from 'tap'
import type { CallEvents } from '../../../src/app/app.ts'
import { Emitter } from '../../../src/app/emitter.ts'
import { type CallMediaOptions, joinMedia, type MediaCall } from '../../../src/app/media/media.ts'

class UnansweredSocket {
  static opened = 0
  onclose: (() => void) | undefined

  constructor() {
    UnansweredSocket.opened++
  }

  close(): void {
    this.onclose?.()
  }

  send(): void {}
}

/** A call whose keys are those of these epochs, newest first. */
class KeyedCall extends Emitter<CallEvents> implements MediaCall {
  readonly callId = '42'
  readonly isVideo = false
  roomId = 1
  participants: MediaCall['participants'] = []
  // No answer comes: it is on its way into the room for ever.
  media: MediaCall['media'] = {
    kind: 'janus',
    state: 'ready',
    url: 'ws://127.0.0.1:9',
    roomToken: 'a',
    pluginToken: '1000,b',
  }
  state: MediaCall['state'] = 'active'
  keys: MediaCall['keys'] = []
  sendingKey: MediaCall['sendingKey']
  readonly asked: (string | undefined)[] = []

  has(sending: number, ...epochs: readonly number[]): void {
    this.keys = epochs.map(epoch => ({ epoch, key: new Uint8Array(32), fingerprint: `of ${epoch}` }))
    this.sendingKey = this.keys.find(({ epoch }) => epoch === sending)
    this.emit('changed', undefined)
  }

  is(state: MediaCall['state']): void {
    this.state = state
    this.emit('changed', undefined)
  }

  async askForKey(userId?: string): Promise<void> {
    this.asked.push(userId)
  }
}

/** A call that uses epoch 1, and the messages to the frames' worker from here on. */
function open(t: Test) {
  const browser = {
    RTCRtpScriptTransform: class {},
    WebSocket: UnansweredSocket,
    addEventListener: () => undefined,
  }
  for (const [name, value] of Object.entries(browser))
    t.intercept(globalThis, name as keyof typeof globalThis, { value, configurable: true })
  const told: string[] = []
  const worker = {
    postMessage: ({ kind, epoch }: { readonly kind: string; readonly epoch?: number }) =>
      told.push(`${kind} ${epoch}`),
    terminate: () => undefined,
  }
  const call = new KeyedCall()
  call.has(1, 1)
  const newWorker = () => worker as unknown as ReturnType<NonNullable<CallMediaOptions['newWorker']>>
  const media = joinMedia(call, { newWorker, microphone: false, camera: false })
  t.teardown(() => media.leave())
  told.length = 0
  return { call, media, take: () => told.splice(0) }
}

t.test(
  'frames are opened with the keys that the call has, and sealed with the one that it sends with',
  async t => {
    const { call, take } = open(t)
    call.has(1, 2, 1)
    t.same(take(), ['set-key 2'])
    call.has(2, 2, 1)
    t.same(take(), ['use-key 2'])
    call.has(2, 2)
    t.same(take(), ['drop-key 1'])
    call.has(2, 2)
    t.same(take(), [], 'nothing is new')
  },
)

t.test('each state comes as one event, and leaving is the last', async t => {
  const { media } = open(t)
  const states: string[] = []
  media.on('state', state => states.push(state))
  t.equal(media.state, 'connecting')
  media.leave()
  media.leave()
  t.same([states, media.state], [['closed'], 'closed'])
})

t.test('newer tokens of the record are taken, and older ones never', async t => {
  const { call } = open(t)
  const opened = UnansweredSocket.opened
  const tokenOf = (end: number) => {
    call.media = { ...call.media!, pluginToken: `${end},b` }
    call.has(1, 1)
    return UnansweredSocket.opened - opened
  }
  t.same([tokenOf(1_000), tokenOf(2_000), tokenOf(2_000), tokenOf(1_500)], [0, 1, 1, 1])
})

t.test('another room of the record is joined, once its tokens are here', async t => {
  const { call } = open(t)
  const opened = UnansweredSocket.opened
  const { media } = call
  call.roomId = 2
  call.media = { kind: 'janus', state: 'pending' }
  call.has(1, 1)
  t.equal(UnansweredSocket.opened - opened, 0)
  call.media = media
  for (const _ of ['once', 'not twice']) call.has(1, 1)
  t.equal(UnansweredSocket.opened - opened, 1)
})

t.test('a call by LiveKit is refused, with the name of the module for it', async t => {
  const { call, media } = open(t)
  const errors: unknown[] = []
  media.on('error', error => errors.push(error))
  call.roomId = 2
  call.media = { kind: 'livekit', state: 'ready', url: 'ws://127.0.0.1:9', token: 'a', keySize: 256 }
  for (const _ of ['once', 'not twice']) call.has(1, 1)
  t.match(errors, [{ code: 'MEDIA_UNSUPPORTED', message: /@callsign\/sdk\/app\/livekit/ }])
  t.equal(errors.length, 1)
  t.equal(media.state, 'closed')
  t.throws(() => joinMedia(call), { code: 'MEDIA_UNSUPPORTED', message: /joinLiveKit/ })
})

t.test('once the call has ended its media is closed for good', async t => {
  const { call, media } = open(t)
  call.is('ended')
  t.equal(media.state, 'closed')
  call.is('active')
  call.has(2, 2, 1)
  t.equal(media.state, 'closed')
})
