/** `callsign new`: the app of each template is complete, and two people call each other with it in two browsers. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { twoPeopleCall } from '../support/app-story.ts'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { bundle, compile, makeApp, runNew, serveFolders } from '../support/new-app.ts'
import { openServer } from '../support/open-server.ts'
import { spawnBound } from '../support/programs.ts'
import { long } from '../support/size.ts'
import { blocksOf, Started } from '../support/your-users.ts'

/** The page for people who make an app. */
const blocks = blocksOf('start/your-page.md')

t.test('wrong use is said, and nothing is written over', long(), async t => {
  const folder = t.testdir({ taken: { file: '' } })
  t.match(await runNew(), { code: 2, stderr: /FOLDER is missing/ })
  t.match(await runNew(join(folder, 'taken')), { code: 2, stderr: /is not empty/ })
  const unknown = await runNew(join(folder, 'app'), '--template', 'constructor')
  t.match(unknown, { code: 2, stderr: /no template constructor, only vite, next, express/ })
  const nowhere = await runNew(join(folder, 'app'), '--server', 'http://127.0.0.1:9')
  t.match(nowhere, { code: 2, stderr: /does not say its keys/ })
})

interface MadeApp {
  /** Left out: the command's own choice. */
  readonly template?: string
  readonly packages?: readonly string[]
  readonly name?: string
}

async function newApp(t: Test, { template, packages = [], name = 'My App' }: MadeApp) {
  const folder = t.testdir()
  const server = await openServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const app = join(folder, name)
  await makeApp(t, app, { server: server.http, packages, ...(template && { template }) })
  t.equal(JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')).name, 'my-app')
  return { app, server: server.http }
}

t.test('vite, by the commands and programs of the page', { skip: skipWithoutChromium }, async t => {
  const command = blocks.find(({ language }) => language === 'console')!.text
  const [, name = ''] = /^\$ npx callsign new \.\.\/(\S+)\n$/.exec(command) ?? []
  const { app, server } = await newApp(t, { name })
  for (const [at, { language, text }] of blocks.entries())
    if (language === 'ts') writeFileSync(join(app, 'src', `block-${at}.ts`), text)
  t.equal(await compile(app), '', 'it compiles, with the blocks of the page')
  await bundle(app, { entryPoints: { main: 'src/main.ts', 'service-worker': 'service-worker.js' } })
  const html = readFileSync(join(app, 'index.html'), 'utf8').replace('/src/main.ts', '/main.js')
  const policy = await policyOfVite(app)
  t.match(policy, `connect-src 'self' ${server} ${server.replace('http', 'ws')} `)
  const url = await serveFolders(t, [app, join(app, 'public')], {
    '/': html.replace('<head>', `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`),
  })
  await twoPeopleCall(t, (await openBrowser(t))!, { url, server })
})

t.test('next', long({ skip: skipWithoutChromium }), async t => {
  const { app, server } = await newApp(t, { template: 'next', packages: ['react', 'react-dom'] })
  // Next.js itself is not among the packages here: next-app.long.test.ts installs and runs it.
  await bundle(app, { stdin: { contents: MOUNT, resolveDir: app }, entryNames: 'main' })
  const url = await serveFolders(t, [app, join(app, 'public'), join(app, 'app')], { '/': PAGE })
  await twoPeopleCall(t, (await openBrowser(t))!, { url, server }, false)
})

t.test('express', long({ skip: skipWithoutChromium }), async t => {
  const { app, server } = await newApp(t, { template: 'express', packages: ['express'] })
  const port = await freePort()
  const child = spawnBound(process.execPath, ['server.js'], {
    cwd: app,
    env: { PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill())
  const url = `http://localhost:${port}`
  await new Started(child).printed(url)
  await twoPeopleCall(t, (await openBrowser(t))!, { url, server })
})

t.test('a page with one script tag', { skip: skipWithoutChromium }, async t => {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  const { text } = blocks.find(({ language }) => language === 'html')!
  const url = await serveFolders(t, [], { '/': text.replaceAll('http://127.0.0.1:8080', server.http) })
  const page = await (await (await openBrowser(t))!.newContext()).newPage()
  await page.goto(url)
  await page.getByLabel('Email or phone').waitFor()
  const names = ['Callsign', 'joinMedia', 'subscribeToWebPush', 'Media', 'useWords']
  const missing = `${JSON.stringify(names)}.filter(name => typeof callsign[name] !== 'function')`
  t.same(await page.evaluate(missing), [])
})

/** The policy that the app's `vite.config.ts` puts into the page. */
async function policyOfVite(app: string): Promise<string> {
  writeFileSync(join(app, 'vite.js'), 'export const defineConfig = config => config')
  const entryPoints = { 'policy-of-vite': 'vite.config.ts' }
  await bundle(app, { entryPoints, alias: { vite: './vite.js' }, outExtension: { '.js': '.mjs' } })
  const { default: config } = await import(join(app, 'policy-of-vite.mjs'))
  const [{ attrs }] = config.plugins[0].transformIndexHtml()
  return attrs.content
}

const MOUNT = `import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import App from './app/app.tsx'
createRoot(document.body).render(createElement(App))`
const PAGE = `<!doctype html><html lang="en"><title>My app</title><meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="/style.css"><script type="module" src="/main.js"></script><body></body></html>`
