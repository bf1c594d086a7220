/** Three tabs of the development client in one call by way of a real Janus. */

import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium, WITH_CAMERA } from '../support/browser.ts'
import { befriend, button, newTab, openHouse, seesPictures } from '../support/client-page.ts'
import { skipWithoutJanus, startJanus } from '../support/janus.ts'
import { openServer } from '../support/open-server.ts'
import { long } from '../support/size.ts'

t.test(
  'three tabs see and hear one another; one that is removed is gone; the gateway comes back',
  long({ skip: skipWithoutChromium || skipWithoutJanus }),
  async t => {
    const folder = t.testdir({ data: {}, janus: {} })
    const janus = await startJanus(t, join(folder, 'janus'))
    const server = await openServer({ dataFolder: join(folder, 'data'), environment: janus.environment })
    const browser = (await openBrowser(t)) as Browser
    const { url, newContext } = await openHouse(t, browser, server)
    const [ann, bob, cleo] = [
      await newTab(await newContext({ viewport: DESKTOP, ...WITH_CAMERA }), url, 'Ann'),
      await newTab(await newContext({ viewport: DESKTOP, ...WITH_CAMERA }), url, 'Bob'),
      await newTab(await newContext(WITH_CAMERA), url, 'Cleo'),
    ] as const
    await befriend(ann, bob, 'Bob')
    await ann.getByText('Add somebody').click()
    await befriend(ann, cleo, 'Cleo')
    await ann.getByLabel('Mark Bob').check()
    await ann.getByLabel('Mark Cleo').check()
    await button(ann, 'Video call with 2').click()
    for (const page of [bob, cleo]) await button(page, 'Answer').click()
    await Promise.all([ann, bob, cleo].map(page => seesPictures(page, 2)))
    await ann.locator('.tile.speaking').first().waitFor()
    await button(bob, 'Camera').click()
    await Promise.all([seesPictures(ann, 1), seesPictures(cleo, 1), seesPictures(bob, 2)])
    await button(bob, 'Camera').click()
    await seesPictures(ann, 2)

    await janus.kill()
    await ann.getByText('Your connection is lost').waitFor()
    t.equal(
      await ann
        .locator('figcaption')
        .getByText(/lost|connecting/)
        .count(),
      0,
      'said once',
    )
    await janus.start()
    await Promise.all([ann, bob, cleo].map(page => seesPictures(page, 2)))

    await ann.getByText('3 people').click()
    await button(ann, 'Remove Cleo').click()
    await cleo.getByText('The host has removed you').waitFor()
    await Promise.all([seesPictures(ann, 1), seesPictures(bob, 1)])
  },
)
