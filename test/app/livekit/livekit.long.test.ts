/** Calls by way of a real LiveKit, in tabs of a real browser with LiveKit's own SDK and the call's keys. */

import { createDecipheriv, pbkdf2Sync } from 'node:crypto'
import t from 'tap'
import { liveKitKey } from '../../../src/app/livekit/livekit.ts'
import { openBrowser, skipWithoutChromium, WITH_CAMERA } from '../../support/browser.ts'
import { CODE, emailOf, settingsFor } from '../../support/call-people.ts'
import { buildLiveKit, startLiveKit } from '../../support/livekit.ts'
import {
  bundleLiveKit,
  CALL_ID,
  LiveKitHouse,
  LiveKitTab,
  type Person,
  WATCHED_ROOM,
} from '../../support/livekit-tabs.ts'
import { openServer } from '../../support/open-server.ts'

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
  'tabs with LiveKit’s own SDK hear and see one another by the call’s keys, and the gateway does not',
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
    const sound = await frameOf(tap, `({ kind, octets }) => kind === 'audio' && octets.length > 60`)
    const picture = await frameOf(tap, `({ type }) => type === 'key'`)
    t.same(picture.octets.slice(3, 6), [0x9d, 0x01, 0x2a], 'the start of a picture is clear')
    for (const frame of [sound, picture]) {
      const opened = [ann!, bob!]
        .map(person => openFrame(frame, person, 256))
        .filter(one => one !== undefined)
      t.equal(opened.length, 1, `the key of one device opens it, of ${frame.octets.length} octets`)
      t.notOk([ann!, bob!].some(person => openFrame(frame, person, 128)))
      const from = clearOctets(frame.kind, frame.type)
      t.notOk(Buffer.from(frame.octets).includes(opened[0]!.subarray(from, from + 16)))
    }
    t.ok((await tap.evaluate<number>(`marksOf('${ann!.label}')`)) < 0.9, 'it has no picture')

    // A new key: both tabs hold it before either seals with it.
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

    // The end of epoch 1: bob seals with its key again, and it opens nothing.
    await annsTab.has(2, [2])
    await bobsTab.has(1, [1])
    const comeMore = async () => {
      await tap.evaluate('frames.length = 0')
      const isOld = `({ kind, octets }) => kind === 'video' && octets.at(-1) === 1`
      await tap.until(`frames.filter(${isOld}).length > 10`)
    }
    await annsTab.until(`lost.length > 0`)
    // Until the sound that is made up for lost frames has faded.
    await comeMore()
    await annsTab.evaluate(`note('${bob!.label}')`)
    await comeMore()
    t.ok(await annsTab.evaluate(`standsStill('${bob!.label}')`), 'a slot that is over opens no frame')
    await bobsTab.has(2, [2])
    await annsTab.receives(bob!)

    // Cat has another key, and the gateway says of nothing that it would be encrypted: its word is not taken.
    const catsTab = await house.enter(7, [cat!, ann!, bob!], { kind: 'call' })
    await catsTab.has(2, [2], 99)
    const clear = await house.enter(7, [{ label: 'injected', userId: '8' }], { kind: 'clear' })
    await clear.until(`room.localParticipant.trackPublications.size === 2`)
    await annsTab.until(`room.remoteParticipants.get('injected')?.trackPublications.size === 2`)
    for (const stranger of [cat!, { label: 'injected', userId: '8' }])
      t.ok(await annsTab.isDeafTo(stranger, bob!), `nothing of ${stranger.label} is played`)
    t.ok(await bobsTab.isDeafTo(cat!, ann!))
    await catsTab.until('lost.length > 0')
    t.ok((await catsTab.evaluate<number>(`marksOf('${ann!.label}')`)) < 0.9, 'nor does cat see others')

    // The gateway puts ann out, who comes again by herself; and leaves with the call.
    await house.rooms.removeParticipant('7', ann!.label)
    await bobsTab.until(`!room.remoteParticipants.has('${ann!.label}')`)
    await bobsTab.until(`room.remoteParticipants.has('${ann!.label}')`)
    await annsTab.receives(bob!)
    await annsTab.evaluate(`change({ state: 'ended' })`)
    await bobsTab.until(`!room.remoteParticipants.has('${ann!.label}')`)
  },
)

const SCRIPT = `
const newWorker = () => new Worker(URL.createObjectURL(new Blob([workerCode])))
window.begin = async (pins, address, code) => {
  window.me = new app.Callsign({ server: location.origin, pins, storage: app.indexedDbStorage() })
  window.follow = call => {
    window.call = call
    window.room = new app.Room({ encryption: app.liveKitEncryption(call, newWorker()) })
    watch(room)
    room.on('connected', () => send(room))
    app.joinLiveKit(call, room, error => errors.push(String(error)))
  }
  me.on('ringing', async call => {
    await call.answer()
    follow(call)
  })
  await me.signIn(address, () => code)
  while (me.connection !== 'connected') await me.once('connection')
  return me.userId
}
window.labelOf = userId => call.participants.find(one => one.userId === userId)?.identity
`

t.test(
  'a call by way of LiveKit goes through a new key, and a removal to another room',
  { skip: skipWithoutChromium || livekit.skip },
  async t => {
    const gateway = await startLiveKit(t, livekit, t.testdir({ server: {} }))
    const environment = { ...settingsFor(3), ...gateway.environment }
    const server = await openServer({ dataFolder: `${t.testdirName}/server`, environment })
    t.teardown(() => server.end())
    const browser = (await openBrowser(t))!
    const { script, worker } = await bundleLiveKit(['app', 'livekit/livekit'], 'iife')
    const code = `${script}\nconst workerCode = ${JSON.stringify(worker)}\n${WATCHED_ROOM}${SCRIPT}\n;Object.assign(window, { app })`
    const pins = JSON.stringify({ vkey: server.vkey, vrfPublicKey: server.vrfPublicKey })
    const open = async (at: number) => {
      const page = await (await browser.newContext(WITH_CAMERA)).newPage()
      await page.goto(`${server.http}/app/api/meta`)
      const userId = await page.evaluate<string>(
        `(() => { ${code}; return begin(${pins}, '${emailOf(at)}', '${CODE}') })()`,
      )
      return { tab: new LiveKitTab(page), userId }
    }
    const [ann, bob, cat] = [await open(0), await open(1), await open(2)]
    for (const { tab, userId } of [bob, cat]) {
      await ann.tab.evaluate(`me.contacts.request({ userId: '${userId}' })`)
      await tab.evaluate(`me.contacts.accept('${ann.userId}')`)
    }
    const hear = async (...people: (typeof ann)[]) => {
      for (const { tab } of people)
        for (const { tab: other, userId } of people)
          if (other !== tab) await tab.receives({ label: await tab.evaluate<string>(`labelOf('${userId}')`) })
    }
    await ann.tab.evaluate(`me.call(['${bob.userId}', '${cat.userId}'], { video: true }).then(follow)`)
    for (const { tab } of [ann, bob, cat])
      await tab.until(`window.call?.state === 'active' && window.room?.remoteParticipants.size === 2`)
    await hear(ann, bob, cat)

    await ann.tab.evaluate('call.renewKey()')
    for (const { tab } of [ann, bob, cat]) await tab.until('call.sendingKey.epoch === 2')
    await hear(ann, bob, cat)
    for (const { tab } of [ann, bob, cat]) t.same(await tab.evaluate('errors'), [])

    const roomId = await ann.tab.evaluate('call.roomId')
    await ann.tab.evaluate(`call.remove('${cat.userId}')`)
    await cat.tab.until(`call.ending === 'removed' && room.state === 'disconnected'`)
    for (const { tab } of [ann, bob])
      await tab.until(
        `call.roomId !== ${roomId} && room.name === String(call.roomId) && room.remoteParticipants.size === 1`,
      )
    await hear(ann, bob)
    await ann.tab.evaluate('call.end()')
    for (const { tab } of [ann, bob]) await tab.until(`room.state === 'disconnected'`)
  },
)
