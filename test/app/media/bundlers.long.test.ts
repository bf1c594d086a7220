/**
 * Sound and picture in an app's own bundle: the packed SDK with esbuild, Vite and webpack, and with no bundler at all, in
 * pages of a real browser. The worker loads and answers, under the policies (CSP) that the documentation names.
 */

import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { installPackedSdk } from '../../support/packed-sdk.ts'
import { runProgram } from '../../support/programs.ts'

/** The versions that docs/build/media.md names. */
const BUNDLERS = ['vite@8.3.8', 'webpack@5.112.2', 'webpack-cli@7.3.1']
const WITH_BLOB = "default-src 'none'; script-src 'self'; worker-src blob:"
const STRICT = "default-src 'none'; script-src 'self'; worker-src 'self'"
/** Only the worker gives the answer. */
const appWith = (newWorker?: string) => `import { GatewayMedia } from '@callsign/sdk/app/media'
const media = new GatewayMedia({ callId: '1'${newWorker === undefined ? '' : `, newWorker: () => ${newWorker}`} })
window.answer = media.statistics().then(({ participants }) => participants.size)
`
const SOURCES = {
  'inline.js': appWith(),
  'copied.js': appWith(`new Worker('/callsign-worker.js')`),
  'found.js': appWith(
    `new Worker(new URL('@callsign/sdk/app/media-worker', import.meta.url), { type: 'module' })`,
  ),
  'plain.js': appWith().replace(
    '@callsign/sdk/app/media',
    '/node_modules/@callsign/sdk/dist/src/app/media/media.js',
  ),
}

/** Serves the built files of a page that loads `script`. */
async function serve(t: Test, folder: string, script: string, policy: string): Promise<string> {
  const server = createServer(({ url = '' }, answer) => {
    const isScript = url.endsWith('.js')
    answer.setHeader('content-security-policy', policy)
    answer.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    answer.end(
      isScript ? readFileSync(join(folder, url)) : `<script type="module" src="/${script}"></script>`,
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

t.test('the worker loads in an app’s own bundle', { skip: skipWithoutChromium }, async t => {
  const app = t.testdir(SOURCES)
  const { folder } = await installPackedSdk(app)
  const browser = (await openBrowser(t))!
  const loads = async (t: Test, built: string, script: string, policy: string) => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(await serve(t, join(app, built), script, policy))
    t.equal(await page.evaluate('answer'), 0, `${script} of ${built}, with ${policy}`)
    await page.context().close()
  }

  await t.test('by esbuild, which finds no workers; or copied from the package', async t => {
    const entryPoints = ['inline.js', 'copied.js'].map(name => join(app, name))
    await build({ entryPoints, outdir: join(app, 'esbuild'), bundle: true, format: 'esm' })
    const worker = join(folder, 'dist/src/app/media/worker.bundle.js')
    copyFileSync(worker, join(app, 'esbuild/callsign-worker.js'))
    await loads(t, 'esbuild', 'inline.js', WITH_BLOB)
    await loads(t, 'esbuild', 'copied.js', STRICT)
  })

  await t.test('by no bundler: the package’s modules as they are', t => loads(t, '.', 'plain.js', WITH_BLOB))

  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
  const tools = join(app, 'tools')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefix', tools]
  const environment = { ...(process.env as Record<string, string>), NODE_OPTIONS: '' }
  const installed = await runProgram('npm', ['install', ...flags, ...BUNDLERS], { environment })
  const skip = installed.code !== 0 && 'needs Vite and webpack, and npm reaches no registry'
  const bundle = async (t: Test, ...args: string[]) => {
    const [program = '', ...rest] = args
    const built = await runProgram(process.execPath, [join(tools, 'node_modules', program), ...rest])
    t.equal(built.code, 0, built.stdout + built.stderr)
  }

  await t.test('by Vite, within the bundle and as a file', { skip }, async t => {
    for (const name of ['inline', 'found']) {
      const rollupOptions = { input: `${name}.js`, output: { entryFileNames: '[name].js' } }
      const config = { root: app, build: { outDir: `vite-${name}`, rollupOptions } }
      writeFileSync(join(app, 'vite.config.js'), `export default ${JSON.stringify(config)}`)
      await bundle(t, 'vite/bin/vite.js', 'build', '--config', join(app, 'vite.config.js'))
      await loads(t, `vite-${name}`, `${name}.js`, name === 'inline' ? WITH_BLOB : STRICT)
    }
  })

  await t.test('by webpack, within the bundle and as a file', { skip }, async t => {
    for (const name of ['inline', 'found']) {
      const [entry, out] = [join(app, `${name}.js`), join(app, `webpack-${name}`)]
      await bundle(t, 'webpack/bin/webpack.js', '--mode', 'production', '--entry', entry, '-o', out)
      await loads(t, `webpack-${name}`, 'main.js', name === 'inline' ? WITH_BLOB : STRICT)
    }
  })
})
