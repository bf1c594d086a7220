/**
 * A Janus of a development server: started with it if Debian's package is installed, on this machine alone, with secrets and
 * ports of this run. Its files are in the data folder. It ends with the server, however that
 * ends, and is started again where it ends before.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { backOffMs } from '../../back-off.ts'
import { JanusAdmin } from '../../media/janus-admin.ts'
import { JANUS_PROGRAM, janusArguments, writeJanusFiles } from '../../media/janus-files.ts'
import type { JanusMediaSettings } from '../../media/media-settings.ts'
import type { Config } from '../settings/config.ts'

/**
 * The configuration with a gateway, once it answers; the same where there is one already, none is wanted or none can be
 * started. `say` hears why not, when the gateway ends before the server, and when it is back.
 */
export async function withDevelopmentJanus(
  config: Config,
  say: (text: string) => void,
  program = JANUS_PROGRAM,
): Promise<Config> {
  const isWanted = config.isDevelopment && config.developmentJanus === 'auto'
  if (!isWanted || config.application.media !== undefined || !existsSync(program)) return config
  const folder = join(config.dataFolder, 'janus')
  const settings = await writeFiles(folder, config.lanAddress ?? '127.0.0.1')
  const janus = new DevelopmentJanus(program, folder, settings, say)
  process.on('exit', () => janus.kill())
  if (await janus.start()) return { ...config, application: { ...config.application, media: settings } }
  say(`callsign: Janus did not start, so calls are without it; ${join(folder, 'janus.log')} says why\n`)
  return config
}

/** Started again after each end, with the same files: the server then makes the rooms of live calls anew. */
class DevelopmentJanus {
  readonly #program: string
  readonly #folder: string
  readonly #settings: JanusMediaSettings
  readonly #say: (text: string) => void
  #child: ChildProcess | undefined
  #failures = 0
  #isMissingSaid = false

  constructor(program: string, folder: string, settings: JanusMediaSettings, say: (text: string) => void) {
    this.#program = program
    this.#folder = folder
    this.#settings = settings
    this.#say = say
  }

  /** Resolves with whether it answers. One that does not is killed. */
  async start(): Promise<boolean> {
    const log = openSync(join(this.#folder, 'janus.log'), 'a', 0o600)
    const child = spawnBound([this.#program, ...janusArguments(this.#folder)], log)
    closeSync(log)
    this.#child = child
    const ended = new AbortController()
    child.once('error', () => ended.abort())
    child.once('exit', () => ended.abort())
    if (!(await answers(ended.signal, this.#settings))) {
      this.kill()
      return false
    }
    child.unref()
    const sinceMs = performance.now()
    const onEnded = () => {
      if (performance.now() - sinceMs > STEADY_MS) this.#failures = 0
      const how = child.signalCode ?? `code ${child.exitCode}`
      this.#say(`callsign: Janus has ended (${how}); it is started again\n`)
      void this.#startAgain()
    }
    if (ended.signal.aborted) onEnded()
    else ended.signal.addEventListener('abort', onEnded)
    return true
  }

  kill(): void {
    this.#child?.kill('SIGKILL')
  }

  async #startAgain(): Promise<void> {
    do {
      this.#failures++
      await sleep(backOffMs(BACK_OFF, this.#failures, Math.random()), undefined, { ref: false })
    } while (!this.#isThere() || !(await this.start().catch(() => false)))
    this.#say('callsign: Janus is back\n')
  }

  /** An update takes the program away for a moment. */
  #isThere(): boolean {
    const isThere = existsSync(this.#program)
    if (!isThere && !this.#isMissingSaid)
      this.#say(`callsign: ${this.#program} is gone; calls wait for Janus until the program is there again\n`)
    this.#isMissingSaid = !isThere
    return isThere
  }
}

async function writeFiles(folder: string, host: string): Promise<JanusMediaSettings> {
  const [ws, admin, events] = [await freePort(host), await freePort('127.0.0.1'), await freePort('127.0.0.1')]
  const firstPort = randomInt(RTP_PORT_MIN / 2, RTP_PORT_MAX / 2) * 2
  const [adminSecret, adminKey, tokenSecret, password] = Array.from({ length: 4 }, () =>
    randomBytes(24).toString('base64url'),
  ) as [string, string, string, string]
  const user = 'janus'
  writeJanusFiles(folder, {
    JANUS_ADMIN_SECRET: adminSecret,
    JANUS_ADMIN_KEY: adminKey,
    JANUS_TOKEN_SECRET: tokenSecret,
    JANUS_EVENTS_URL: `http://127.0.0.1:${events}/events`,
    JANUS_EVENTS_USER: user,
    JANUS_EVENTS_PASSWORD: password,
    JANUS_WS_IP: host,
    JANUS_WS_PORT: ws,
    JANUS_ADMIN_IP: '127.0.0.1',
    JANUS_ADMIN_PORT: admin,
    JANUS_RTP_PORTS: `${firstPort}-${firstPort + RTP_PORTS - 1}`,
  })
  const gateway = { name: 'janus', weight: 1, isDraining: false, adminSecret, adminKey, tokenSecret }
  const urls = { adminUrl: `http://127.0.0.1:${admin}/admin`, clientUrl: `ws://${host}:${ws}` }
  return {
    kind: 'janus',
    gateways: [{ ...gateway, ...urls, eventsLogin: { user, password } }],
    events: { host: '127.0.0.1', port: events },
  }
}

/** Bound to this process where the system can do it, so that not even SIGKILL leaves it behind. */
function spawnBound(command: readonly string[], log: number): ChildProcess {
  const bound = existsSync(SETPRIV) ? [SETPRIV, '--pdeathsig', 'KILL', ...command] : command
  // Ctrl-C is for the server alone, which ends it.
  return spawn(bound[0]!, bound.slice(1), { stdio: ['ignore', log, log], detached: true })
}

async function answers(ended: AbortSignal, { gateways }: JanusMediaSettings): Promise<boolean> {
  const admin = new JanusAdmin(gateways[0]!)
  const untilMs = performance.now() + START_MS_MAX
  while (!ended.aborted && performance.now() < untilMs) {
    const isThere = await admin.request({ janus: 'ping' }).then(
      () => true,
      () => false,
    )
    if (isThere) return true
    await sleep(LOOK_AGAIN_MS)
  }
  return false
}

async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

const SETPRIV = '/usr/bin/setpriv'
/** For fifty people. */
const RTP_PORTS = 200
const RTP_PORT_MIN = 10_000
const RTP_PORT_MAX = 32_000 - RTP_PORTS
const START_MS_MAX = 5_000
const LOOK_AGAIN_MS = 50
const BACK_OFF = { firstMs: 1_000, maxMs: 30_000 }
/** After so long an end counts as the first. */
const STEADY_MS = 60_000
