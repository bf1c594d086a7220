/** Calls by way of a real LiveKit, in tabs of a real browser with LiveKit's own SDK and the call's keys. */

import { createDecipheriv, pbkdf2Sync } from 'node:crypto'
import t from 'tap'
import { liveKitKey } from '../../../src/app/livekit/livekit.ts'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { buildLiveKit, startLiveKit } from '../../support/livekit.ts'
import { CALL_ID, LiveKitHouse, type LiveKitTab, type Person } from '../../support/livekit-tabs.ts'

const livekit = await buildLiveKit()
const [ann, bob, cat]: Person[] = [
  { label: 'label-of-ann', userId: '1' },
  { label: 'label-of-bob', userId: '2' },
  { label: 'label-of-cat', userId: '3' },
]

interface Frame {
  readonly kind: 'audio' | 'video'
  readonly type?: 'key' | 'delta'
  readonly octets: readonly number[]
}

/** A frame of LiveKit's form opened with the key of a device, or undefined. The first octets are clear, and authenticated. */
function openFrame({ kind, type, octets }: Frame, { userId }: Person, bits: 128 | 256): Buffer | undefined {
  const frame = Buffer.from(octets)
  const epoch = frame.at(-1)!
  const sender = { callId: CALL_ID, epoch, userId, deviceId: userId }
  const text = liveKitKey(new Uint8Array(32).fill(epoch), sender)
  const key = pbkdf2Sync(text, 'LKFrameEncryptionKey', 100_000, bits / 8, 'sha256')
  const clear = frame.subarray(0, clearOctets(kind, type))
  const [iv, sealed] = [frame.subarray(-14, -2), frame.subarray(clear.length, -14)]
  const cipher = createDecipheriv(bits === 256 ? 'aes-256-gcm' : 'aes-128-gcm', key, iv)
  cipher.setAAD(clear).setAuthTag(sealed.subarray(-16))
  try {
    return Buffer.concat([clear, cipher.update(sealed.subarray(0, -16)), cipher.final()])
  } catch {
    return undefined
  }
}

function clearOctets(kind: Frame['kind'], type: Frame['type']): number {
  if (kind === 'audio') return 1
  return type === 'key' ? 10 : 3
}

/** The first frame of a kind that came to a tab. */
function frameOf(tab: LiveKitTab, test: string): Promise<Frame> {
  return tab.until(`frames.some(${test})`).then(() => tab.evaluate<Frame>(`frames.find(${test})`))
}

t.test(
  'tabs with LiveKit’s own SDK hear and see one another by the call’s keys, and nobody else does',
  { skip: skipWithoutChromium || livekit.skip },
  async t => {
    const server = await startLiveKit(t, livekit, t.testdir())
    const house = await LiveKitHouse.open(t, server, (await openBrowser(t))!)
    await house.rooms.createRoom({ name: '7', emptyTimeout: 600 })
    const annsTab = await house.enter(7, [ann!, bob!, cat!], { kind: 'call' })
    const bobsTab = await house.enter(7, [bob!, ann!, cat!], { kind: 'call' })

    await annsTab.receives(bob!)
    await bobsTab.receives(ann!)
    for (const tab of [annsTab, bobsTab]) t.same(await tab.evaluate('lost'), [], 'every frame was opened')

    // As the gateway itself has them.
    const outside = { label: 'outside', userId: '9' }
    const tap = await house.enter(7, [outside], { kind: 'clear', isSending: false })
    const sound = await frameOf(tap, `({ kind, octets }) => kind === 'audio' && octets.length > 30`)
    const picture = await frameOf(tap, `({ type }) => type === 'key'`)
    t.same(picture.octets.slice(3, 6), [0x9d, 0x01, 0x2a], 'the start of a picture is clear')
    for (const frame of [sound, picture]) {
      const opened = [ann!, bob!]
        .map(person => openFrame(frame, person, 256))
        .filter(one => one !== undefined)
      t.equal(opened.length, 1, `the key of one device opens it, of ${frame.octets.length} octets`)
      t.notOk([ann!, bob!].some(person => openFrame(frame, person, 128)))
      const sealed = Buffer.from(frame.octets).subarray(clearOctets(frame.kind, frame.type))
      t.notOk(sealed.includes(opened[0]!.subarray(clearOctets(frame.kind, frame.type), 26)))
    }
    t.ok((await tap.evaluate<number>(`marksOf('${ann!.label}')`)) < 0.9, 'it has no picture')

    // A new key: the others have it a while before anybody seals with it.
    await Promise.all([annsTab.has(1, [2, 1]), bobsTab.has(1, [2, 1])])
    await Promise.all([annsTab.receives(bob!), bobsTab.receives(ann!)])
    await annsTab.has(2, [2, 1])
    await bobsTab.receives(ann!)
    await bobsTab.has(2, [2, 1])
    await annsTab.receives(bob!)
    for (const tab of [annsTab, bobsTab])
      t.same(await tab.evaluate('lost'), [], 'no frame was lost on the way')
    await tap.evaluate('frames.length = 0')
    t.equal((await frameOf(tap, `({ kind }) => kind === 'audio'`)).octets.at(-1), 2)

    // Cat has another key, and the gateway says of nothing that it would be encrypted: its word is not taken.
    const catsTab = await house.enter(7, [cat!, ann!, bob!], { kind: 'call' })
    await catsTab.has(2, [2], 99)
    const clear = await house.enter(7, [{ label: 'injected', userId: '8' }], { kind: 'clear' })
    await clear.until(`room.localParticipant.trackPublications.size === 2`)
    await annsTab.until(`room.remoteParticipants.get('injected')?.trackPublications.size === 2`)
    for (const stranger of [cat!, { label: 'injected', userId: '8' }])
      t.ok(await annsTab.isDeafTo(stranger, bob!), `nothing of ${stranger.label} is played`)
    t.ok(await bobsTab.isDeafTo(cat!, ann!))
    t.match(await catsTab.evaluate<object>('situation()'), { people: [], lost: [] })

    // The end of epoch 1: bob seals with its key again, which nobody takes any more.
    await annsTab.has(2, [2])
    await bobsTab.has(1, [1])
    await annsTab.evaluate(`lost.length = 0`)
    await annsTab.until(`lost.length > 0`)
    await annsTab.evaluate(`note('${bob!.label}')`)
    await tap.evaluate('frames.length = 0')
    await frameOf(tap, `({ octets }) => octets.at(-1) === 1`)
    t.ok(await annsTab.evaluate(`standsStill('${bob!.label}')`))
    await bobsTab.has(2, [2])
    await annsTab.receives(bob!)

    // The gateway puts ann out, who comes again by herself; and leaves with the call.
    await house.rooms.removeParticipant('7', ann!.label)
    await bobsTab.until(`!room.remoteParticipants.has('${ann!.label}')`)
    await bobsTab.until(`room.remoteParticipants.has('${ann!.label}')`)
    await annsTab.receives(bob!)
    await annsTab.evaluate(`change({ state: 'ended' })`)
    await bobsTab.until(`!room.remoteParticipants.has('${ann!.label}')`)
  },
)
