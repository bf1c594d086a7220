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
import { skipWithoutJanus, startJanus } from '../../support/janus.ts'
import { until as untilSo } from '../../support/nodes.ts'
import { WireServer } from '../../support/wire-server.ts'

/** Joins and leaves of a call's media in one page, and of the call with it. */
const JOINS = 90
const CALL_JOINS = 10

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

    await t.test('in a page that has joined and left a hundred times', async t => {
      await bob.page.evaluate(`{ ${SCRIPT} }`)
      await bob.page.evaluate('media.leave()')
      await bob.page.evaluate('joinMedia().then(() => media.leave())')
      const before = await objectsOf(devtools)
      for (const name of ENDED) t.equal(before.get(name), 0, name)
      const began = performance.now()
      for (let count = 0; count < JOINS; count++)
        await bob.page.evaluate('joinMedia().then(() => media.leave())')
      for (let count = 0; count < CALL_JOINS; count++)
        await bob.page.evaluate('call.leave().then(joinCall).then(() => media.leave())')
      t.comment(`${JOINS + CALL_JOINS} joins in ${Math.round(performance.now() - began)} ms`)
      const after = await objectsOf(devtools)
      for (const name of ENDED) t.equal(after.get(name), 0, name)
      // Sockets take seconds to close.
      await untilSo(async () => {
        const now = await objectsOf(devtools)
        return HELD.every(name => now.get(name)! <= before.get(name)!)
      })
      t.equal(await janus.sessions(), 2)
      await untilSo(async () => janus.udpPorts === portsAtFirst + 4)
    })

    await t.test('of a gateway and a server that were killed, all come back', async () => {
      await bob.page.evaluate('void joinMedia()')
      await allReceive(pages, 3)
      await janus.restart()
      await allReceive(pages, 3)
      await server.running.end('SIGKILL')
      server = await start()
      for (const page of pages) await until(page, `me.connection === 'connected'`)
      await allReceive(pages, 3)
      t.equal(await janus.sessions(), 3)
    })

    await t.test('of tabs that crash or are closed in the call', async t => {
      // It has no answer: the renderer is gone.
      devtools.send('Page.crash').catch(() => undefined)
      await until(ann.page, 'media.participants.length === 1')
      await cat.page.close({ runBeforeUnload: false })
      await until(ann.page, 'media.participants.length === 0')
      await ann.page.context().close()
      await untilSo(async () => (await janus.sessions()) === 0)
      await untilSo(async () => janus.udpPorts === portsAtFirst)
      t.equal((await janus.rooms()).length, 1, 'the call goes on')

      // Minutes pass until a call without anybody has ended.
      await server.running.end('SIGKILL')
      server = await start(fastClock(20))
      await server.figureWhen('callsign_actors_live{kind="media-room"}', live => live > 0)
      await untilSo(async () => (await janus.rooms()).length === 0)
      for (const kind of ['media-room', 'call-room'])
        await server.figureWhen(`callsign_actors_live{kind="${kind}"}`, live => live === 0)
      t.equal(await janus.sessions(), 0)
      t.equal(janus.udpPorts, portsAtFirst)
    })
  },
)

/** Of the page, without what can be collected. */
async function objectsOf(devtools: CDPSession): Promise<ReadonlyMap<string, number>> {
  await devtools.send('HeapProfiler.collectGarbage')
  const { metrics } = await devtools.send('Performance.getMetrics')
  return new Map(metrics.map(({ name, value }) => [name, value]))
}

/** None is there without a call's media. */
const ENDED = ['RTCPeerConnections', 'WorkerGlobalScopes']
/** No more than before. */
const HELD = ['JSEventListeners', 'ContextLifecycleStateObservers', 'Documents', 'Frames']
