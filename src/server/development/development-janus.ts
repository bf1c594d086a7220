/**
 * A Janus of a development server: started with it if Debian's package is installed, on this machine alone, with secrets and
 * ports of this run. Its files are in the data folder. It ends with the server, however that ends.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { JanusAdmin } from '../../media/janus-admin.ts'
import { JANUS_PROGRAM, janusArguments, writeJanusFiles } from '../../media/janus-files.ts'
import type { JanusMediaSettings } from '../../media/media-settings.ts'
import type { Config } from '../settings/config.ts'

/**
 * The configuration with a gateway, once it answers; the same where there is one already, none is wanted or none can be
 * started. `say` is told why not.
 */
export async function withDevelopmentJanus(config: Config, say: (text: string) => void): Promise<Config> {
  const isWanted = config.isDevelopment && config.developmentJanus === 'auto'
  if (!isWanted || config.application.media !== undefined || !existsSync(JANUS_PROGRAM)) return config
  const folder = join(config.dataFolder, 'janus')
  const settings = await writeFiles(folder, config.lanAddress ?? '127.0.0.1')
  const log = openSync(join(folder, 'janus.log'), 'a', 0o600)
  const child = spawnBound([JANUS_PROGRAM, ...janusArguments(folder)], log)
  process.on('exit', () => void child.kill('SIGKILL'))
  if (await answers(child, settings)) {
    child.unref()
    return { ...config, application: { ...config.application, media: settings } }
  }
  child.kill('SIGKILL')
  say(`callsign: Janus did not start, so calls are without it; ${join(folder, 'janus.log')} says why\n`)
  return config
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
    gateways: [{ ...gateway, ...urls }],
    events: { host: '127.0.0.1', port: events, user, password },
  }
}

/** Bound to this process where the system can do it, so that not even SIGKILL leaves it behind. */
function spawnBound(command: readonly string[], log: number): ChildProcess {
  const bound = existsSync(SETPRIV) ? [SETPRIV, '--pdeathsig', 'KILL', ...command] : command
  return spawn(bound[0]!, bound.slice(1), { stdio: ['ignore', log, log] })
}

async function answers(child: ChildProcess, { gateways }: JanusMediaSettings): Promise<boolean> {
  const admin = new JanusAdmin(gateways[0]!)
  const untilMs = performance.now() + START_MS_MAX
  let hasEnded = false
  child.once('error', () => {
    hasEnded = true
  })
  child.once('exit', () => {
    hasEnded = true
  })
  while (!hasEnded && performance.now() < untilMs) {
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
