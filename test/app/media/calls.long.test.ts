/** Calls with sound and picture, whole: the real server, the SDK in three tabs of a real browser, and a real Janus. */

import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { settingsFor } from '../../support/call-people.ts'
import { allReceive, befriendTabs, CallTabs, until } from '../../support/call-tabs.ts'
import { skipWithoutJanus, startJanus } from '../../support/janus.ts'
import { openServer } from '../../support/open-server.ts'

t.test(
  'three people are in an encrypted call, through a new key, a reload, a gateway that restarts, and a removal',
  { skip: skipWithoutChromium || skipWithoutJanus },
  async t => {
    const janus = await startJanus(t, t.testdir({ janus: {}, server: {} }))
    const environment = { ...settingsFor(3), ...janus.environment }
    const server = await openServer({ dataFolder: `${t.testdirName}/server`, environment })
    t.teardown(() => server.end())
    const tabs = await CallTabs.of((await openBrowser(t))!, server)
    const [ann, bob, cat] = [await tabs.open(0), await tabs.open(1), await tabs.open(2)]
    await befriendTabs(ann, [bob, cat])
    const pages = [ann.page, bob.page, cat.page]
    await ann.page.evaluate(`me.call(['${bob.userId}', '${cat.userId}'], { video: true }).then(follow)`)
    for (const page of pages) await until(page, `window.call?.state === 'active'`)
    await allReceive(pages, 5)
    const names = await bob.page.evaluate('media.participants.map(({ userId }) => userId).sort()')
    t.same(names, [ann.userId, cat.userId].sort(), 'each is shown by their user')

    await ann.page.evaluate('call.renewKey()')
    for (const page of pages) await until(page, 'media.epoch === 2')
    await allReceive(pages, 5)
    // Even where the key came to one of them seconds later than to another.
    for (const page of pages) t.same(await page.evaluate('failed'), [], 'there was no complaint')
    for (const page of pages) t.same(await page.evaluate('asked'), [], 'nor an ask')

    await cat.page.evaluate('asked.length = 0, isDeaf = true')
    await ann.page.evaluate('call.renewKey()')
    for (const page of pages) await until(page, 'media.epoch === 3')
    await allReceive(pages, 5)
    t.same(await cat.page.evaluate('failed.slice(0, 1)'), ['no-key'])
    const asked = await cat.page.evaluate<string[]>('asked')
    t.ok(asked.length === 1 || asked.length === 2, `${asked.length} asks for two members`)

    await tabs.begin(cat.page, 2)
    await until(cat.page, `window.call?.state === 'active'`)
    await allReceive(pages, 5)

    await janus.restart()
    const restarted = performance.now()
    for (const page of pages) await until(page, `media.state === 'connected'`)
    await allReceive(pages, 5)
    t.comment(`back ${Math.round(performance.now() - restarted)} ms after the gateway`)

    const stay = [ann.page, bob.page]
    const roomId = await ann.page.evaluate('call.roomId')
    for (const page of stay)
      await page.evaluate(
        `window.states = []; media.on('state', state => states.push([state, Math.round(performance.now())]))`,
      )
    await ann.page.evaluate(`call.remove('${cat.userId}')`)
    await until(cat.page, `call.ending === 'removed' && media.state === 'closed' && media.own.size === 0`)
    for (const page of stay)
      await until(
        page,
        `call.roomId !== ${roomId} && media.state === 'connected' && media.participants.length === 1 && media.participants[0].userId`,
      )
    await allReceive(stay, 3)
    t.comment(`in the next room: ${await bob.page.evaluate('JSON.stringify(states)')}`)

    await ann.page.evaluate('call.end()')
    await until(bob.page, `call.state === 'ended' && media.state === 'closed'`)
    t.same(
      await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey }).then(({ list }) => list),
      [],
    )
  },
)
