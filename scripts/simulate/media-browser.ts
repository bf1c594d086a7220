/**
 * A Chromium without a window that shows the page of `web/simulator`. It reads a pipe of this process, and so ends with it,
 * however that ends.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import { assert } from '../../src/errors.ts'
import type { MediaReport, MediaRequest } from '../../web/simulator/messages.ts'
import { CHROMIUM } from '../support/chromium.ts'

export interface MediaBrowserOptions {
  readonly onReport: (report: MediaReport) => void
  /** The page is gone. */
  readonly onGone: () => void
}

export class MediaBrowser {
  readonly #server: Server
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #profile = mkdtempSync(join(tmpdir(), 'callsign-people-'))
  #page: WebSocket | undefined

  private constructor(server: Server, url: string) {
    assert(CHROMIUM !== undefined, 'there is a Chromium')
    this.#server = server
    this.#child = spawn(CHROMIUM, [...SWITCHES, `--user-data-dir=${this.#profile}`, url], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    })
    this.#ended = once(this.#child, 'exit').catch(() => undefined)
  }

  /** Resolves when the page is there; rejects with a sentence where it does not come. */
  static async open({ onReport, onGone }: MediaBrowserOptions): Promise<MediaBrowser> {
    // Keys of calls go by it: no other page on this machine finds it.
    const path = `/${randomBytes(16).toString('hex')}`
    const server = createServer(({ url = '' }, answer) => {
      const file = url === path ? { type: 'text/html', body: SHELL } : moduleAt(url)
      answer.writeHead(file === undefined ? 404 : 200, { 'content-type': file?.type ?? 'text/plain' })
      answer.end(file?.body)
    })
    const sockets = new WebSocketServer({ server, path })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const browser = new MediaBrowser(server, `http://127.0.0.1:${port}${path}`)
    const late = sleep(LOAD_MS_MAX, [], { ref: false })
    const [page] = await Promise.race([once(sockets, 'connection'), browser.#ended.then(() => []), late])
    if (page === undefined) {
      await browser.close()
      throw new Error(`${CHROMIUM} does not show the page that people send from`)
    }
    browser.#page = page
    page.on('message', (data: Buffer) => onReport(JSON.parse(data.toString('utf8'))))
    page.on('close', onGone)
    return browser
  }

  tell(request: MediaRequest): void {
    // A failure means that the page is gone, which `onGone` tells.
    this.#page?.send(JSON.stringify(request), () => undefined)
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#child.kill('SIGKILL')
    await this.#ended
    this.#server.closeAllConnections()
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A built module that the page imports, by its path under `dist`. */
function moduleAt(path: string): { readonly type: string; readonly body: Buffer } | undefined {
  if (!/^\/(?:(?:web\/simulator|src\/app)\/[\w/-]+|src\/(?:back-off|recent))\.js$/.test(path))
    return undefined
  try {
    return { type: 'text/javascript', body: readFileSync(join(BUILT, path)) }
  } catch {
    return undefined
  }
}

const BUILT = join(import.meta.dirname, '..', '..')
const SHELL =
  '<!doctype html><title>people</title><script type="module" src="/web/simulator/main.js"></script>'
const SWITCHES = [
  '--headless=new',
  // The pipe.
  '--remote-debugging-pipe',
  '--no-first-run',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--autoplay-policy=no-user-gesture-required',
  // Its sandbox refuses to run as root, as in most containers.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
]
const LOAD_MS_MAX = 30_000
