/** Pages with the elements around a call, of a real server: each is a small app of one person. */

import type { Browser, BrowserContext, BrowserContextOptions, Page, Route } from 'playwright-core'
import type { Test } from 'tap'
import { PHONE } from './browser.ts'
import { openServer } from './open-server.ts'
import { SDK_MODULE, serveSdk } from './sdk-module.ts'
import type { OpenServer } from './server.ts'

export interface HomeHouse {
  readonly server: OpenServer
  /** Where the app is: a domain, which passkeys need. */
  readonly url: string
  /** A browser profile of its own, which ends with the test. */
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
}

/** Starts a server; it and the contexts end with the test. */
export async function openHome(
  t: Test,
  browser: Browser,
  environment: Record<string, string> = {},
): Promise<HomeHouse> {
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  const url = `${server.http.replace('127.0.0.1', 'localhost')}/dev/client`
  const newContext = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ viewport: PHONE, locale: 'en-GB', ...options })
    t.teardown(() => context.close())
    // The page is the server's own, with another script: browsers let no other page connect to this machine.
    const fill = (contentType: string, body: string) => (route: Route) => route.fulfill({ contentType, body })
    await serveSdk(context)
    await context.route('**/pages/client/main.js', fill('text/javascript', SCRIPT))
    await context.route('**/pages/client/style.css', fill('text/css', STYLE))
    return context
  }
  return { server, url, newContext }
}

/** A page of a new person, who is signed in. */
export async function newPerson(
  house: HomeHouse,
  name: string,
  options?: BrowserContextOptions,
): Promise<Page> {
  const page = await (await house.newContext(options)).newPage()
  await page.goto(house.url)
  await signInAs(page, name)
  return page
}

export async function signInAs(page: Page, name: string): Promise<void> {
  await askForCode(page, name)
  await page.getByRole('button', { name: 'Fetch the code' }).click()
  await page.getByText('connected', { exact: true }).waitFor()
}

export async function askForCode(page: Page, name: string): Promise<void> {
  await page.getByLabel('Email or phone').fill(`${name.toLowerCase()}@example.org`)
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Send me a code' }).click()
}

/** `lang` in the page's address is its language; `vkey` is another key to pin. */
const SCRIPT = `
  import { browserName, Callsign, developmentPins, indexedDbStorage, sentCode } from '${SDK_MODULE}'
  const asked = new URLSearchParams(location.search)
  document.documentElement.lang = asked.get('lang') ?? 'en'
  const server = location.origin
  const storage = indexedDbStorage()
  const vkey = asked.get('vkey')
  const pins = { ...(await developmentPins(server)), ...(vkey && { vkey }) }
  const device = { deviceInfo: { platform: 'web', name: browserName() } }
  const me = new Callsign({ server, pins, storage, device, language: document.documentElement.lang })
  globalThis.me = me
  globalThis.calls = []
  const developmentInbox = address => sentCode(server, address)
  const main = document.querySelector('main')
  main.innerHTML = '<h1>App</h1><p></p>'
  const make = tag => Object.assign(document.createElement('callsign-' + tag), { me, storage, developmentInbox })
  const homes = ['contacts', 'devices', 'account'].map(make)
  const signIn = make('sign-in')
  main.append(make('notices'), make('proof'))
  main.addEventListener('call', ({ detail }) => calls.push([detail.contacts.map(one => one.displayName), detail.video]))
  let isIn
  const draw = () => {
    main.querySelector('p').textContent = me.connection
    if (isIn === (me.userId !== undefined)) return
    isIn = me.userId !== undefined
    for (const one of [signIn, ...homes]) one.remove()
    main.append(...(isIn ? homes : [signIn]))
  }
  me.on('changed', draw)
  draw()`
const STYLE = `
  body { margin: 0; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fbfaf7, #15181a);
    color: light-dark(#1c2326, #e6e8e6) }
  main { display: grid; gap: 1rem; max-width: 34rem; margin: 0 auto }
  main > * { min-width: 0 }`
