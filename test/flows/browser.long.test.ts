/**
 * The bundled client in a real browser, against running servers: what it verifies, keeps in the browser's storage, and
 * refuses when the same address later shows another log.
 */

import { cpSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bundleClient } from '../support/client-builds.ts'
import { type LiveLog, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { long } from '../support/size.ts'

const CHROMIUM = '/usr/bin/chromium'
const skip = skipWithout([CHROMIUM], 'chromium')

/**
 * Looks the device up and checks its own keys; what came of it becomes the text of the document. The image that does
 * not come until then keeps the page loading: the browser prints the document once it is loaded.
 */
const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>callsign</title>
<pre></pre>
<img src="/checked">
<script type="module">
  const store = {
    get: origin => JSON.parse(localStorage.getItem(origin)),
    put: checkpoint => localStorage.setItem(checkpoint.origin, JSON.stringify(checkpoint)),
  }
  async function check() {
    const { LogClient } = await import('./client.js')
    const { keys, device } = await (await fetch('./settings.json')).json()
    const client = new LogClient({ url: location.origin, ...keys, store })
    const before = (await client.highestCheckpoint())?.treeSize
    const found = await client.lookUp(device)
    const own = await client.checkOwnKeys(device)
    const after = (await client.highestCheckpoint())?.treeSize
    return { before, found, own, after }
  }
  const results = await check().catch(error => ({ error: String(error) }))
  document.querySelector('pre').textContent = JSON.stringify(results)
  await fetch('/checked', { method: 'POST' })
</script>`

interface PageResults {
  readonly before?: number
  readonly after?: number
  readonly found: Readonly<Record<string, unknown>>
  readonly own: Readonly<Record<string, unknown>>
}

/** One origin for page and log, as an app's own web server would be: the log's lookups allow no other. */
class Site {
  /** The log behind the address. */
  log: LiveLog
  /** The page's facts. */
  settings: unknown
  readonly #code: Uint8Array
  #loading: ServerResponse | undefined

  constructor(log: LiveLog, code: Uint8Array) {
    this.log = log
    this.#code = code
  }

  async listen(t: Test): Promise<string> {
    const server = createServer((request, response) => void this.#answer(request, response))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    switch (request.url) {
      case '/':
        return void response.setHeader('content-type', 'text/html').end(PAGE)
      case '/client.js':
        return void response.setHeader('content-type', 'text/javascript').end(this.#code)
      case '/settings.json':
        return void response.end(JSON.stringify(this.settings))
      case '/checked':
        if (request.method === 'POST') for (const waiting of [response, this.#loading]) waiting?.end()
        else this.#loading = response
        return
      default:
        return this.#forward(request, response)
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray())
    const answer = await fetch(`${this.log.http}${request.url}`, {
      method: request.method!,
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      ...(body.length > 0 ? { body } : {}),
    })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  }
}

/** Opens the page in a browser with this profile and gives what it wrote into its document. */
async function openPage(url: string, profile: string): Promise<PageResults> {
  const { code, stdout, stderr } = await runProgram('/usr/bin/timeout', [
    '60',
    CHROMIUM,
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    `--user-data-dir=${profile}`,
    '--dump-dom',
    url,
  ])
  const [, json] = /<pre>([\s\S]+)<\/pre>/.exec(stdout) ?? []
  if (json === undefined) throw new Error(`chromium ends with ${code}: ${stdout}${stderr.slice(-2000)}`)
  return JSON.parse(unescapeText(json)) as PageResults
}

function unescapeText(html: string): string {
  return html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&nbsp;', '\u{a0}')
    .replaceAll('&amp;', '&')
}

t.test(
  'a browser verifies a log as it grows, and refuses another that takes its place',
  long({ skip }),
  async t => {
    const folder = t.testdir({ profile: {} })
    const profile = join(folder, 'profile')
    const first = await startLog(t, join(folder, 'log'))
    const { vrfHash, publicKey } = await registerKey(first.client, 1n, 1n)
    await registerUsers(first.client, 2, 20)
    const { code } = await bundleClient('esm')
    const site = new Site(first, code)
    site.settings = {
      keys: { vkey: first.vkey, vrfPublicKey: first.vrfPublicKey },
      device: { userId: '1', deviceId: '1', vrfHash, publicKeys: [publicKey] },
    }
    const url = await site.listen(t)
    t.match(await openPage(url, profile), {
      before: undefined,
      found: { kind: 'verified', publicKey, index: 0 },
      own: { kind: 'clean' },
      after: 21,
    })

    await first.end()
    cpSync(join(folder, 'log'), join(folder, 'fork'), { recursive: true })
    site.log = await startLog(t, join(folder, 'log'))
    await registerUsers(site.log.client, 100, 300)
    t.match(await openPage(url, profile), {
      before: 21,
      found: { kind: 'verified' },
      own: { kind: 'clean' },
      after: 321,
    })

    site.log = await startLog(t, join(folder, 'fork'))
    // It has not the tiles that would show whether its tree is the beginning of the one seen before.
    const open = { kind: 'unanswered', check: 'tiles' }
    t.match(await openPage(url, profile), { before: 321, found: open, own: open, after: 321 })
    await registerUsers(site.log.client, 500, 301)
    const rewritten = { kind: 'refused', check: 'consistency' }
    t.match(await openPage(url, profile), { before: 321, found: rewritten, own: rewritten, after: 321 })
  },
)
