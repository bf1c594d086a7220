/** The sound of a tab of a real browser, as a gateway sees it; and tabs that may not have the worker that encrypts it. */

import t, { type Test } from 'tap'
import { skipWithoutChromium, WITH_CAMERA } from '../../support/browser.ts'
import { skipWithoutJanus } from '../../support/janus.ts'
import { MediaTab, openMediaHouse, openRoom } from '../../support/media-tabs.ts'

const skip = skipWithoutChromium || skipWithoutJanus

if (skip) t.plan(0, skip)
else await runTests()

async function runTests(): Promise<void> {
  const house = await openMediaHouse(t)
  const joined = async (
    t: Test,
    room: Awaited<ReturnType<typeof openRoom>>,
    name: string,
    options: Parameters<typeof MediaTab.open>[1] = {},
  ) => {
    const tab = await MediaTab.open(house, options)
    t.teardown(() => tab.close())
    await tab.join(await room.admit(name))
    return tab
  }
  /** Sizes of so many frames of the tab's sound, which beeps and is silent in turn. */
  const sizesOf = async (tab: MediaTab, frames: number) => {
    await tab.evaluate('window.seen = []')
    await tab.until(
      `soundSizes().then(all => { seen.push(...all); return seen.reduce((sum, [, count]) => sum + count, 0) >= ${frames} })`,
    )
    return new Set(await tab.evaluate<number[]>('seen.map(([size]) => size)'))
  }

  await t.test('frames of speech and of silence have one size, and a muted tab sends none', async t => {
    const room = await openRoom(house.janus)
    const ann = await joined(t, room, '1')
    // The first ones leave while the encoder is set up.
    await sizesOf(ann, 20)
    t.equal((await sizesOf(ann, 100)).size, 1)
    await ann.evaluate('media.mute(true)')
    const sealed = 'media.statistics().then(({ own }) => own.sealed)'
    await ann.evaluate('media.send("camera", undefined)')
    // One may be under way.
    await ann.until(`soundSizes().then(all => all.length === 0)`)
    const before = await ann.evaluate<number>(sealed)
    const bob = await joined(t, room, '2')
    await bob.until(`media.participants[0]?.microphone?.isOn === false`)
    t.equal(await ann.evaluate(sealed), before)
    await ann.evaluate('media.mute(false)')
    await bob.until(`opened('1', 'microphone').then(frames => frames > 20)`)
    t.same(await bob.evaluate('failures()'), [])

    const cat = await joined(t, room, '3', { constantBitrate: false })
    await cat.evaluate(`soundSizes()`)
    t.ok((await sizesOf(cat, 100)).size > 10, 'the app may have it otherwise')
  })

  await t.test('who speaks is heard, and who gets through badly is known', async t => {
    const room = await openRoom(house.janus)
    const ann = await joined(t, room, '1')
    const bob = await joined(t, room, '2')
    const hears = `{
      window.heard = []
      media.on('speaking', one => heard.push(one?.userId ?? one?.feed ?? '-'))
      media.on('quality', ({ feed, userId, quality }) => heard.push((userId ?? feed) + ' ' + quality))
    }`
    for (const tab of [ann, bob]) await tab.evaluate(hears)
    await bob.evaluate('media.mute(true)')
    await ann.evaluate(`{
      const context = new AudioContext()
      window.tone = new OscillatorNode(context)
      const out = new MediaStreamAudioDestinationNode(context)
      tone.connect(out)
      tone.start()
      await media.send('microphone', out.stream.getAudioTracks()[0])
    }`)
    await bob.until(`heard.at(-1) === '1'`)
    await ann.until(`heard.at(-1) === 'own'`)
    await ann.evaluate('media.mute(true)')
    for (const tab of [ann, bob]) await tab.until(`heard.at(-1) === '-'`)

    // Packets stop although nothing says so.
    await ann.evaluate('media.mute(false)')
    await bob.until(`heard.at(-1) === '1'`)
    await ann.evaluate(`{
      window.stopped = connections.flatMap(each => each.getSenders()).filter(one => one.track)
      window.tracks = stopped.map(one => one.track)
      for (const one of stopped) await one.replaceTrack(null)
    }`)
    await bob.until(`media.participants[0].quality === 'lost'`)
    await ann.evaluate('stopped.forEach((one, at) => one.replaceTrack(tracks[at]))')
    await bob.until(`media.participants[0].quality === 'good'`)
    const told = (await bob.evaluate<string[]>('heard')).filter(one => one.startsWith('1 '))
    t.same(told, ['1 lost', '1 poor', '1 good'])

    await bob.evaluate('heard.length = 0, isCut = true, sockets.at(-1).close()')
    await bob.until(`heard.includes('own lost')`)
    t.equal(await bob.evaluate('media.participants[0].quality'), 'good', 'the others are as they were')
    await bob.evaluate('isCut = false')
    await bob.until(`heard.at(-1) === 'own good'`)
  })

  await t.test('a worker that is not there, and one that the page’s policy forbids', async t => {
    const context = await house.browser.newContext(WITH_CAMERA)
    t.teardown(() => context.close())
    // This test provokes the refusal.
    context.removeAllListeners('console')
    const page = await context.newPage()
    await page.route('**/missing.js', route => route.fulfill({ status: 404 }))
    await page.route('**/strict', async route => {
      const response = await route.fetch({ url: house.url })
      const headers = { ...response.headers(), 'content-security-policy': "worker-src 'none'" }
      await route.fulfill({ response, headers })
    })
    const opens = (script: string) =>
      `new Promise(resolve => {
        try {
          const media = new GatewayMedia({ callId: '42', newWorker: () => new Worker('${script}', { type: 'module' }) })
          media.on('error', ({ code }) => setTimeout(() => resolve([code, media.state])))
        } catch (error) {
          resolve([error.code, 'closed'])
        }
      })`
    await page.goto(house.url)
    t.same(await page.evaluate(opens('/missing.js')), ['MEDIA_UNSUPPORTED', 'closed'])
    // `deaf` of the page has one too.
    await page.addInitScript('window.RealWorker = Worker; window.Worker = class {}')
    await page.goto(`${house.url}strict`)
    await page.evaluate('window.Worker = RealWorker')
    t.same(await page.evaluate(opens('/worker.js')), ['MEDIA_UNSUPPORTED', 'closed'])
  })
}
