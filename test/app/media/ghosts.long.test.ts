/**
 * What is left of calls when nobody is in them any more, whichever way they went: nothing, in the page, at the gateway or at the
 * server.
 */

import type { CDPSession } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { settingsFor } from '../../support/call-people.ts'
import { allReceive, befriendTabs, CallTabs, until } from '../../support/call-tabs.ts'
import { fastClock } from '../../support/fast-clock.ts'
import { freePort } from '../../support/free-port.ts'
import { type Janus, skipWithoutJanus, startJanus } from '../../support/janus.ts'
import { until as untilSo } from '../../support/nodes.ts'
import { WireServer } from '../../support/wire-server.ts'

/** Joins and leaves of the media in one page, and as many of the call as a tenth of them. */
const JOINS = Number(process.env.CALLSIGN_MEDIA_JOINS ?? 90)

const SCRIPT = `
  window.joinMedia = async () => {
    follow(call)
    while (media.state !== 'connected') await media.once('state')
  }
  window.joinCall = async () => {
    window.call = await me.join(call.callId)
    while (call.sendingKey === undefined) await call.once('changed')
    await joinMedia()
  }
`

t.test(
  'after a hundred joins and leaves, and kills of each party, nothing is left',
  { skip: skipWithoutChromium || skipWithoutJanus },
  async t => {
    const janus = await startJanus(t, t.testdir({ janus: {}, server: {} }))
    const portsAtFirst = janus.udpPorts
    const dataFolder = `${t.testdirName}/server`
    const port = { CALLSIGN_HTTP_PORT: String(await freePort()) }
    const environment = { ...settingsFor(3), ...janus.environment, ...port }
    const start = (more: Readonly<Record<string, string>> = {}) =>
      WireServer.start(t, { people: 3, dataFolder, environment: { ...environment, ...more } })
    let server = await start()
    const tabs = await CallTabs.of((await openBrowser(t))!, server.running)
    const [ann, bob, cat] = [await tabs.open(0), await tabs.open(1), await tabs.open(2)]
    const pages = [ann.page, bob.page, cat.page]
    const devtools = await bob.page.context().newCDPSession(bob.page)
    await devtools.send('Performance.enable')
    await befriendTabs(ann, [bob, cat])
    await ann.page.evaluate(`me.call(['${bob.userId}', '${cat.userId}'], { video: true }).then(follow)`)
    for (const page of pages) await until(page, `window.call?.state === 'active'`)
    await allReceive(pages, 3)

    await t.test('in a page', async t => {
      await bob.page.evaluate(`{ ${SCRIPT} }`)
      await bob.page.evaluate('media.leave()')
      await bob.page.evaluate('joinMedia().then(() => media.leave())')
      const before = await objectsOf(devtools)
      t.match(before, { RTCPeerConnections: 0, WorkerGlobalScopes: 0 })
      let began = performance.now()
      for (let count = 0; count < JOINS; count++) await bob.page.evaluate('joinMedia().then(() => media.leave())')
      t.comment(`${JOINS} joins of the media: ${Math.round(performance.now() - began)} ms`)
      began = performance.now()
      for (let count = 0; count < JOINS / 9; count++)
        await bob.page.evaluate('call.leave().then(joinCall).then(() => media.leave())')
      t.comment(`${JOINS / 9} joins of the call: ${Math.round(performance.now() - began)} ms`)
      t.comment(JSON.stringify([before, await objectsOf(devtools)]))
      t.same(await janus.sessions(), 2)
      t.comment(janus.udpPorts)
    })
  },
)

async function objectsOf(devtools: CDPSession): Promise<Record<string, number>> {
  await devtools.send('HeapProfiler.collectGarbage')
  const { metrics } = await devtools.send('Performance.getMetrics')
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]))
}
