/** Frames of a call as they are sent: SFrame's and our own vectors, tampering, replays, and one key shared by many senders. */

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import type { Bytes } from '../../../src/app/devices/device-keys.ts'
import { FrameCryptor, ReplayWindow } from '../../../src/app/media/frame-cryptor.ts'
import {
  deriveMediaBase,
  escapeNal,
  type FrameFormat,
  openFrame,
  parseFrame,
  sealFrame,
  unescapeNal,
} from '../../../src/app/media/media-frame.ts'
import {
  deriveSFrameKey,
  formatHeader,
  importBaseKey,
  openSFrame,
  parseHeader,
  sealSFrame,
} from '../../../src/app/media/sframe.ts'
import { flipBit, fromHex, toHex } from '../../support/bytes.ts'
import { checkProperty } from '../../support/property.ts'
import { readVectors } from '../../support/vectors.ts'

interface Vectors {
  readonly headers: readonly { readonly kid: string; readonly counter: string; readonly header_hex: string }[]
  readonly suite_5: Readonly<
    Record<
      'kid' | 'counter' | 'base_key_hex' | 'sframe_salt_hex' | 'metadata_hex' | 'plain_hex' | 'sealed_hex',
      string
    >
  >
  readonly call_key_hex: string
  readonly call_id: string
  readonly frames: readonly FrameVector[]
}

interface FrameVector {
  readonly format: FrameFormat
  readonly epoch: number
  readonly kid_hex: string
  readonly counter: string
  readonly clear_bytes: number
  readonly base_hex: string
  readonly sframe_salt_hex: string
  readonly frame_hex: string
  readonly sealed_hex: string
}

const vectors = readVectors<Vectors>('media-frames')
const bytesOf = (hex: string): Bytes => Uint8Array.from(fromHex(hex))
const CALL_KEY = bytesOf(vectors.call_key_hex)
const CALL_ID = vectors.call_id
/** As many random frames as `CALLSIGN_MEDIA_FRAMES` says: a fault in the escape shows in one of some hundred. */
const RANDOM_FRAMES = Number(process.env.CALLSIGN_MEDIA_FRAMES ?? 5_000)
const OPUS = bytesOf(`78${'55aa'.repeat(20)}`)

function cryptorWith(...epochs: readonly number[]): FrameCryptor {
  const cryptor = new FrameCryptor(CALL_ID)
  for (const epoch of epochs) cryptor.setKey(epoch, keyOf(epoch))
  if (epochs[0] !== undefined) cryptor.useKey(epochs[0])
  return cryptor
}

const keyOf = (epoch: number): Bytes =>
  Uint8Array.from(createHash('sha256').update(`epoch ${epoch}`).digest())
const reasonOf = async (cryptor: FrameCryptor, frame: Bytes, format: FrameFormat = 'opus') => {
  const opened = await cryptor.open(format, frame)
  return opened.kind === 'failed' ? opened.reason : toHex(opened.frame)
}
const headerOf = (frame: Bytes) => parseHeader(frame)!

t.test('headers are those of RFC 9605, appendix C.1', async t => {
  for (const { kid, counter, header_hex } of vectors.headers) {
    const header = { kid: BigInt(kid), counter: BigInt(counter) }
    t.equal(toHex(formatHeader(header)), header_hex)
    t.same(parseHeader(fromHex(header_hex)), { ...header, size: header_hex.length / 2 })
    t.equal(parseHeader(fromHex(header_hex.slice(2)).subarray(0, 0)), undefined)
  }
  const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
  checkProperty(t, [uint64, uint64], (kid, counter) => {
    const formatted = formatHeader({ kid, counter })
    const parsed = parseHeader(formatted)!
    const isCut = parseHeader(formatted.subarray(0, -1)) === undefined
    return parsed.kid === kid && parsed.counter === counter && parsed.size === formatted.length && isCut
  })
})

t.test('suite 5 gives the values of RFC 9605, appendix C.3', async t => {
  const { suite_5: one } = vectors
  const [kid, counter] = [BigInt(one.kid), BigInt(one.counter)]
  const key = await deriveSFrameKey(await importBaseKey(bytesOf(one.base_key_hex)), kid)
  t.equal(toHex(key.salt), one.sframe_salt_hex)
  const metadata = fromHex(one.metadata_hex)
  const sealed = await sealSFrame(key, { kid, counter }, metadata, bytesOf(one.plain_hex))
  t.equal(toHex(sealed), one.sealed_hex)
  const { size } = headerOf(sealed)
  const opened = await openSFrame(key, counter, sealed.subarray(0, size), metadata, sealed.subarray(size))
  t.equal(toHex(opened), one.plain_hex)
})

t.test('frames of each codec are sealed and opened as their vectors say', async t => {
  for (const vector of vectors.frames) {
    const { format, epoch, sealed_hex, frame_hex, clear_bytes } = vector
    const [kid, counter] = [BigInt(`0x${vector.kid_hex}`), BigInt(vector.counter)]
    const base = await deriveMediaBase(CALL_KEY, CALL_ID, epoch)
    t.equal(toHex(base), vector.base_hex)
    const key = await deriveSFrameKey(await importBaseKey(base), kid)
    t.equal(toHex(key.salt), vector.sframe_salt_hex)
    const sealed = await sealFrame(format, key, { kid, counter }, bytesOf(frame_hex))
    t.equal(toHex(sealed!), sealed_hex)
    const parsed = parseFrame(format, bytesOf(sealed_hex))!
    t.match(parsed, { kid, counter, clear: { length: clear_bytes } })
    t.equal(toHex(await openFrame(parsed, key)), frame_hex)
    const cryptor = new FrameCryptor(CALL_ID)
    cryptor.setKey(epoch, CALL_KEY)
    t.equal(await reasonOf(cryptor, bytesOf(sealed_hex), format), frame_hex)
  }
})

t.test('a change of any byte is noticed, but for the parameter sets before a slice', async t => {
  for (const { format, epoch, sealed_hex, clear_bytes } of vectors.frames) {
    const sealed = bytesOf(sealed_hex)
    const from = format === 'h264' ? clear_bytes - 3 : 0
    const cryptor = new FrameCryptor(CALL_ID)
    cryptor.setKey(epoch, CALL_KEY)
    const opened: number[] = []
    for (let at = from; at < Math.min(sealed.length, 150); at++) {
      const changed = Uint8Array.from(flipBit(sealed, 8 * at + (at % 8)))
      if ((await cryptor.open(format, changed)).kind === 'opened') opened.push(at)
      const cut = sealed.slice(0, at)
      if ((await cryptor.open(format, cut)).kind === 'opened') opened.push(-at)
    }
    t.same(opened, [])
    t.equal((await cryptor.open(format, sealed)).kind, 'opened', 'the forged ones have left no trace')
  }
  const slice = vectors.frames.find(({ format, clear_bytes }) => format === 'h264' && clear_bytes > 20)!
  const cryptor = new FrameCryptor(CALL_ID)
  cryptor.setKey(slice.epoch, CALL_KEY)
  const longer = bytesOf(slice.sealed_hex.replace('0000000168', '00000168'))
  t.equal((await cryptor.open('h264', longer)).kind, 'opened', 'a start code of three bytes')
})

t.test('a frame that its codec does not make is not sent: it would be all clear', async t => {
  const cryptor = cryptorWith(1)
  t.equal(await cryptor.seal('vp8', bytesOf('100200')), undefined, 'a key frame of VP8 without its size')
  t.equal(await cryptor.seal('vp8', bytesOf('3102')), undefined)
  t.equal(await cryptor.seal('h264', bytesOf('000000016742001f8c8d40501e90')), undefined, 'no slice')
  t.equal(await cryptor.seal('h264', bytesOf('00000001419a')), undefined)
  for (const format of ['opus', 'vp8', 'h264'] as const) {
    for (const frame of ['', '80', '31', 'e1000000000000000000'])
      t.equal(await reasonOf(cryptor, bytesOf(frame), format), 'malformed')
  }
})

t.test('a slice stays one NAL unit, and random ones come back as they were', async t => {
  const bytes = fc.array(fc.oneof(fc.constantFrom(0, 0, 1, 2, 3), fc.nat(255)), { maxLength: 60 })
  const before = fc.constantFrom([0x41, 0x9a, 0x24], [0x41, 1, 0], [0x41, 0, 0])
  const hasStartCode = (text: string) => /^(..)*?0000(00|01|02)/.test(text)
  checkProperty(
    t,
    [before, bytes],
    (clear, behind) => {
      const [start, nal] = [Uint8Array.from(clear), Uint8Array.from(behind)]
      const escaped = escapeNal(nal, start)
      const back = unescapeNal(escaped, start)
      return toHex(back) === toHex(nal) && !hasStartCode(toHex(start.subarray(1)) + toHex(escaped))
    },
    RANDOM_FRAMES,
  )
  const [ann, bob] = [cryptorWith(1), cryptorWith(1)]
  const start = bytesOf('00000001410000')
  let isSame = true
  for (let size = 0; size < 300; size++) {
    const frame = Uint8Array.from([...start, ...new Uint8Array(size)])
    const sealed = (await ann.seal('h264', frame))!
    isSame &&= !hasStartCode(toHex(sealed.subarray(5)))
    isSame &&= (await reasonOf(bob, sealed, 'h264')) === toHex(frame)
  }
  t.ok(isSame)
})

t.test('senders with one key, and one after a reload, never share key and nonce', async t => {
  const senders = Array.from({ length: 20 }, () => cryptorWith(1))
  const frames = await Promise.all(senders.flatMap(one => [one.seal('opus', OPUS), one.seal('opus', OPUS)]))
  const headers = frames.map(frame => headerOf(frame!))
  t.equal(new Set(headers.map(({ kid }) => kid)).size, senders.length)
  t.equal(new Set(headers.map(({ kid, counter }) => `${kid} ${counter}`)).size, frames.length)
  t.ok(headers.every(({ kid }) => kid >> 48n === 1n))
})

t.test(
  'the counter never goes back: not for a key that is used or sent again, nor for a later epoch',
  async t => {
    const ann = cryptorWith(1, 2)
    const next = async () => headerOf((await ann.seal('opus', OPUS))!)
    const first = await next()
    ann.useKey(1)
    ann.setKey(1, keyOf(1))
    t.same(await next(), { ...first, counter: first.counter + 1n })
    ann.useKey(2)
    t.match(await next(), { kid: first.kid + (1n << 48n), counter: first.counter + 2n })
    ann.useKey(1)
    t.same(await next(), { ...first, counter: first.counter + 3n })
    const both = await Promise.all([next(), next()])
    t.not(both[0].counter, both[1].counter)
  },
)

t.test('without a key nothing is sent, and nothing opened', async t => {
  const [ann, bob] = [cryptorWith(1), cryptorWith()]
  t.equal(await bob.seal('opus', OPUS), undefined)
  t.equal(bob.useKey(1), false)
  const frame = (await ann.seal('opus', OPUS))!
  t.equal(await reasonOf(bob, frame), 'no-key')
  bob.setKey(1, keyOf(7))
  t.equal(await reasonOf(bob, frame), 'not-authentic')
  bob.setKey(1, keyOf(1))
  t.equal(await reasonOf(bob, frame), toHex(OPUS))
  ann.dropKey(1)
  t.equal(await ann.seal('opus', OPUS), undefined)
  const other = new FrameCryptor('42')
  other.setKey(1, keyOf(1))
  t.equal(await reasonOf(other, frame), 'not-authentic', 'the key of another call')
})

t.test('a rotation loses no frame, and an epoch that was dropped is opened no more', async t => {
  const [ann, bob] = [cryptorWith(1), cryptorWith(1)]
  const before = (await ann.seal('opus', OPUS))!
  for (const each of [ann, bob]) each.setKey(2, keyOf(2))
  const late = (await ann.seal('opus', OPUS))!
  ann.useKey(2)
  const after = (await ann.seal('opus', OPUS))!
  for (const frame of [before, after, late]) t.equal((await bob.open('opus', frame)).kind, 'opened')
  const last = (await ann.seal('opus', OPUS))!
  bob.dropKey(2)
  t.equal(await reasonOf(bob, last), 'no-key')
  for (const epoch of [3, 4, 5, 6]) bob.setKey(epoch, keyOf(epoch))
  const oldest = cryptorWith(1)
  t.equal(await reasonOf(bob, (await oldest.seal('opus', OPUS))!), 'no-key', 'four are held, the newest')
})

t.test('another key for the epoch that is used is the one that seals from then on', async t => {
  const [ann, bob] = [cryptorWith(1), new FrameCryptor(CALL_ID)]
  bob.setKey(1, keyOf(7))
  ann.setKey(1, keyOf(7))
  const frame = await ann.seal('opus', OPUS)
  t.equal(frame && (await reasonOf(bob, frame)), toHex(OPUS))
})

t.test('a frame is opened once, in any order within the window', async t => {
  const [ann, bob] = [cryptorWith(1), cryptorWith(1)]
  const frames: Bytes[] = []
  for (let count = 0; count < 1_100; count++) frames.push((await ann.seal('opus', OPUS))!)
  const at = (index: number) => reasonOf(bob, frames.at(index)!)
  t.equal(await at(-1), toHex(OPUS))
  t.equal(await at(-1), 'replayed')
  t.equal(await at(-1024), toHex(OPUS))
  t.equal(await at(-1024), 'replayed')
  t.equal(await at(-1025), 'replayed', 'too old to tell')
  t.equal(await at(-500), toHex(OPUS))
  bob.setKey(1, keyOf(1))
  t.equal(await at(-500), 'replayed', 'the key was sent again')
  const twice = await Promise.all([at(-3), at(-3)])
  t.same(twice.sort(), [toHex(OPUS), 'replayed'])
  const newest = new ReplayWindow()
  t.same([newest.add(2n ** 64n - 2n), newest.add(2n ** 64n - 2n), newest.add(5n)], [true, false, false])
})

t.test('a page whose own frames come back takes another KID, and opens none of them', async t => {
  const [ann, bob] = [cryptorWith(1), cryptorWith(1)]
  const frame = (await ann.seal('opus', OPUS))!
  const forged = Uint8Array.from(flipBit(frame, 8 * frame.length - 1))
  t.equal(await reasonOf(ann, forged), 'not-authentic')
  t.equal(headerOf((await ann.seal('opus', OPUS))!).kid, headerOf(frame).kid, 'a forged one changes nothing')
  t.equal(await reasonOf(ann, frame), 'reflected')
  const next = (await ann.seal('opus', OPUS))!
  t.not(headerOf(next).kid, headerOf(frame).kid)
  t.equal(await reasonOf(bob, next), toHex(OPUS))
  for (let count = 0; count < 10; count++)
    t.equal(await reasonOf(ann, (await ann.seal('opus', OPUS))!), 'reflected')
  const kids = await Promise.all([1, 2].map(async () => headerOf((await ann.seal('opus', OPUS))!).kid))
  t.equal(kids[0], kids[1], 'not for ever')
})

t.test('the senders of an epoch are bounded, and forged ones do not count', async t => {
  const bob = cryptorWith(1)
  const sealed = async () => (await cryptorWith(1).seal('opus', OPUS))!
  const fills = async () => {
    const opened = await bob.open('opus', await sealed())
    return opened.kind === 'opened' && opened.fillsEpoch
  }
  const first = cryptorWith(1)
  t.equal(await reasonOf(bob, (await first.seal('opus', OPUS))!), toHex(OPUS))
  const frame = await sealed()
  for (let number = 0; number < 4_100; number++) {
    const forged = Uint8Array.from(frame)
    // The last four bytes of the KID, behind the header's first byte and the epoch.
    new DataView(forged.buffer).setUint32(4, number)
    await bob.open('opus', forged)
  }
  let filled = 0
  for (let count = 1; count < 4_095; count++) if (await fills()) filled++
  t.equal(filled, 0)
  t.equal(await fills(), true, 'the last one')
  t.equal(await reasonOf(bob, await sealed()), 'too-many-senders')
  t.equal(await reasonOf(bob, (await first.seal('opus', OPUS))!), toHex(OPUS), 'those known go on')
})

t.test('a sender’s old key opens its frames until five seconds after its first with the new one', async t => {
  const clock = { nowMs: 1_000 }
  const bob = new FrameCryptor(CALL_ID, () => clock.nowMs)
  for (const epoch of [1, 2]) bob.setKey(epoch, keyOf(epoch))
  const [ann, cid] = [cryptorWith(1, 2), cryptorWith(1, 2)]
  for (const each of [ann, cid]) each.useKey(1)
  const sealed = async (by: FrameCryptor) => (await by.seal('opus', OPUS))!
  const late = [await sealed(ann), await sealed(ann)] as const
  ann.useKey(2)
  t.equal(await reasonOf(bob, await sealed(ann)), toHex(OPUS))
  clock.nowMs += 4_999
  t.equal(await reasonOf(bob, late[0]), toHex(OPUS))
  clock.nowMs += 1
  t.equal(await reasonOf(bob, late[1]), 'replayed')
  t.equal(await reasonOf(bob, await sealed(cid)), toHex(OPUS), 'who has not switched is heard')
})

t.test('an epoch that KIDs have no room for is no key', async t => {
  const ann = cryptorWith(1)
  ann.setKey(65_536, keyOf(1))
  t.equal(ann.useKey(65_536), false)
})
