/**
 * The start of `callsign/app` as a browser loads it: bundled without anything of Node or of schemas, and run in a page of
 * the server with IndexedDB.
 */

import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { CODE, emailOf, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { builtProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const MODULES = [
  'connection',
  'device-keys',
  'device-registration',
  'indexed-db-storage',
  'key-exchange',
  'key-log',
  'server',
  'session',
]

async function bundle(external: readonly string[] = []) {
  const lines = MODULES.map(name => `export * from ${JSON.stringify(builtProgram(`src/app/${name}`))}`)
  const { outputFiles, metafile } = await build({
    stdin: { contents: lines.join('\n'), resolveDir: PROJECT_ROOT },
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'app',
    external: [...external],
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  return { code: outputFiles[0]!.contents, inputs: Object.keys(metafile.inputs) }
}

interface PageResults {
  readonly hasSignedIn: boolean
  readonly deviceId: string
  readonly isExtractable: boolean
}

const REGISTERED = `
  const storage = app.indexedDbStorage()
  const server = new app.Server({ url: location.origin })
  const session = await app.Session.open({ server, storage })
  const hasSignedIn = session.userId === undefined
  if (hasSignedIn) {
    const { challengeId } = await session.login({ email: '${emailOf(0)}' })
    await session.verifyLogin({ challengeId, otp: '${CODE}' })
  }
  const keysOf = app.webCryptoKeys(storage)
  const { deviceId } = await app.registerDevice({ server, session, storage, keysOf })
`
const IN_PAGE = `
  ${REGISTERED}
  const { privateKey } = await storage.get('keys.' + session.userId)
  return { hasSignedIn, deviceId, isExtractable: privateKey.extractable }
`

t.test('the bundle is small, and has no code of schemas', async t => {
  const { code, inputs } = await bundle([
    '*/client/client.js',
    '*/log/base64.js',
    '*/log/device-list.js',
    '#primitives',
  ])
  const bytes = gzipSync(code, { level: 9 }).length
  t.comment(`${code.length} bytes, ${bytes} with gzip`)
  t.ok(bytes < 12_000, `${bytes} bytes`)
  t.same(
    inputs.filter(name => /typebox|schema/.test(name)),
    [],
  )
})

t.test(
  'a page signs in, registers its device and is the same device after a reload',
  { skip: skipWithoutChromium },
  async t => {
    const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
    t.teardown(() => server.end())
    const browser = (await openBrowser(t))!
    const page = await (await browser.newContext()).newPage()
    const { code } = await bundle()
    const run = async () => {
      await page.goto(`${server.http}/app/api/meta`)
      return page.evaluate<PageResults>(`(async () => { ${Buffer.from(code)}; ${IN_PAGE} })()`)
    }
    const first = await run()
    t.match(first, { hasSignedIn: true, isExtractable: false })
    const again = await run()
    t.match(again, { hasSignedIn: false, deviceId: first.deviceId, isExtractable: false })
  },
)

/** A tab of the device; `states` has those of its connection, \`heard\` the messages of a topic. */
const CONNECTED_TAB = `
  ${REGISTERED}
  window.states = []
  window.heard = []
  const listener = {
    onState: state => states.push(state),
    onConnected() {},
    onEvent() {},
    async onDeviceMissing() {},
    onTrouble: error => states.push(String(error)),
  }
  window.connection = new app.Connection({ server, session, listener, tabLock: 'device ' + deviceId })
  connection.connect()
  void connection.watch('/topic/dev.tabs', event => heard.push(event.eventId))
`

t.test(
  'one tab of a device is connected, and another one goes on when it closes or is asked to',
  { skip: skipWithoutChromium },
  async t => {
    const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
    t.teardown(() => server.end())
    const browser = (await openBrowser(t))!
    const context = await browser.newContext()
    const { code } = await bundle()
    const openTab = async () => {
      const page = await context.newPage()
      await page.goto(`${server.http}/app/api/meta`)
      await page.evaluate(`(async () => { ${Buffer.from(code)}; ${CONNECTED_TAB} })()`)
      return page
    }
    const reach = (page: Page, state: string) => page.waitForFunction(`states.at(-1) === '${state}'`)
    const first = await openTab()
    await reach(first, 'connected')
    const second = await openTab()
    await reach(second, 'waiting')
    await first.close()
    await reach(second, 'connected')
    const third = await openTab()
    await reach(third, 'waiting')
    await third.evaluate('connection.connect({ takeOver: true })')
    await reach(second, 'elsewhere')
    await reach(third, 'connected')
    t.same(await second.evaluate('states'), ['connecting', 'waiting', 'connecting', 'connected', 'elsewhere'])
    await second.evaluate('connection.connect()')
    await reach(second, 'waiting')
    await third.evaluate('connection.disconnect()')
    await reach(second, 'connected')
    await second.evaluate(`connection.watch('/topic/dev.tabs', event => heard.push(event.eventId))`)
    await second.evaluate(`connection.send('/topic/dev.tabs', { type: 'x', eventId: 'a' })`)
    await second.waitForFunction(`heard.join() === 'a'`)
    t.same(await third.evaluate('heard'), [])
  },
)
