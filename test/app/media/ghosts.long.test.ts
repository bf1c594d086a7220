/**
 * Calls leave nothing behind in the page, at the gateway or at the server, whichever way their people went.
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
const KEPT_PORTS_MAX = 20

const SCRIPT = `
  window.openConnections = 0
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration) {
      super(configuration)
      openConnections++
    }
    close() {
      if (this.signalingState !== 'closed') openConnections--
      super.close()
    }
  }
  window.intervals = new Set()
  const { setInterval, clearInterval } = window
  window.setInterval = (...parts) => {
    const id = setInterval(...parts)
    intervals.add(id)
    return id
  }
  window.clearInterval = id => {
    intervals.delete(id)
    clearInterval(id)
  }
  window.leaveAtOnce = async () => {
    follow(call)
    media.on('state', state => state === 'connected' && media.leave())
    while (media.state !== 'closed') await media.once('state')
  }
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
      const began = performance.now()
      for (let count = 0; count < JOINS; count += 2)
        await bob.page.evaluate('leaveAtOnce().then(joinMedia).then(() => media.leave())')
      for (let count = 0; count < CALL_JOINS; count++)
        await bob.page.evaluate('call.leave().then(joinCall).then(() => media.leave())')
      t.comment(`${JOINS + CALL_JOINS} joins in ${Math.round(performance.now() - began)} ms`)
      t.same(await bob.page.evaluate('[openConnections, intervals.size]'), [0, 0])
      t.equal(await figureOf(devtools, 'WorkerGlobalScopes'), 0)
      // The last one of either kind of join may be held still.
      t.ok((await countOf(devtools, 'app.GatewayMedia')) <= 2)
      // Chromium forgets some closed ones late.
      t.comment(`${await figureOf(devtools, 'RTCPeerConnections')} closed connections are not collected`)
      t.equal(await janus.sessions(), 2)
      // Janus 1.1.2 keeps a port now and then of a device that leaves while its connection comes to be.
      await untilSo(async () => janus.udpPorts <= portsAtFirst + 4 + KEPT_PORTS_MAX)
      t.comment(`${janus.udpPorts - portsAtFirst - 4} ports are kept`)
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
      await untilSo(async () => (await janus.sessions()) === 3)
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

      // An empty call ends after minutes.
      await server.running.end('SIGKILL')
      server = await start(fastClock(20))
      await untilSo(async () => (await janus.rooms()).length === 0)
      for (const kind of ['media-room', 'call-room'])
        await server.figureWhen(`callsign_actors_live{kind="${kind}"}`, live => live === 0)
      t.equal(await janus.sessions(), 0)
      t.equal(janus.udpPorts, portsAtFirst)
    })
  },
)

/** A figure of the page, after its garbage is collected. */
async function figureOf(devtools: CDPSession, figure: string): Promise<number | undefined> {
  await devtools.send('HeapProfiler.collectGarbage')
  const { metrics } = await devtools.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === figure)?.value
}

/** Objects of the class that the page holds. */
async function countOf(devtools: CDPSession, name: string): Promise<number> {
  const { result } = await devtools.send('Runtime.evaluate', { expression: `${name}.prototype` })
  const { objects } = await devtools.send('Runtime.queryObjects', { prototypeObjectId: result.objectId! })
  const asked = { objectId: objects.objectId!, functionDeclaration: 'function () { return this.length }' }
  const { result: length } = await devtools.send('Runtime.callFunctionOn', asked)
  await devtools.send('Runtime.releaseObject', { objectId: objects.objectId! })
  return length.value
}
