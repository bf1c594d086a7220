/** People of the real server in tabs of a real browser: the SDK with its media, and pretended cameras and microphones. */

import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { PATIENCE_MS, WITH_CAMERA } from './browser.ts'
import { CODE, emailOf } from './call-people.ts'
import { builtProgram } from './programs.ts'
import type { OpenServer } from './server.ts'

export interface CallTab {
  readonly page: Page
  readonly userId: string
}

export class CallTabs {
  readonly #browser: Browser
  readonly #server: OpenServer
  readonly #script: string

  private constructor(browser: Browser, server: OpenServer, script: string) {
    this.#browser = browser
    this.#server = server
    this.#script = script
  }

  static async of(browser: Browser, server: OpenServer): Promise<CallTabs> {
    return new CallTabs(browser, server, await bundle())
  }

  /** Signs in the person with this number, without a contact, who answers each call with sound and picture. */
  async open(at: number): Promise<CallTab> {
    const page = await (await this.#browser.newContext(WITH_CAMERA)).newPage()
    return { page, userId: await this.begin(page, at) }
  }

  /** Likewise in a page that is there: a reload. Resolves with the user id. */
  async begin(page: Page, at: number): Promise<string> {
    const { http, vkey, vrfPublicKey } = this.#server
    const pins = JSON.stringify({ vkey, vrfPublicKey })
    await page.goto(`${http}/app/api/meta`)
    return page.evaluate<string>(
      `(() => { ${this.#script}; return begin(${pins}, '${emailOf(at)}', '${CODE}') })()`,
    )
  }
}

/** Makes the other people contacts of the first. */
export async function befriendTabs(first: CallTab, others: readonly CallTab[]): Promise<void> {
  for (const { page, userId } of others) {
    await first.page.evaluate(`me.contacts.request({ userId: '${userId}' })`)
    await page.evaluate(`me.contacts.accept('${first.userId}')`)
  }
}

/** Until the script is true in the page. */
export async function until(page: Page, script: string): Promise<void> {
  const isSo = await page.evaluate(`(async () => {
    const began = performance.now()
    while (!(await (${script}))) {
      if (performance.now() - began > ${PATIENCE_MS}) return false
      await new Promise(resolve => setTimeout(resolve, 30))
    }
    return true
  })()`)
  if (isSo) return
  const situation = await page.evaluate(`(async () => JSON.stringify({
    call: [call.state, call.ending, call.media, call.keys.map(({ epoch }) => epoch)],
    media: [media.state, media.epoch, media.participants, [...(await media.statistics()).participants], failed, errors],
  }))()`)
  throw new Error(`not within ${PATIENCE_MS} ms: ${script}; ${situation}`)
}

/** Until each page has opened so many more frames of sound and of picture of each other page's. */
export async function allReceive(pages: readonly Page[], frames: number): Promise<void> {
  for (const page of pages) await page.evaluate('look()')
  for (const page of pages) await until(page, `receives(${pages.length - 1}, ${frames})`)
}

/** The SDK with its media, and the worker, as scripts for a page of the server. */
async function bundle(): Promise<string> {
  const entry = ['app', 'media/media'].map(name => `export * from '${builtProgram(`src/app/${name}`)}'`)
  const options = { bundle: true, platform: 'browser', write: false, logLevel: 'silent' } as const
  const stdin = { contents: entry.join('\n'), resolveDir: import.meta.dirname }
  const app = await build({ ...options, stdin, format: 'iife', globalName: 'app' })
  const worker = await build({ ...options, entryPoints: [builtProgram('src/app/media/worker')] })
  const workerCode = JSON.stringify(worker.outputFiles[0]!.text)
  return `${app.outputFiles[0]!.text}\nconst workerCode = ${workerCode}\n${SCRIPT}\n;Object.assign(window, { app })`
}

const SCRIPT = `
window.failed = []
window.keyAtMs = 0
const newWorker = () => new Worker(URL.createObjectURL(new Blob([workerCode])))
window.begin = async (pins, address, code) => {
  const me = new app.Callsign({ server: location.origin, pins, storage: app.indexedDbStorage() })
  window.me = me
  window.follow = call => {
    window.call = call
    window.media = app.joinMedia(call, { relay: () => me.relay(), newWorker })
    media.on('participant', ({ undecryptable }) => undecryptable && failed.push(undecryptable))
    call.on('key', () => keyAtMs = Date.now())
    window.errors = []
    media.on('error', ({ code, message }) => errors.push([code, message]))
  }
  me.on('ringing', async call => {
    await call.answer()
    follow(call)
  })
  me.on('resumed', follow)
  if ((await me.resume()) === undefined) await me.signIn(address, () => code)
  while (me.connection !== 'connected') await me.once('connection')
  return me.userId
}
// Requests for the key; and news of new keys get lost while it is deaf.
window.asked = []
window.isDeaf = false
const { fetch: ask } = window
window.fetch = (url, init) => {
  if (String(url).endsWith('/request-rejoin')) asked.push(String(url))
  return ask(url, init)
}
window.WebSocket = class extends WebSocket {
  set onmessage(listener) {
    super.onmessage = listener && (event => isDeaf && String(event.data).includes('"key_update"') ? undefined : listener(event))
  }
}
// Sound and picture of so many members came since the last look.
let before = new Map()
window.look = async () => { before = (await media.statistics()).participants }
window.receives = async (count, frames) => {
  const { participants } = await media.statistics()
  const came = (feed, opened, name) => (opened[name] ?? 0) >= (before.get(feed)?.opened[name] ?? 0) + frames
  const full = [...participants].filter(([feed, { opened }]) => came(feed, opened, 'microphone') && came(feed, opened, 'camera'))
  return full.length === count
}
`
