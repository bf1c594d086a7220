/** A real media gateway: Debian's Janus on loopback, with the files of `deploy/janus`. */

import { randomBytes, randomInt } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { JANUS_PROGRAM, janusArguments, writeJanusFiles } from '../../src/media/janus-files.ts'
import { freePort } from './free-port.ts'
import { GatewayProgram } from './gateway-program.ts'
import { skipWithout } from './programs.ts'

/** Why a test that needs a gateway is skipped, or false. */
export const skipWithoutJanus = skipWithout([JANUS_PROGRAM], 'janus')

export interface JanusOptions {
  /** Where it listens: `0.0.0.0` for clients that are in other networks. */
  readonly host?: string
  /** Where its events go; by default to a server with the `environment` of this Janus. */
  readonly eventsUrl?: string
  readonly eventsUser?: string
  readonly sendsEvents?: false
}

/** Runs until the end of the test, its files in the folder. Resolves when it answers. */
export async function startJanus(t: Test, folder: string, options: JanusOptions = {}): Promise<Janus> {
  const firstPort = randomInt(RTP_PORT_MIN / 2, RTP_PORT_MAX / 2) * 2
  const secrets = {
    adminSecret: randomText(),
    adminKey: randomText(),
    tokenSecret: randomText(),
    eventsPassword: randomText(),
  }
  const ports = { ws: await freePort(), admin: await freePort(), events: await freePort() }
  writeJanusFiles(folder, {
    JANUS_ADMIN_SECRET: secrets.adminSecret,
    JANUS_ADMIN_KEY: secrets.adminKey,
    JANUS_TOKEN_SECRET: secrets.tokenSecret,
    JANUS_EVENTS_URL: options.eventsUrl ?? `http://127.0.0.1:${ports.events}/events`,
    JANUS_EVENTS_USER: options.eventsUser ?? EVENTS_USER,
    JANUS_EVENTS_PASSWORD: secrets.eventsPassword,
    JANUS_WS_IP: options.host ?? '127.0.0.1',
    JANUS_WS_PORT: ports.ws,
    JANUS_ADMIN_IP: '127.0.0.1',
    JANUS_ADMIN_PORT: ports.admin,
    JANUS_RTP_PORTS: `${firstPort}-${firstPort + RTP_PORTS - 1}`,
  })
  if (options.sendsEvents === false) rmSync(join(folder, 'janus.eventhandler.sampleevh.jcfg'))
  const janus = new Janus(folder, ports, secrets)
  t.teardown(() => janus.kill())
  await janus.start()
  return janus
}

interface JanusSecrets {
  readonly adminSecret: string
  readonly adminKey: string
  readonly tokenSecret: string
  readonly eventsPassword: string
}

export class Janus extends GatewayProgram {
  /** Clients connect here, with the subprotocol `janus-protocol`. */
  readonly url: string
  readonly adminUrl: string
  readonly secrets: JanusSecrets
  readonly eventsPort: number

  constructor(folder: string, ports: { ws: number; admin: number; events: number }, secrets: JanusSecrets) {
    super([JANUS_PROGRAM, ...janusArguments(folder)])
    this.url = `ws://127.0.0.1:${ports.ws}`
    this.adminUrl = `http://127.0.0.1:${ports.admin}/admin`
    this.eventsPort = ports.events
    this.secrets = secrets
  }

  /** Settings of a server that uses it. */
  get environment(): Record<string, string> {
    return {
      CALLSIGN_JANUS_ADMIN_URL: this.adminUrl,
      CALLSIGN_JANUS_ADMIN_SECRET: this.secrets.adminSecret,
      CALLSIGN_JANUS_ADMIN_KEY: this.secrets.adminKey,
      CALLSIGN_JANUS_TOKEN_SECRET: this.secrets.tokenSecret,
      CALLSIGN_JANUS_CLIENT_URL: this.url,
      CALLSIGN_JANUS_EVENTS_PORT: String(this.eventsPort),
      CALLSIGN_JANUS_EVENTS_USER: EVENTS_USER,
      CALLSIGN_JANUS_EVENTS_PASSWORD: this.secrets.eventsPassword,
    }
  }

  /** Its entry in a server's list of gateways. */
  listed(name: string, more: object = {}): object {
    return {
      ...{ name, adminUrl: this.adminUrl, clientUrl: this.url },
      ...this.secrets,
      ...more,
    }
  }

  /** How many UDP ports it holds. */
  get udpPorts(): number {
    const process = `/proc/${this.pid}`
    const sockets = readdirSync(`${process}/fd`).flatMap(fd => {
      try {
        return [/^socket:\[(\d+)\]$/.exec(readlinkSync(`${process}/fd/${fd}`))?.[1]]
      } catch {
        // Closed since the folder was read.
        return []
      }
    })
    const lines = ['udp', 'udp6'].flatMap(name => readFileSync(`${process}/net/${name}`, 'utf8').split('\n'))
    const inodes = new Set(lines.map(line => line.trim().split(/\s+/)[9]))
    return sockets.filter(inode => inode !== undefined && inodes.has(inode)).length
  }

  /** Sessions that it keeps. */
  async sessions(): Promise<number> {
    return ((await this.admin({ janus: 'list_sessions' })).sessions as unknown[]).length
  }

  /** Numbers of its rooms. */
  async rooms(): Promise<number[]> {
    const { list } = await this.videoRoom({ request: 'list', admin_key: this.secrets.adminKey })
    return (list as { readonly room: number }[]).map(({ room }) => room)
  }

  /** A request of the Admin API, with its secret. */
  async admin(body: object): Promise<Record<string, unknown>> {
    const transaction = randomText()
    const reply = await fetch(this.adminUrl, {
      method: 'POST',
      body: JSON.stringify({ ...body, admin_secret: this.secrets.adminSecret, transaction }),
    })
    return (await reply.json()) as Record<string, unknown>
  }

  /** A request to the plugin of the rooms, and what it answers. */
  async videoRoom(request: object): Promise<Record<string, unknown>> {
    const reply = await this.admin({ janus: 'message_plugin', plugin: VIDEO_ROOM, request })
    return reply.response as Record<string, unknown>
  }

  protected async answers(): Promise<boolean> {
    return (await this.admin({ janus: 'ping' })).janus === 'pong'
  }
}

function randomText(): string {
  return randomBytes(16).toString('hex')
}

export const EVENTS_USER = 'janus'
const VIDEO_ROOM = 'janus.plugin.videoroom'
const RTP_PORTS = 400
const RTP_PORT_MIN = 10_000
const RTP_PORT_MAX = 32_000 - RTP_PORTS
