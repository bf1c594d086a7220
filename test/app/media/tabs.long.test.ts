/**
 * Tabs in rooms of a real Janus where it is less comfortable: with a Firefox among them, five at once, and with a network that
 * goes away. Frames that the workers open are counted.
 */

import { setTimeout as pass } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { pagesOf, skipWithoutChromium } from '../../support/browser.ts'
import { CutNetwork, skipWithoutNetworks } from '../../support/cut-network.ts'
import { openFirefox, skipWithoutFirefox } from '../../support/firefox.ts'
import { skipWithoutJanus } from '../../support/janus.ts'
import { MediaTab, openMediaHouse, openRoom, type Room, type TabOptions } from '../../support/media-tabs.ts'

const skip = skipWithoutChromium || skipWithoutJanus

if (skip) t.plan(0, skip)
else await runTests()

async function runTests(): Promise<void> {
  const house = await openMediaHouse(t, '0.0.0.0')
  const { janus } = house
  type OpenPage = typeof house.openPage
  const joined = async (
    t: Test,
    room: Room,
    userId: string,
    { openPage, ...options }: TabOptions & { readonly openPage?: OpenPage } = {},
  ) => {
    const tab = await MediaTab.open(house, options, openPage)
    t.teardown(() => tab.close())
    await tab.join(await room.admit(userId))
    return tab
  }

  await t.test('a Firefox among three tabs', { skip: skipWithoutFirefox }, async t => {
    const openPage = await openFirefox(t)
    const room = await openRoom(janus)
    const ann = await joined(t, room, '1')
    const fox = await joined(t, room, '2', { openPage })
    const cat = await joined(t, room, '3')
    const all = [ann, fox, cat]
    for (const tab of all) await tab.receives(2, 10)
    for (const tab of [ann, cat]) await tab.until(`marksOf('2') > 0.9`)
    await fox.until(`marksOf('1') > 0.9 && marksOf('3') > 0.9`)
    for (const tab of all)
      await tab.until(`readStatistics().then(({ people }) => people.every(({ level }) => level > 0.01))`)

    for (const tab of all) await tab.evaluate('media.setKey(2, key(2))')
    for (const tab of all) {
      await tab.evaluate('media.useKey(2)')
      for (const each of all) await each.receives(2, 3)
    }
    for (const tab of all) await tab.evaluate('media.dropKey(1)')
    for (const tab of all) await tab.receives(2, 10)
    for (const tab of all) t.same(await tab.evaluate('failures()'), [], 'no frame was lost')

    await fox.evaluate('media.mute(true)')
    await ann.until(`media.participants.find(one => one.userId === '2').microphone.isOn === false`)
    await fox.reload()
    for (const tab of [ann, cat])
      await tab.until(`count('gone', '2') === 1 && media.participants.length === 1`)
    await fox.evaluate('media.setKey(2, key(2)), media.useKey(2)')
    await fox.join(await room.admit('2'))
    for (const tab of all) await tab.receives(2, 10)
    await fox.evaluate('media.leave()')
    for (const tab of [ann, cat])
      await tab.until(`count('gone', '2') === 2 && media.participants.length === 1`)
    for (const tab of [ann, cat]) await tab.receives(1, 3)

    await t.test('with another key neither side opens or shows anything', async t => {
      const eve = await joined(t, room, '4', { openPage, keyByte: 9 })
      for (const tab of [ann, cat])
        await tab.until(`media.participants.find(one => one.userId === '4')?.undecryptable`)
      await eve.until(`media.participants.length === 2 && media.participants.every(one => one.undecryptable)`)
      for (const [tab, others] of [
        [eve, ['1', '3']],
        [ann, ['4']],
        [cat, ['4']],
      ] as const)
        for (const other of others)
          for (const name of ['camera', 'microphone'])
            t.equal(await tab.evaluate(`opened('${other}', '${name}')`), 0)
      for (const other of ['1', '3']) t.ok((await eve.evaluate<number>(`marksOf('${other}')`)) < 0.8)
    })
  })

  await t.test('five tabs: each hears and sees the other four, also after a reload', async t => {
    const room = await openRoom(janus)
    const open = (userId: string) => joined(t, room, userId, { fps: 4 })
    const all = [await open('1'), await open('2'), await open('3'), await open('4'), await open('5')]
    for (const tab of all) await tab.receives(4, 5)
    const marks = ['1', '2', '3', '4'].map(userId => `marksOf('${userId}') > 0.9`)
    await all[4]!.until(marks.join(' && '))
    for (const tab of all) t.same(await tab.evaluate('failures()'), [])
    const [first] = all
    await first!.reload()
    for (const tab of all.slice(1)) await tab.until(`count('gone', '1') === 1`)
    await first!.join(await room.admit('1'))
    for (const tab of all) await tab.receives(4, 5)
  })

  await t.test(
    'a network that is away: the tab is back by itself',
    { skip: skipWithoutNetworks },
    async t => {
      const network = await CutNetwork.open(t)
      const openPage = pagesOf(await network.openBrowser(t))
      const room = await openRoom(janus)
      const ann = await joined(t, room, '1', { fps: 4 })
      const bob = await joined(t, room, '2', { fps: 4, openPage })
      for (const tab of [ann, bob]) await tab.receives(1, 5)
      // A blink, one in which the gateway may give the session up or not, and one that it does not survive.
      for (const seconds of [5, 12, 40]) {
        await t.test(`for ${seconds} s`, async t => {
          const feed = await ann.evaluate('media.participants[0].feed')
          await network.pull()
          // The time is the fault itself: no condition ends it.
          await pass(seconds * 1000)
          await network.plug()
          for (const tab of [ann, bob]) await tab.receives(1, 10)
          await bob.until(`media.state === 'connected'`)
          await ann.until('media.participants.length === 1')
          const isSame = (await ann.evaluate('media.participants[0].feed')) === feed
          t.comment(isSame ? 'the same session' : 'another session')
          if (seconds === 40) t.notOk(isSame, 'the gateway has given it up')
        })
      }
    },
  )

  await t.test('one of two networks that goes away', { skip: skipWithoutNetworks }, async t => {
    const network = await CutNetwork.open(t)
    const room = await openRoom(janus)
    const [ann, bob] = [await joined(t, room, '1', { fps: 4 }), await joined(t, room, '2', { fps: 4 })]
    for (const tab of [ann, bob]) await tab.receives(1, 5)
    // The way on which the media of both went.
    await network.end()
    for (const tab of [ann, bob]) await tab.receives(1, 10)
  })
}
