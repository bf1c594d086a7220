/**
 * Encrypted media between tabs of a real browser by a real Janus. The worker's counts and marks in the picture
 * say whether it came through: a browser counts garbage as decoded.
 */

import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { skipWithoutChromium } from '../../support/browser.ts'
import { type Coturn, skipWithoutCoturn, startCoturn } from '../../support/coturn.ts'
import { skipWithoutJanus } from '../../support/janus.ts'
import { MediaTab, openMediaHouse, openRoom, type Room } from '../../support/media-tabs.ts'
import { long } from '../../support/size.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

const skip = skipWithoutChromium || skipWithoutJanus
/** So many frames of 30 a second find a fault that one of some hundred frames has. */
const H264_FRAMES = Number(process.env.CALLSIGN_MEDIA_H264_FRAMES ?? 100)
const address = Object.values(networkInterfaces())
  .flatMap(all => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
/** Those that the relay does not go to, as operators have them. */
const DENIED = readFileSync(join(PROJECT_ROOT, 'deploy/turnserver.conf.example'), 'utf8')
  .split('\n')
  .filter(line => line.startsWith('denied-peer-ip='))
const REJOINS = Number(process.env.CALLSIGN_MEDIA_REJOINS ?? 3)

if (skip) t.plan(0, skip)
else await runTests()

async function runTests(): Promise<void> {
  const house = await openMediaHouse(t)
  const { janus } = house
  const openTab = async (t: Test, options: Parameters<typeof MediaTab.open>[1] = {}) => {
    const tab = await MediaTab.open(house, options)
    t.teardown(() => tab.close())
    return tab
  }
  const joined = async (t: Test, room: Room, name: string, options: Parameters<typeof openTab>[1] = {}) => {
    const tab = await openTab(t, options)
    await tab.join(await room.admit(name))
    return tab
  }

  await t.test('three tabs hear and see each other, mute, share a screen, and one is put out', async t => {
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const bob = await joined(t, room, '2')
    const cat = await joined(t, room, '3')
    const all = [ann, bob, cat]
    for (const tab of all) await tab.receives(2, 10)
    await cat.until(`marksOf('1') > 0.9 && marksOf('2') > 0.9`)
    for (const tab of all) t.same(await tab.evaluate('failures()'), [])
    t.notOk(
      await ann.evaluate('extensions().some(uri => uri.includes("audio-level"))'),
      'no loudness in the clear',
    )
    await cat.until(`readStatistics().then(({ people }) => people.some(({ level }) => level > 0.01))`)

    await ann.evaluate('media.mute(true)')
    const muted = `media.participants.find(one => one.userId === '1').microphone`
    await bob.until(`${muted}.isOn === false`)
    await ann.evaluate('media.mute(false)')
    await bob.until(`${muted}.isOn`)
    const before = await bob.evaluate<number>(`opened('1', 'screen')`)
    t.equal(before, 0)
    await ann.evaluate(`media.send('screen', source.clone())`)
    await bob.until(`media.participants.find(one => one.userId === '1').screen.isOn`)
    await bob.until(`opened('1', 'screen').then(frames => frames > 3)`)
    await ann.evaluate(`media.send('screen', undefined)`)
    await bob.until(`!media.participants.find(one => one.userId === '1').screen.isOn`)

    // Each sender switches at another time, as with a rotation in a call.
    for (const tab of all) await tab.evaluate('media.setKey(2, key(2))')
    for (const tab of all) {
      await tab.evaluate('media.useKey(2)')
      for (const each of all) await each.receives(2, 3)
    }
    for (const tab of all) await tab.evaluate('media.dropKey(1)')
    for (const tab of all) await tab.receives(2, 5)
    for (const tab of all) t.same(await tab.evaluate('failures()'), [], 'no frame was lost')

    const { participants } = await janus.videoRoom({ request: 'listparticipants', room: room.id })
    const labels = (participants as { readonly display: string }[]).map(({ display }) => display)
    for (const label of labels) t.match(label, /^[0-9a-f-]{36}$/, 'the gateway knows nobody’s name')
    t.equal(new Set(labels).size, 3)
    const cats = Number(
      await ann.evaluate<string>(`media.participants.find(({ userId }) => userId === '3').feed`),
    )
    await janus.videoRoom({
      request: 'allowed',
      action: 'remove',
      room: room.id,
      secret: room.secret,
      allowed: [(await cat.evaluate<{ roomToken: string }>('admission')).roomToken],
    })
    await janus.videoRoom({ request: 'kick', room: room.id, secret: room.secret, id: cats })
    await cat.until(`media.state === 'closed' && count('kicked') === 1`)
    for (const tab of [ann, bob])
      await tab.until(`media.participants.length === 1 && count('gone', '3') === 1`)
    t.same(await cat.evaluate('media.participants'), [])
    void cat.evaluate('void media.join(admission)')
    await cat.until(`count('error', 'MEDIA_REFUSED') > 0`)
    for (const tab of [ann, bob]) await tab.receives(1, 3)
    t.notOk(await ann.evaluate(`media.participants.some(({ userId }) => userId === '3')`))
  })

  await t.test('newer tokens are taken without a pause', long(), async t => {
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const bob = await openTab(t)
    await bob.join(await room.admit('2', { forSeconds: 1_800 }))
    await ann.receives(1, 3)
    const feeds = 'media.participants.map(({ feed }) => feed).join()'
    const before = await ann.evaluate(feeds)
    const newer = await room.admit('2')
    await bob.join(newer)
    await bob.evaluate(`{
      window.sent = []
      WebSocket.prototype.send = function (text) {
        sent.push(JSON.parse(text))
        return Object.getPrototypeOf(WebSocket.prototype).send.call(this, text)
      }
      sockets.at(-1).close()
    }`)
    // It may be back before the state is looked at.
    await bob.until(`events.some(([name, state]) => name === 'state' && state === 'reconnecting')`)
    await bob.until(`media.state === 'connected'`)
    await ann.receives(1, 3)
    t.equal(await ann.evaluate(feeds), before, 'it is the same session')
    t.equal(await bob.evaluate(`sent.find(({ janus }) => janus === 'claim').token`), newer.pluginToken)
  })

  await t.test('H.264 goes the same way, and no frame of many fails', long(), async t => {
    const room = await openRoom(janus, 'h264')
    const options = { codec: 'h264', fps: 30 } as const
    const ann = await joined(t, room, '1', options)
    const bob = await joined(t, room, '2', options)
    for (const tab of [ann, bob]) await tab.receives(1, H264_FRAMES)
    await ann.until(`marksOf('2') > 0.9`)
    for (const tab of [ann, bob]) t.same(await tab.evaluate('failures()'), [])
  })

  await t.test('a camera goes in two sizes, of which each tab has what it shows', long(), async t => {
    const room = await openRoom(janus, 'vp8', undefined, 1_000_000)
    const ann = await joined(t, room, '1', { simulcast: true, side: 80 })
    const bob = await joined(t, room, '2')
    const cat = await joined(t, room, '3')
    const feed = `media.participants.find(one => one.userId === '1').feed`
    for (const tab of [bob, cat]) await tab.until(`widthOf('1') === 640`)
    await bob.evaluate(`media.resize(${feed}, 'small')`)
    await bob.until(`widthOf('1') === 320 && marksOf('1') > 0.9`)
    t.equal(await cat.evaluate(`widthOf('1')`), 640)
    await bob.evaluate('void media.join(admission)')
    await bob.until(`media.state === 'connected' && widthOf('1') > 0`)
    await bob.receives(2, 5)
    await bob.until(`widthOf('1') === 320`)
    await bob.evaluate(`media.resize(${feed}, 'large')`)
    await bob.until(`widthOf('1') === 640 && marksOf('1') > 0.9`)

    // By itself, as large as its tile is seen.
    const style = (text: string) => bob.evaluate(`tile.style = 'position: fixed; ${text}'`)
    await bob.evaluate(`{
      window.tile = document.body.appendChild(document.createElement('video'))
      tile.autoplay = true
    }`)
    await style('top: 0; width: 200px; height: 150px')
    await bob.evaluate(`media.show(${feed}, 'camera', tile)`)
    await bob.until('tile.videoWidth === 320')
    await style('top: 0; width: 700px; height: 500px')
    await bob.until('tile.videoWidth === 640')
    const mended = await bob.evaluate('media.transformsMended')
    await style('top: 5000px; width: 700px; height: 500px')
    const isPaused = `media.participants.find(one => one.userId === '1').camera.isPaused`
    await bob.until(isPaused)
    // What was under way has come by then.
    await cat.receives(2, 10)
    const unseen = await bob.evaluate<number>(`picturesOf('1')`)
    await cat.receives(2, 10)
    t.equal(await bob.evaluate(`picturesOf('1')`), unseen, 'nothing comes of what nobody sees')
    await style('top: 0; width: 200px; height: 150px')
    await bob.until(`!${isPaused} && picturesOf('1') > ${unseen} + 5`)
    for (const tab of [ann, bob, cat]) t.same(await tab.evaluate('failures()'), [])
    t.equal(await bob.evaluate('media.transformsMended'), mended, 'a pause is no lost transform')
  })

  await t.test(
    'without the key nothing is opened or shown, and a plain sender is heard by no tab',
    async t => {
      const room = await openRoom(janus)
      const ann = await joined(t, room, '1')
      const bob = await joined(t, room, '2', { keyByte: 2 })
      for (const tab of [ann, bob]) await tab.until(`media.participants[0]?.undecryptable !== undefined`)
      t.match(await bob.evaluate('failures()'), [['1', 'not-authentic', Number]])
      t.equal(await bob.evaluate(`media.participants[0].undecryptable`), 'not-authentic')
      for (const [tab, other] of [
        [ann, '2'],
        [bob, '1'],
      ] as const) {
        t.equal(await tab.evaluate(`opened('${other}', 'camera')`), 0)
        t.equal(await tab.evaluate(`opened('${other}', 'microphone')`), 0)
        t.equal(await tab.evaluate(`picturesOf('${other}')`), 0)
      }

      // A browser decodes here the bytes that the gateway sees.
      const eve = await joined(t, room, '3', { isPlain: true, keyByte: 0 })
      await ann.until(`failures().then(all => all.some(([userId]) => userId === '3'))`)
      t.equal(await ann.evaluate(`opened('3', 'camera')`), 0)
      t.equal(await ann.evaluate(`picturesOf('3')`), 0)
      await eve.evaluate('media.setKey(1, key(1))')
      await eve.until(`media.participants.every(({ camera }) => camera !== undefined)`)
      const far = await eve.evaluate<number>(
        `new Promise(resolve => setTimeout(() => resolve(marksOf('1')), 1000))`,
      )
      t.ok(far < 0.8, `${far} of the squares`)
    },
  )

  await t.test(
    'a key that comes late shows the picture at once, and nothing is asked for before',
    long(),
    async t => {
      const room = await openRoom(janus)
      const ann = await joined(t, room, '1')
      const bob = await joined(t, room, '2', { keyByte: 0 })
      await ann.until(`media.participants.length === 1`)
      t.equal(await bob.evaluate('media.participants[0].camera'), undefined, 'not subscribed')
      await bob.evaluate('media.setKey(1, key(1)), media.useKey(1)')
      await bob.receives(1, 5)

      await ann.evaluate('media.setKey(2, key(2)), media.useKey(2)')
      await bob.until(`media.participants[0].undecryptable === 'no-key'`)
      const shown = await bob.evaluate<number>(`picturesOf('1')`)
      const asked = await bob.evaluate<number>('keyFrameAsks')
      await bob.evaluate('media.setKey(2, key(2))')
      // The browser would ask by itself after three seconds, uncounted.
      await bob.until(`keyFrameAsks > ${asked}`)
      await bob.until(`picturesOf('1') > ${shown} + 1`)
      await bob.until(`media.participants[0].undecryptable === undefined`)
    },
  )

  await t.test(
    'a lost socket is claimed again while media goes on, and a left room is left at once',
    long(),
    async t => {
      const room = await openRoom(janus)
      const ann = await joined(t, room, '1')
      const bob = await joined(t, room, '2')
      await bob.receives(1, 5)
      const feed = await ann.evaluate('media.participants[0].feed')
      await bob.evaluate('isCut = true, sockets.at(-1).close()')
      await bob.until(`media.state === 'reconnecting' && sockets.length >= 3`)
      for (const tab of [ann, bob]) await tab.receives(1, 10)
      await bob.evaluate('media.mute(true)')
      await bob.evaluate('isCut = false')
      await bob.until(`media.state === 'connected'`)
      t.equal(await bob.evaluate(`count('error')`), 0, 'answers come by the new socket')
      await ann.until(`media.participants[0].microphone.isOn === false`)
      t.equal(await ann.evaluate('media.participants[0].feed'), feed, 'the same session')

      let longestMs = 0
      for (let count = 1; count <= REJOINS; count++) {
        const began = performance.now()
        await bob.evaluate(`media.leave(), start({ callId: '42' }, 10, 1).then(() => media.join(admission))`)
        await ann.until(`count('gone', '2') === ${count}`)
        for (const tab of [ann, bob]) await tab.receives(1, 3)
        longestMs = Math.max(longestMs, performance.now() - began)
      }
      t.comment(`the longest rejoin took ${Math.round(longestMs)} ms`)
      t.comment(`${await bob.evaluate('media.transformsMended')} transforms were laid anew`)
      await bob.evaluate('media.leave()')
      t.match(await bob.evaluate('media.statistics()'), { own: { sealed: 0 } })
    },
  )

  await t.test(
    'a tab whose socket was away hears and sees who has come meanwhile, and not who has gone',
    long(),
    async t => {
      const room = await openRoom(janus)
      const [ann, bob] = [await joined(t, room, '1'), await joined(t, room, '2')]
      await bob.receives(1, 5)
      await bob.evaluate('isCut = true, sockets.at(-1).close()')
      await bob.until(`media.state === 'reconnecting'`)
      await ann.evaluate('media.leave()')
      const cat = await joined(t, room, '3')
      await bob.evaluate('isCut = false')
      await bob.until(`media.participants.map(one => one.userId).join() === '3'`)
      for (const tab of [bob, cat]) await tab.receives(1, 5)
    },
  )

  await t.test('transforms that the browser has lost are laid anew', long(), async t => {
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const bob = await openTab(t)
    await bob.evaluate('isLosing = true')
    await bob.join(await room.admit('2'))
    await bob.until(`media.participants[0]?.camera !== undefined`)
    await bob.evaluate('isLosing = false')
    for (const tab of [ann, bob]) await tab.receives(1, 5)
    await ann.until(`marksOf('2') > 0.9`)
    t.ok((await bob.evaluate<number>('media.transformsMended')) >= 4, 'two to send, two to receive')
  })

  await t.test('a gateway that is killed and comes back has all in the room again', async t => {
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const bob = await joined(t, room, '2')
    await ann.receives(1, 3)
    await janus.kill()
    for (const tab of [ann, bob]) await tab.until(`media.state === 'reconnecting'`)
    await janus.start()
    const again = await openRoom(janus, 'vp8', room.id)
    // Other tokens, as after `media_ready`.
    for (const [tab, name] of [
      [ann, '1'],
      [bob, '2'],
    ] as const)
      await tab.join(await again.admit(name))
    for (const tab of [ann, bob]) await tab.receives(1, 3)
  })

  await t.test(
    'media goes by a relay alone, over UDP and TCP',
    long({ skip: skipWithoutCoturn || (address === undefined && 'needs an address besides loopback') }),
    async t => {
      const secret = 'relay'
      // The gateway's own address, as it can't be reached from loopback.
      // As with a gateway on a private address.
      const own = [...DENIED, `denied-peer-ip=${address}`, `relay-ip=${address}`]
      const folder = t.testdir({ open: {}, closed: {} })
      const exempt = [...own, `allowed-peer-ip=${address}`]
      const coturn = await startCoturn(t, join(folder, 'open'), [secret], exempt)
      const username = `${Math.floor(Date.now() / 1000) + 3_600}:42`
      const credential = createHmac('sha1', secret).update(username).digest('base64')
      const room = await openRoom(janus)
      const relayed = ({ port }: Coturn, transport: string) => {
        const iceServers = [{ urls: `turn:127.0.0.1:${port}?transport=${transport}`, username, credential }]
        return { iceServers, iceTransportPolicy: 'relay' } as const
      }
      const tabs: MediaTab[] = []
      for (const transport of ['udp', 'tcp']) {
        tabs.push(await joined(t, room, String(tabs.length), relayed(coturn, transport)))
      }
      for (const tab of tabs) await tab.receives(1, 5)
      const closed = await startCoturn(t, join(folder, 'closed'), [secret], own)
      const outside = await joined(t, room, '3', relayed(closed, 'udp'))
      await closed.says(`A peer IP ${address} denied`)
      t.equal(await outside.evaluate(`opened('0', 'microphone')`), 0)
    },
  )

  await t.test('a camera that opens while its tab enters is on for the others', long(), async t => {
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const bob = await openTab(t)
    await bob.evaluate(`{
      await media.send('camera', undefined)
      const { send } = WebSocket.prototype
      WebSocket.prototype.send = function (text) {
        send.call(this, text)
        if (!text.includes('"publish"')) return
        WebSocket.prototype.send = send
        void media.send('camera', source)
      }
    }`)
    await bob.join(await room.admit('2'))
    await ann.until(`media.participants.find(one => one.userId === '2')?.camera?.isOn`)
    await ann.receives(1, 10)
  })

  await t.test('a tab without a way to encrypt refuses', async t => {
    const tab = await openTab(t)
    const code = await tab.evaluate(`{
      delete globalThis.RTCRtpScriptTransform
      try { new GatewayMedia({ callId: '42' }) } catch (error) { return [error.name, error.code] }
    }`)
    t.same(code, ['CallsignError', 'MEDIA_UNSUPPORTED'])
  })
}
