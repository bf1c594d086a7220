/** The keys of a call as LiveKit's SDK gets them, and its room as it follows the call. */

import { BaseKeyProvider, type KeyInfo, KeyProviderEvent, type Room } from 'livekit-client'
import t, { type Test } from 'tap'
import type { CallEvents } from '../../../src/app/app.ts'
import { Emitter } from '../../../src/app/emitter.ts'
import {
  feedLiveKitKeys,
  joinLiveKit,
  type LiveKitCall,
  type LiveKitSlot,
  liveKitEncryption,
  liveKitKey,
} from '../../../src/app/livekit/livekit.ts'
import { fromHex, toHex } from '../../support/bytes.ts'
import { readVectors } from '../../support/vectors.ts'

interface Vectors {
  readonly keys: readonly {
    readonly call_key_hex: string
    readonly call_id: string
    readonly epoch: number
    readonly user_id: string
    readonly device_id: string
    readonly key: string
    readonly key_index: number
    readonly aes_256_hex: string
  }[]
}

const { keys: vectors } = readVectors<Vectors>('livekit-keys')

/** Ann's device 1 in a call with Bob's device 2. */
class KeyedCall extends Emitter<CallEvents> implements LiveKitCall {
  readonly callId = '42'
  roomId = 1
  state: LiveKitCall['state'] = 'active'
  keys: LiveKitCall['keys'] = []
  sendingKey: LiveKitCall['sendingKey']
  media: LiveKitCall['media'] = { kind: 'livekit', url: 'ws://127.0.0.1:9', token: 'one', keySize: 256 }
  self: LiveKitCall['self'] = { userId: '1', deviceId: '1', state: 'joined', identity: 'ann' }
  participants: LiveKitCall['participants'] = [
    this.self!,
    { userId: '2', deviceId: '2', state: 'joined', identity: 'bob' },
    { userId: '3', state: 'ringing' },
    { userId: '4', deviceId: '4', state: 'left', identity: 'dan' },
  ]

  has(sending: number, ...epochs: readonly number[]): void {
    this.keys = epochs.map(epoch => ({ epoch, key: keyOf(epoch), fingerprint: `of ${epoch}` }))
    this.sendingKey = this.keys.find(({ epoch }) => epoch === sending)
    this.emit('changed', undefined)
  }

  change(members: Partial<Pick<KeyedCall, 'roomId' | 'state' | 'media' | 'self' | 'participants'>>): void {
    Object.assign(this, members)
    this.emit('changed', undefined)
  }
}

function keyOf(epoch: number): Uint8Array {
  return new Uint8Array(32).fill(epoch)
}

function keyFor(epoch: number, device: string): string {
  return liveKitKey(keyOf(epoch), { callId: '42', epoch, userId: device, deviceId: device })
}

/** A call that uses epoch 1, and the slots set since the last look: label, index and use. */
function feed(t: Test) {
  const call = new KeyedCall()
  call.has(1, 1)
  const slots: LiveKitSlot[] = []
  t.teardown(feedLiveKitKeys(call, slot => slots.push(slot)))
  const take = () => {
    const told = slots.splice(0)
    return told.map(
      one => `${one.identity} ${one.keyIndex}${one.isSending ? ' sends' : one.isOver ? ' over' : ''}`,
    )
  }
  return { call, slots, take }
}

t.test('keys are those of the vectors, and the AES keys that LiveKit derives from them', async t => {
  for (const one of vectors) {
    const sender = { callId: one.call_id, epoch: one.epoch, userId: one.user_id, deviceId: one.device_id }
    const key = liveKitKey(fromHex(one.call_key_hex), sender)
    t.equal(key, one.key)
    t.equal(one.epoch % 16, one.key_index)
    const secret = await crypto.subtle.importKey('raw', Buffer.from(key), 'PBKDF2', false, ['deriveBits'])
    const salt = Buffer.from('LKFrameEncryptionKey')
    const pbkdf2 = { name: 'PBKDF2', hash: 'SHA-256', salt, iterations: 100_000 }
    t.equal(toHex(new Uint8Array(await crypto.subtle.deriveBits(pbkdf2, secret, 256))), one.aes_256_hex)
  }
})

t.test('each device has a key of its own for each epoch, and seals with the one that all have', t => {
  const { call, slots, take } = feed(t)
  t.same(
    slots.map(({ identity, key }) => [identity, key]),
    [
      ['bob', keyFor(1, '2')],
      ['ann', keyFor(1, '1')],
    ],
  )
  t.same(take(), ['bob 1', 'ann 1 sends'])
  call.has(1, 2, 1)
  t.same(take(), ['bob 2'], 'the others may send with it already')
  call.has(2, 2, 1)
  t.same(take(), ['ann 2 sends'])
  call.change({})
  t.same(take(), [])
  t.end()
})

t.test('a slot is overwritten when its epoch ends, and the one to send with stays the newest', t => {
  const { call, slots, take } = feed(t)
  call.has(2, 2, 1)
  take()
  call.has(2, 2)
  const over = slots.filter(({ isOver }) => isOver)
  t.equal(over.length, 2)
  t.not(over[0]!.key, keyFor(1, '2'))
  t.not(over[0]!.key, over[1]!.key)
  t.match(over[0]!.key, /^[A-Za-z0-9+/]{43}=$/)
  t.same(take(), ['bob 1 over', 'ann 1 over', 'ann 2 sends'])
  call.has(18, 18, 2)
  t.same(take(), ['bob 2', 'ann 2 sends'], 'a key that comes sixteen epochs later takes the slot')
  t.end()
})

t.test('keys of a member who leaves, and all when the call ends, are overwritten', t => {
  const { call, take } = feed(t)
  take()
  call.change({ participants: [call.self!] })
  t.same(take(), ['bob 1 over'])
  const next = { ...call.self!, identity: 'ann in the next room' }
  call.change({ self: next, participants: [next] })
  t.same(take(), ['ann 1 over', 'ann in the next room 1 sends'])
  call.change({ state: 'ended' })
  t.same(take(), ['ann in the next room 1 over'])
  call.has(2, 2)
  t.same(take(), [], 'it follows no more')
  t.end()
})

t.test('no other member gets the label of this device, whatever the server says', t => {
  const { call, take } = feed(t)
  take()
  call.change({
    participants: [call.self!, { userId: '2', deviceId: '2', state: 'joined', identity: 'ann' }],
  })
  t.same(take(), ['bob 1 over'])
  call.has(1, 2, 1)
  t.same(take(), [])
  t.end()
})

t.test('a fifteenth epoch within a minute waits', t => {
  let nowMs = 0
  const due: { run: () => void; afterMs: number }[] = []
  t.intercept(performance, 'now', { value: () => nowMs, configurable: true })
  const value = (run: () => void, afterMs: number) => due.push({ run, afterMs })
  t.intercept(globalThis, 'setTimeout', { value, configurable: true })
  const { call, take } = feed(t)
  for (let epoch = 2; epoch <= 14; epoch++) {
    nowMs += 1_000
    call.has(epoch, epoch, epoch - 1)
  }
  t.same(due, [])
  take()
  call.has(15, 15, 14)
  t.same(take(), ['bob 13 over', 'ann 13 over', 'ann 14 sends'], 'it goes on with the one before')
  t.equal(due.at(-1)!.afterMs, 47_000)
  nowMs += 47_000
  due.at(-1)!.run()
  t.same(take(), ['bob 15', 'ann 15 sends'])
  t.end()
})

interface Posted {
  readonly kind: string
  readonly data: { readonly participantIdentity: string; readonly keyIndex?: number } & Record<
    string,
    unknown
  >
}

/** The encryption of a call that uses epoch 1, and what its worker gets, in short. */
function encrypt(call = new KeyedCall(), options = {}) {
  call.has(1, 1)
  const posted: Posted[] = []
  let isTerminated = false
  const worker = {
    postMessage: (message: Posted) => posted.push(structuredClone(message)),
    terminate: () => {
      isTerminated = true
    },
  } as unknown as Parameters<typeof liveKitEncryption>[1]
  const { keyProvider } = liveKitEncryption(call, worker, options)
  const post = (kind: string, data: object) => worker.postMessage({ kind, data })
  // As LiveKit's own manager does.
  keyProvider.on(KeyProviderEvent.SetKey, (info, updateCurrentKeyIndex) =>
    post('setKey', { ...info, updateCurrentKeyIndex }),
  )
  const current = () => {
    const told = posted.splice(0).filter(({ data }) => data.updateCurrentKeyIndex)
    return told.map(({ data }) => `${data.participantIdentity} ${data.keyIndex}`)
  }
  return { call, keyProvider, post, posted, current, isTerminated: () => isTerminated }
}

/** Until the keys that are on their way are with the provider. */
async function settle(
  provider: BaseKeyProvider,
  isDone: (keys: readonly KeyInfo[]) => boolean,
): Promise<void> {
  while (!isDone(provider.getKeys())) await new Promise(resolve => setImmediate(resolve))
}

t.test('LiveKit gets the options that its keys need', t => {
  const { keyProvider } = encrypt()
  const options = { sharedKey: false, ratchetWindowSize: 0, failureTolerance: -1, keySize: 256 }
  t.match(keyProvider.getOptions(), options)
  t.end()
})

t.test('keys of 128 bits need the server and the app', t => {
  const weak = new KeyedCall()
  weak.media = { kind: 'livekit', keySize: 128 }
  t.throws(() => encrypt(weak), { code: 'MEDIA_UNSUPPORTED' })
  t.equal(encrypt(weak, { allowAes128: true }).keyProvider.getOptions().keySize, 128)
  t.equal(encrypt(new KeyedCall(), { allowAes128: true }).keyProvider.getOptions().keySize, 256)
  weak.media = { kind: 'livekit', keySize: 64 }
  t.throws(() => encrypt(weak, { allowAes128: true }), { code: 'MEDIA_UNSUPPORTED' })
  t.end()
})

t.test('a livekit-client that knows no other key than one of 128 bits is refused', t => {
  const { getOptions } = BaseKeyProvider.prototype
  const without = function (this: BaseKeyProvider) {
    const { keySize: _, ...options } = getOptions.call(this)
    return options
  }
  t.intercept(BaseKeyProvider.prototype, 'getOptions', { value: without, configurable: true })
  t.throws(() => encrypt(), { code: 'MEDIA_UNSUPPORTED' })
  t.end()
})

t.test('this device seals with its own key, and by another’s label with one that no device has', async t => {
  const { call, keyProvider, current } = encrypt()
  await settle(keyProvider, keys => keys.length === 4)
  t.same(current(), ['bob 16', 'ann 16', 'ann 1'])
  t.equal(keyProvider.getLatestManuallySetKeyIndex(), 1)
  call.has(2, 2, 1)
  await settle(keyProvider, keys => keys.length === 6)
  t.same(current(), ['ann 2'])
  call.has(2, 2)
  await settle(keyProvider, keys => keys.length === 4)
  t.same(
    keyProvider.getKeys().map(({ participantIdentity, keyIndex }) => `${participantIdentity} ${keyIndex}`),
    ['bob 16', 'ann 16', 'bob 2', 'ann 2'],
    'what is over is not given again',
  )
})

t.test('the worker gets each key once, and seals and opens tracks that the gateway calls clear', async t => {
  const { call, keyProvider, post, posted, isTerminated } = encrypt()
  await settle(keyProvider, keys => keys.length === 4)
  posted.splice(0)
  for (const info of keyProvider.getKeys()) post('setKey', { ...info, updateCurrentKeyIndex: true })
  t.same(posted, [])
  const [bob] = keyProvider.getKeys()
  for (const keyIndex of [1, 16])
    post('setKey', { ...bob, participantIdentity: 'cat', keyIndex, updateCurrentKeyIndex: true })
  t.match(
    posted.splice(0).map(({ data }) => data),
    [
      { participantIdentity: 'cat', keyIndex: 1, updateCurrentKeyIndex: false },
      { participantIdentity: 'cat', keyIndex: 16, updateCurrentKeyIndex: true },
    ],
  )
  post('enable', { enabled: false, participantIdentity: 'bob' })
  post('updateCodec', { participantIdentity: 'ann', trackId: '1', codec: 'vp8' })
  t.same(posted, [
    { kind: 'enable', data: { enabled: true, participantIdentity: 'bob' } },
    { kind: 'updateCodec', data: { participantIdentity: 'ann', trackId: '1', codec: 'vp8' } },
  ])
  call.change({ state: 'ended' })
  t.ok(isTerminated())
})

/** A room that follows each order, or fails. */
class StandInRoom {
  state = 'disconnected'
  readonly told: string[] = []
  #onLost: ((reason?: number) => void) | undefined
  isFailing = false

  on(_: string, listener: (reason?: number) => void): void {
    this.#onLost = listener
  }

  off(): void {
    this.#onLost = undefined
  }

  async setE2EEEnabled(isEnabled: boolean): Promise<void> {
    this.told.push(`encrypt ${isEnabled}`)
  }

  async connect(url: string, token: string): Promise<void> {
    this.told.push(`connect ${url} ${token}`)
    if (this.isFailing) throw new Error('no such room')
    this.state = 'connected'
  }

  async disconnect(): Promise<void> {
    if (this.state === 'disconnected') return
    this.told.push('disconnect')
    this.lose(1)
  }

  /** By the reason of LiveKit's protocol: 1 is one's own wish. */
  lose(reason?: number): void {
    this.state = 'disconnected'
    this.#onLost?.(reason)
  }
}

/** A room that follows a call, and waits for no time. */
function join(t: Test) {
  const value = (run: () => void) => setImmediate(run)
  t.intercept(globalThis, 'setTimeout', { value, configurable: true })
  const call = new KeyedCall()
  const room = new StandInRoom()
  const errors: unknown[] = []
  const leave = joinLiveKit(call, room as unknown as Room, error => errors.push(error))
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
    return room.told.splice(0)
  }
  return { call, room, errors, leave, turns }
}

const CONNECTED = ['encrypt true', 'connect ws://127.0.0.1:9 one']

t.test('a room is entered when the server lets this device in, and once', async t => {
  const { call, turns } = join(t)
  t.same(await turns(), CONNECTED)
  call.change({ media: { ...call.media!, token: 'two' } })
  t.same(await turns(), [], 'a newer token is for the next time')
})

t.test('a lost connection, and another room, take the newest token', async t => {
  const { call, room, turns } = join(t)
  await turns()
  call.change({ media: { ...call.media!, token: 'two' } })
  room.lose()
  t.same(await turns(), ['encrypt true', 'connect ws://127.0.0.1:9 two'])
  call.change({ roomId: 2, media: { ...call.media!, url: 'ws://127.0.0.1:10', token: 'three' } })
  t.same(await turns(), ['disconnect', 'encrypt true', 'connect ws://127.0.0.1:10 three'])
})

t.test('an attempt that fails is reported and repeated', async t => {
  const { room, errors, turns } = join(t)
  room.isFailing = true
  await turns()
  t.ok(errors.length > 1)
  room.isFailing = false
  await turns()
  t.equal(room.state, 'connected')
  room.lose(1)
  t.same(await turns(), [], 'the app has left it')
})

t.test('a room is left with the call, or before', async t => {
  for (const isApp of [false, true]) {
    const { call, room, leave, turns } = join(t)
    await turns()
    if (isApp) leave()
    else call.change({ state: 'ended' })
    t.same(await turns(), ['disconnect'])
    call.change({ state: 'active', roomId: 3 })
    room.lose()
    t.same(await turns(), [])
  }
})
