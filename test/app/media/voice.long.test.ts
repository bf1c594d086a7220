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
    t.equal((await sizesOf(ann, 200)).size, 1)
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
    t.ok((await sizesOf(cat, 200)).size > 10, 'the app may have it otherwise')
  })

  await t.test('a worker that is not there, and one that the page’s policy forbids', async t => {
    const context = await house.browser.newContext(WITH_CAMERA)
    t.teardown(() => context.close())
    // The refusal is what is tried here.
    context.removeAllListeners('console')
    const page = await context.newPage()
    const tab = new MediaTab(page)
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
    t.same(await tab.evaluate(opens('/missing.js')), ['MEDIA_UNSUPPORTED', 'closed'])
    // `deaf` of the page has one too.
    await page.addInitScript('window.RealWorker = Worker; window.Worker = class {}')
    await page.goto(`${house.url}strict`)
    await page.evaluate('window.Worker = RealWorker')
    t.same(await tab.evaluate(opens('/worker.js')), ['MEDIA_UNSUPPORTED', 'closed'])
  })
}
