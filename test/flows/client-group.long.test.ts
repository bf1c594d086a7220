/** Three tabs of the development client in one call by way of a real Janus, and of a second one. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium, WITH_CAMERA } from '../support/browser.ts'
import { befriend, button, newTab, openHouse, seesPictures } from '../support/client-page.ts'
import { freePort } from '../support/free-port.ts'
import { type Janus, skipWithoutJanus, startJanus } from '../support/janus.ts'
import { until } from '../support/nodes.ts'
import { openServer } from '../support/open-server.ts'
import { long } from '../support/size.ts'

async function hasCall(janus: Janus): Promise<boolean> {
  const { list } = await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey })
  return (list as readonly unknown[]).length > 0
}

t.test(
  'three tabs see and hear one another; one that is removed is gone; the gateway comes back, or a second one takes the call',
  long({ skip: skipWithoutChromium || skipWithoutJanus }),
  async t => {
    const folder = t.testdir({ data: {} })
    const port = await freePort()
    const names = ['one', 'two']
    const both = await Promise.all(
      names.map(name => {
        const events = { eventsUrl: `http://127.0.0.1:${port}/events`, eventsUser: name }
        return startJanus(t, join(folder, name), events)
      }),
    )
    const list = join(folder, 'gateways.json')
    const gateways = both.map((janus, at) => janus.listed(names[at]!))
    writeFileSync(list, JSON.stringify({ gateways }), { mode: 0o600 })
    const environment = { CALLSIGN_JANUS_FILE: list, CALLSIGN_JANUS_EVENTS_PORT: String(port) }
    const server = await openServer({ dataFolder: join(folder, 'data'), environment })
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
    await ann.locator('.tile[data-speaking]').first().waitFor()
    await button(bob, 'Camera').click()
    await Promise.all([seesPictures(ann, 1), seesPictures(cleo, 1), seesPictures(bob, 2)])
    await button(bob, 'Camera').click()
    await seesPictures(ann, 2)

    const [janus, other] = (await hasCall(both[0]!)) ? both : both.toReversed()
    const lost = ann.getByText('Your connection is lost')
    await janus!.kill()
    await lost.waitFor()
    t.equal(
      await ann
        .locator('figcaption')
        .filter({ hasText: /lost|connecting/ })
        .count(),
      0,
      'said once',
    )
    await janus!.start()
    await Promise.all([ann, bob, cleo].map(page => seesPictures(page, 2)))

    await lost.waitFor({ state: 'hidden' })
    await janus!.kill()
    await lost.waitFor()
    await until(() => hasCall(other!))
    await Promise.all([ann, bob, cleo].map(page => seesPictures(page, 2)))

    await button(ann, '3 people').click()
    await button(ann, 'Remove Cleo').click()
    await cleo.getByText('The host has removed you').waitFor()
    await Promise.all([seesPictures(ann, 1), seesPictures(bob, 1)])
  },
)
