/**
 * The start of `callsign/app` as a browser loads it: bundled without anything of Node or of schemas, and run in a page of
 * the server with IndexedDB.
 */

import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
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

const IN_PAGE = `
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
