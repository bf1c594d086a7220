/** `@callsign/sdk/react`: the component of docs/build/web.md in pages of Chromium, under StrictMode, with the real server. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { CODE, emailOf, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { builtProgram } from '../support/programs.ts'
import { long } from '../support/size.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const [, COMPONENT] = /^```tsx\n([\s\S]+?)^```$/m.exec(
  readFileSync(join(PROJECT_ROOT, 'docs/build/web.md'), 'utf8'),
)!

/** Of all tests together, and Cat. */
const PEOPLE_COUNT = 10
const CAT = emailOf(PEOPLE_COUNT - 1)
let peopleSoFar = 0

/** A page's own parts: what the test reaches, and components that note what they were given. */
const PAGE = `
import { StrictMode, startTransition, useLayoutEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Callsign, indexedDbStorage } from '@callsign/sdk/app'
import { useCalls, useCallsign, useContacts } from '@callsign/sdk/react'
import { App } from './App'

async function start({ pins, address, code, displayName }) {
  const me = new Callsign({ server: location.origin, pins, storage: indexedDbStorage() })
  const root = document.createElement('main')
  document.body.replaceChildren(root)
  const react = createRoot(root)
  react.render(<StrictMode><App me={me} /></StrictMode>)
  Object.assign(globalThis, { me, react })
  await me.signIn(address, () => code, { displayName })
}

const empty = () => react.render(null)

/** Says what slow components showed together, when the app was closed while they were drawn the first time. */
function drawSlowly() {
  const count = 30
  const shown = []
  const drawn = new Set()
  function Slow({ at }) {
    const { userId, connection } = useCallsign(me)
    const text = [userId, connection, useCalls(me).length, useContacts(me).contacts.length].join()
    const until = performance.now() + 10
    while (performance.now() < until);
    drawn.add(at)
    useLayoutEffect(() => void (shown[at] = text))
    return null
  }
  let show
  function Many() {
    const [isShown, setShown] = useState(false)
    show = () => startTransition(() => setShown(true))
    useLayoutEffect(() => void (isShown && done([...shown])))
    return isShown && Array.from({ length: count }, (_, at) => <Slow key={at} at={at} />)
  }
  let done
  const drawing = new Promise(resolve => (done = resolve))
  react.render(<Many />)
  const turn = () => {
    if (show !== undefined && drawn.size === 0) show()
    if (drawn.size === 0 || drawn.size === count) return void setTimeout(turn)
    me.close()
  }
  turn()
  return drawing
}
export { start, empty, drawSlowly }
`

/** The page's script, from a folder with its two files. */
async function bundled(folder: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'page.jsx')],
    bundle: true,
    format: 'iife',
    globalName: 'page',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
    alias: {
      '@callsign/sdk/app': builtProgram('src/app/app'),
      '@callsign/sdk/react': builtProgram('src/app/react'),
    },
    nodePaths: [join(PROJECT_ROOT, 'node_modules')],
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]!.text
}

const shared = skipWithoutChromium ? undefined : await start()

/** A server and a browser for the tests of the file, and the page's script. */
async function start() {
  const folder = t.testdir({ 'App.tsx': COMPONENT!, 'page.jsx': PAGE })
  const server = await openServer({
    dataFolder: join(folder, 'server'),
    environment: settingsFor(PEOPLE_COUNT),
  })
  t.teardown(() => server.end())
  return { server, browser: (await openBrowser(t))!, script: await bundled(folder) }
}

/** Opens pages with the app of new people, each in a browser profile of its own. */
function newPages(t: Test, people: number) {
  const { server, browser, script } = shared!
  const before = peopleSoFar
  peopleSoFar += people
  return async (at: number): Promise<Page> => {
    const context = await browser.newContext()
    t.teardown(() => context.close())
    const page = await context.newPage()
    // React reports misuse there, such as a view that is a new object each time.
    page.on('console', message => {
      const text = message.text()
      if (message.type() === 'error' && !text.startsWith('Failed to load resource')) t.fail(text)
    })
    await page.goto(`${server.http}/app/api/meta`)
    await page.addScriptTag({ content: script })
    const pins = { vkey: server.vkey, vrfPublicKey: server.vrfPublicKey }
    const options = { pins, address: emailOf(before + at), code: CODE, displayName: `Person ${at}` }
    await page.evaluate(`page.start(${JSON.stringify(options)})`)
    await page.getByRole('heading', { name: `Person ${at}, connected` }).waitFor()
    return page
  }
}

const button = (page: Page, name: string) => page.getByRole('button', { name })

async function befriend(ann: Page, bob: Page): Promise<void> {
  await ann.evaluate(`me.contacts.request({ userId: '${await bob.evaluate('me.userId')}' })`)
  await button(bob, 'Accept').click()
  await button(ann, 'Call').waitFor()
  await button(bob, 'Call').waitFor()
}

t.test('people become contacts and call each other', { skip: skipWithoutChromium }, async t => {
  const open = newPages(t, 2)
  const [ann, bob] = [await open(0), await open(1)]
  await befriend(ann, bob)
  t.equal(await button(bob, 'Accept').count(), 0, 'a request that was accepted goes')
  await button(ann, 'Call Person 1').click()
  await ann.getByText('ringing').waitFor()
  await bob.getByText('Person 0 calls').waitFor()
  await button(bob, 'Answer').click()
  const [anns, bobs] = await Promise.all(
    [ann, bob].map(page => page.getByText(/^active \d{5}( \d{5}){5}/).innerText()),
  )
  t.equal(anns, bobs)
  await button(ann, 'Hang up').click()
  for (const page of [ann, bob]) await button(page, 'Hang up').waitFor({ state: 'detached' })

  await ann.evaluate(`me.contacts.remove('${await bob.evaluate('me.userId')}')`)
  await button(bob, 'Call').waitFor({ state: 'detached' })
})

t.test('a device waits, and is approved', { skip: skipWithoutChromium }, async t => {
  const open = newPages(t, 1)
  const [phone, laptop] = [await open(0), await open(0)]
  const code = (await laptop.getByText(/^Compare /).innerText()).slice('Compare '.length)
  await button(phone, `Approve ${code}`).click()
  await laptop.getByText('Compare').waitFor({ state: 'detached' })
  await button(phone, 'Approve').waitFor({ state: 'detached' })
})

t.test('a user does not see the last user’s data', { skip: skipWithoutChromium }, async t => {
  const open = newPages(t, 2)
  const [ann, bob] = [await open(0), await open(1)]
  await befriend(ann, bob)
  await ann.evaluate('me.signOut()')
  await button(ann, 'Call').waitFor({ state: 'detached' })
  await ann.evaluate(`me.signIn('${CAT}', () => '${CODE}', { displayName: 'Cat' })`)
  await ann.getByRole('heading', { name: 'Cat, connected' }).waitFor()
  t.equal(await button(ann, 'Call').count(), 0)
})

t.test('nothing is read for components that are gone', long({ skip: skipWithoutChromium }), async t => {
  const open = newPages(t, 2)
  const [ann, bob] = [await open(0), await open(1)]
  await befriend(ann, bob)
  const read: string[] = []
  ann.on('request', request => read.push(new URL(request.url()).pathname))
  await ann.evaluate(`page.empty(); void (globalThis.removed = me.once('contact_removed'))`)
  await bob.evaluate(`me.contacts.remove('${await ann.evaluate('me.userId')}')`)
  await ann.evaluate(`removed.then(() => me.contacts.blocked())`)
  t.same(read, ['/app/api/block'])
})

t.test('components that are drawn together agree', long({ skip: skipWithoutChromium }), async t => {
  const open = newPages(t, 2)
  const [ann, bob] = [await open(0), await open(1)]
  await befriend(ann, bob)
  const shown = (await ann.evaluate('page.drawSlowly()')) as string[]
  t.same([...new Set(shown)], [',off,0,0'])
  t.equal(shown.length, 30)
})
