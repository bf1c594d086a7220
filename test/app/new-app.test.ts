/** `callsign new`: its app is complete, compiles, and two people call each other with it in two browsers. */

import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { sentCode } from '../../src/app/development.ts'
import { addAuthenticator, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { openServer } from '../support/open-server.ts'
import { PACKAGE } from '../support/package-name.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { long } from '../support/size.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const CALLSIGN = builtProgram('scripts/callsign')
const TSC = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')

t.test('wrong use is said, and nothing is written over', long(), async t => {
  const folder = t.testdir({ taken: { file: '' } })
  const run = (...args: string[]) => runProgram(process.execPath, [CALLSIGN, 'new', ...args])
  t.match(await run(), { code: 2, stderr: /FOLDER is missing/ })
  t.match(await run(join(folder, 'taken')), { code: 2, stderr: /is not empty/ })
  const nowhere = await run(join(folder, 'app'), '--server', 'http://127.0.0.1:9')
  t.match(nowhere, { code: 2, stderr: /does not say its keys/ })
})

t.test('two people call each other with the app', { skip: skipWithoutChromium }, async t => {
  const folder = t.testdir()
  const server = await openServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const app = join(folder, 'My-App')
  const made = await runProgram(process.execPath, [CALLSIGN, 'new', app, '--server', server.http])
  t.equal(made.code, 0, made.stderr)
  t.equal(JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')).name, 'my-app')
  const sdk = join(app, 'node_modules', PACKAGE)
  mkdirSync(sdk, { recursive: true })
  await runProgram('tar', ['xzf', join(app, 'callsign-sdk.tgz'), '-C', sdk, '--strip-components=1'])
  symlinkSync(join(PROJECT_ROOT, 'node_modules', '@noble'), join(app, 'node_modules', '@noble'))
  const compiled = await runProgram(process.execPath, [TSC, '-p', app])
  t.equal(compiled.stdout, '', 'it compiles')

  // As Vite does, which the project does not have.
  await build({
    absWorkingDir: app,
    entryPoints: { main: 'src/main.ts', 'service-worker': 'service-worker.js' },
    outdir: app,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    logLevel: 'silent',
  })
  const html = readFileSync(join(app, 'index.html'), 'utf8').replace('/src/main.ts', '/main.js')
  const files: Record<string, [type: string, text: string]> = {
    '/': ['text/html', html],
    '/main.js': ['text/javascript', readFileSync(join(app, 'main.js'), 'utf8')],
    '/service-worker.js': ['text/javascript', readFileSync(join(app, 'service-worker.js'), 'utf8')],
    '/src/style.css': ['text/css', readFileSync(join(app, 'src/style.css'), 'utf8')],
  }
  const web = createServer(({ url = '' }, answer) => {
    const [type, text] = files[url] ?? ['text/plain', '']
    answer.writeHead(200, { 'content-type': type }).end(text)
  }).listen(0, '127.0.0.1')
  t.teardown(() => web.close())
  await once(web, 'listening')
  const { port } = web.address() as AddressInfo
  const browser = (await openBrowser(t))!
  const signIn = async (name: string): Promise<Page> => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(`http://localhost:${port}/`)
    const address = `${name}@example.org`
    await page.getByLabel('Email address').fill(address)
    await page.getByRole('button', { name: 'Send a code' }).click()
    await page.getByLabel('Code').waitFor()
    await page.getByLabel('Code').fill(await sentCode(server.http, address))
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('connected').waitFor()
    return page
  }
  const ann = await signIn('ann')
  const bob = await signIn('bob')
  await ann.getByRole('button', { name: 'Share a link' }).click()
  const link = await ann.getByText(/\/c\/c_/).innerText()
  t.match(link, '#', 'the link names its owner')
  const given = bob.getByLabel('A link or code that you were given')
  await given.fill('https://example.org/')
  await bob.getByRole('button', { name: 'Open', exact: true }).click()
  await bob.getByText('This is not a contact’s code or link').waitFor()
  await given.fill(link)
  await bob.getByRole('button', { name: 'Open', exact: true }).click()
  await bob.getByRole('heading', { name: 'ann' }).waitFor()
  t.equal(await ann.getByRole('button', { name: 'Accept' }).count(), 0, 'nothing is asked yet')
  await bob.getByRole('button', { name: 'Ask to be contacts' }).click()
  await ann.getByRole('button', { name: 'Accept' }).click()
  await bob.getByRole('button', { name: 'Call' }).click()
  await ann.getByText('bob calls').waitFor()
  await ann.getByText('Verified', { exact: true }).waitFor()
  await ann.getByRole('button', { name: 'Answer' }).click()
  const fingerprints = [ann, bob].map(page => page.getByText(/^\d{5}( \d{5}){5}$/).innerText())
  const [anns, bobs] = await Promise.all(fingerprints)
  t.equal(anns, bobs)
  await ann.reload()
  await ann.getByText(anns!).waitFor()
  await bob.getByRole('button', { name: 'Hang up' }).click()
  await ann.getByText('The call has ended: hangup.').waitFor()

  // The browser of the tests shows no notifications.
  await ann.getByRole('button', { name: 'Ring me when this page is closed' }).click()
  await ann.getByText('does not let this page show notifications').waitFor()
  t.match(
    await ann.evaluate('navigator.serviceWorker.ready.then(({ active }) => active.scriptURL)'),
    'service-worker.js',
  )

  const devtools = await ann.context().newCDPSession(ann)
  await devtools.send('WebAuthn.enable')
  await addAuthenticator(devtools)
  await ann.getByRole('button', { name: 'Add a passkey' }).click()
  const code = ann.getByLabel('The code sent to')
  await code.waitFor()
  await code.fill(await sentCode(server.http, 'ann@example.org'))
  await ann.getByRole('button', { name: 'Confirm' }).click()
  await ann.getByText('Next time you sign in without a code.').waitFor()
  await ann.getByRole('button', { name: 'Sign out' }).click()
  await ann.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await ann.getByText('connected').waitFor()
})
