/**
 * A real LiveKit server on loopback, built from its own source by the Go module proxy: 1.9.12 is the newest that
 * `go install` takes, and `livekit-client` gets nothing published at those of 1.7. The program is kept in the user's cache; where
 * it is not there, building it takes some minutes.
 */

import { randomBytes, randomInt } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { GatewayProgram } from './gateway-program.ts'
import { findGo, goEnvironment } from './go-program.ts'
import { runProgram } from './programs.ts'

export interface LiveKitBuild {
  /** Why tests that need it must be skipped, or false. */
  readonly skip: string | false
  readonly program: string
}

/** The program from the cache, which it is built into if it is not there. */
export async function buildLiveKit(): Promise<LiveKitBuild> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'callsign-tests')
  const program = join(cache, `livekit-server-${VERSION}`)
  if (existsSync(program)) return { skip: false, program }
  const go = findGo()
  if (go === undefined) return { skip: 'needs LiveKit, which Go builds: no go in PATH', program }
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'build-'))
  try {
    const environment = { ...goEnvironment(), GOFLAGS: '-mod=mod', GOBIN: folder }
    const source = `github.com/livekit/livekit-server/cmd/server@v${VERSION}`
    const { code, stderr } = await runProgram(go, ['install', source], { environment })
    if (code !== 0) {
      const why = stderr.trim().split('\n').at(-1)
      return { skip: `needs LiveKit, whose source comes from the Go proxy: ${why}`, program }
    }
    // At once, for another test may do the same.
    renameSync(join(folder, 'server'), program)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return { skip: false, program }
}

/** Runs until the end of the test, its file in the folder. Resolves when it answers. */
export async function startLiveKit(
  t: Test,
  { program }: LiveKitBuild,
  folder: string,
  { makesRooms = false }: { readonly makesRooms?: boolean } = {},
): Promise<LiveKit> {
  const ports = [await freePort(), await freePort()] as const
  const livekit = new LiveKit(program, join(folder, 'livekit.yaml'), ports, makesRooms)
  t.teardown(() => livekit.kill())
  await livekit.start()
  return livekit
}

export class LiveKit extends GatewayProgram {
  /** Clients connect here. */
  readonly url: string
  /** Requests of the server go here. */
  readonly apiUrl: string
  readonly apiKey = `API${randomBytes(6).toString('hex')}`
  readonly apiSecret = randomBytes(32).toString('hex')

  /** `makesRooms`: a token for a room is enough to make it. */
  constructor(
    program: string,
    file: string,
    [port, tcpPort]: readonly [number, number],
    makesRooms: boolean,
  ) {
    super([program, '--config', file])
    this.url = `ws://127.0.0.1:${port}`
    this.apiUrl = `http://127.0.0.1:${port}`
    const firstPort = randomInt(RTP_PORT_MIN, RTP_PORT_MAX)
    // JSON is YAML.
    const settings = {
      port,
      bind_addresses: ['127.0.0.1'],
      keys: { [this.apiKey]: this.apiSecret },
      rtc: {
        tcp_port: tcpPort,
        port_range_start: firstPort,
        port_range_end: firstPort + RTP_PORTS - 1,
        use_external_ip: false,
        enable_loopback_candidate: true,
      },
      room: { auto_create: makesRooms },
      logging: { level: 'debug', json: true },
    }
    writeFileSync(file, JSON.stringify(settings))
  }

  /** Settings of a server that uses it. */
  get environment(): Record<string, string> {
    return {
      CALLSIGN_LIVEKIT_URL: this.url,
      CALLSIGN_LIVEKIT_API_KEY: this.apiKey,
      CALLSIGN_LIVEKIT_API_SECRET: this.apiSecret,
    }
  }

  protected async answers(): Promise<boolean> {
    return (await fetch(this.apiUrl)).ok
  }
}

const VERSION = '1.9.12'
const RTP_PORTS = 400
const RTP_PORT_MIN = 10_000
const RTP_PORT_MAX = 32_000 - RTP_PORTS
