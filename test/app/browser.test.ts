/** `@callsign/sdk/app` as a browser loads it: bundled without anything of Node or of schemas, and run in pages of the server. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { CODE, emailOf, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { builtProgram } from '../support/programs.ts'
import { postJson } from '../support/server.ts'
import { long } from '../support/size.ts'

async function bundle(name = 'app') {
  const { outputFiles } = await build({
    entryPoints: [builtProgram(`src/app/${name}`)],
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'app',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]!.contents
}

interface Device {
  readonly hasSignedIn: boolean
  readonly deviceId: string
  readonly isExtractable: boolean
}

/** Opens pages of one browser, each with the app of the same person. */
async function newContext(t: Test) {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
  t.teardown(() => server.end())
  const context = await (await openBrowser(t))!.newContext()
  const code = await bundle()
  const pins = JSON.stringify({ vkey: server.vkey, vrfPublicKey: server.vrfPublicKey })
  const start = `
    const storage = app.indexedDbStorage()
    window.states = []
    window.me = new app.Callsign({ server: location.origin, pins: ${pins}, storage })
    me.on('connection', state => states.push(state))
    const hasSignedIn = await me.resume() === undefined
    if (hasSignedIn) await me.signIn('${emailOf(0)}', () => '${CODE}')
    const { privateKey } = await storage.get('keys.' + me.userId)
    return { hasSignedIn, deviceId: me.deviceId, isExtractable: privateKey.extractable }
  `
  const startIn = async (page: Page) => {
    await page.goto(`${server.http}/app/api/meta`)
    return page.evaluate<Device>(`(async () => { ${Buffer.from(code)}; ${start} })()`)
  }
  const openTab = async () => {
    const page = await context.newPage()
    await startIn(page)
    return page
  }
  return { context, startIn, openTab }
}

t.test('the bundle is small, and has no code of schemas', async t => {
  const { outputFiles, metafile } = await build({
    entryPoints: [builtProgram('src/app/app')],
    bundle: true,
    splitting: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    outdir: t.testdir(),
    write: false,
    metafile: true,
  })
  const isLate = (path: string) => path.includes('key-log-')
  const bytesOf = (files: typeof outputFiles) =>
    files.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  const late = bytesOf(outputFiles.filter(({ path }) => isLate(path)))
  const first = bytesOf(outputFiles) - late
  t.comment(`${first} bytes with gzip, and ${late} that load after signing in`)
  t.ok(first < 61_700, `${first} bytes`)
  t.ok(late > 0 && late < 21_500, `${late} bytes`)
  t.same(
    Object.keys(metafile.inputs).filter(name => /typebox|schema/.test(name)),
    [],
  )
})

t.test(
  'a page signs in, registers its device and is the same device after a reload',
  { skip: skipWithoutChromium },
  async t => {
    const { context, startIn } = await newContext(t)
    const page = await context.newPage()
    const first = await startIn(page)
    t.match(first, { hasSignedIn: true, isExtractable: false })
    const again = await startIn(page)
    t.match(again, { hasSignedIn: false, deviceId: first.deviceId, isExtractable: false })
  },
)

t.test(
  'one tab of a device is connected, and another one goes on when it closes or is asked to',
  { skip: skipWithoutChromium },
  async t => {
    const { openTab } = await newContext(t)
    const reach = (page: Page, state: string) => page.waitForFunction(`states.at(-1) === '${state}'`)
    const first = await openTab()
    await reach(first, 'connected')
    const second = await openTab()
    await reach(second, 'waiting')
    await first.close()
    await reach(second, 'connected')
    const third = await openTab()
    await reach(third, 'waiting')
    await third.evaluate('me.takeOver()')
    await reach(second, 'elsewhere')
    await reach(third, 'connected')
    t.same(await second.evaluate('states'), ['connecting', 'waiting', 'connecting', 'connected', 'elsewhere'])
    await third.evaluate('me.close()')
    await second.evaluate('me.takeOver()')
    await reach(second, 'connected')
  },
)

t.test(
  'a foreign page hears why it can’t read codes, and reads them once the server lets it',
  long({ skip: skipWithoutChromium }),
  async t => {
    t.testdir({ closed: {}, open: {} })
    const pages = createServer((_, answer) =>
      answer.setHeader('content-type', 'text/html').end('<title>app</title>'),
    )
    pages.listen(0, '127.0.0.1')
    await once(pages, 'listening')
    t.teardown(() => pages.close())
    const origin = `http://localhost:${(pages.address() as AddressInfo).port}`
    const page = await (await (await openBrowser(t))!.newContext()).newPage()
    await page.goto(origin)
    await page.evaluate(`${Buffer.from(await bundle('development'))}; window.app = app`)
    const outcome = (url: string) =>
      page.evaluate<{ value?: string; code?: string; message: string }>(`
        app.sentCode('${url}', 'ann@example.org').then(value => ({ value }), ({ code, message }) => ({ code, message }))`)
    const { http } = await serverFor(t, 'closed')
    t.match(await outcome(http), { code: 'ORIGIN_NOT_ALLOWED', message: /CALLSIGN_CORS_ORIGINS/ })
    t.match(await outcome('http://127.0.0.1:9'), { code: 'NO_ANSWER', message: origin })
    const open = await serverFor(t, 'open', { CALLSIGN_CORS_ORIGINS: origin })
    await postJson(`${open.http}/app/api/login`, { email: 'ann@example.org' })
    t.match((await outcome(open.http)).value, /^\d{6}$/)
  },
)

async function serverFor(t: Test, name: string, environment: Readonly<Record<string, string>> = {}) {
  const server = await openServer({ dataFolder: join(t.testdirName, name), environment })
  t.teardown(() => server.end())
  return server
}
