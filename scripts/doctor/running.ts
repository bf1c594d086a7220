/** The server, if one runs here; its ports, if none does; and whether clients that come by the public address find it. */

import { randomBytes } from 'node:crypto'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { tryPort } from '../../src/server/process/listening.ts'
import { type Config, listenersOf, type NamedListener } from '../../src/server/settings/config.ts'
import { type Check, type Finding, fails, off, ok, type Patient, reasonOf } from './finding.ts'
import { ask, membersOf } from './http.ts'
import { publicKeysOf } from './log.ts'
import { checkServedIndex } from './log-index.ts'

export const checkRunning: Check = async patient => {
  const { config } = patient
  const readiness = await readinessOf(config)
  if (readiness !== undefined) {
    if (config.http.tls === undefined && (await vkeyAt(localUrl(config))) !== publicKeysOf(patient)?.vkey) {
      return [
        fails('server', `another server answers at port ${config.admin.port}: stop it, or set other ports`),
      ]
    }
    return [judgeReadiness(config, readiness), ...(await checkPublicUrl(patient))]
  }
  return [
    off('server', 'none runs here with these settings'),
    await checkPorts(config),
    off('public url', 'start the server and ask again'),
  ]
}

/** The answer of `/readyz`; undefined where no server of ours answers. */
async function readinessOf({ admin }: Config): Promise<{ status: number; text: string } | undefined> {
  const url = `http://${reachableHost(admin.host)}:${admin.port}`
  try {
    const { text } = await ask({ skews: [] }, `${url}/healthz`)
    return text === 'alive\n' ? await ask({ skews: [] }, `${url}/readyz`) : undefined
  } catch {
    return undefined
  }
}

function judgeReadiness({ admin }: Config, { status, text }: { status: number; text: string }): Finding {
  if (status === 200) return ok('server', `runs, and is ready (port ${admin.port})`)
  return fails('server', `runs, but is not ready: ${text.trim().slice(0, 100)}: look into its log`)
}

async function checkPorts(config: Config): Promise<Finding> {
  const listeners: NamedListener[] = Object.values(listenersOf(config))
  for (const { host, port, settings } of listeners) {
    const fault = await tryPort(host, port)
    if (fault !== undefined) {
      return fails('ports', `${settings.join(', ')}: ${host}:${port} ${fault.reason}`)
    }
  }
  return ok('ports', `${listeners.map(({ port }) => port).join(', ')} can be listened on`)
}

async function checkPublicUrl(patient: Patient): Promise<readonly Finding[]> {
  const { publicUrl = localUrl(patient.config) } = patient.config
  const vkey = await vkeyAt(publicUrl)
  if (typeof vkey !== 'string') return [fails('public url', `${publicUrl} ${vkey.fault}`)]
  if (vkey !== publicKeysOf(patient)?.vkey) {
    return [fails('public url', `${publicUrl} leads to the log ${vkey}, which is not this one`)]
  }
  const index = publicKeysOf(patient)?.index ?? []
  return [
    ok('public url', `${publicUrl} leads to this log`),
    await checkWebSocket(publicUrl),
    ...(index.length === 0 ? [] : [await checkServedIndex(publicUrl, index)]),
  ]
}

/** Which log the server at an address says that it keeps. */
async function vkeyAt(url: string): Promise<string | { readonly fault: string }> {
  try {
    const { status, text } = await ask({ skews: [] }, `${url}/app/api/meta`)
    const { vkey } = membersOf(JSON.stringify(membersOf(text).log ?? {}))
    if (status === 200 && typeof vkey === 'string') return vkey
    return { fault: `answers ${status} to GET /app/api/meta, and not as this server: where does it lead?` }
  } catch (error) {
    const reason = reasonOf(error)
    return { fault: `can't be reached from here (${reason}): look at DNS, firewall, proxy and certificate` }
  }
}

/** A proxy passes on a WebSocket only when configured to. */
async function checkWebSocket(publicUrl: string): Promise<Finding> {
  const status = await upgradeStatus(`${publicUrl}/ws`)
  if (status === 101) return ok('web socket', `${publicUrl}/ws lets WebSockets through`)
  return fails(
    'web socket',
    `${publicUrl}/ws answers ${status} to a WebSocket: have the proxy pass on Upgrade and Connection`,
  )
}

function upgradeStatus(url: string): Promise<number | string> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    'sec-websocket-protocol': 'v12.stomp',
  }
  return new Promise(resolve => {
    const sent = request(url, { headers, timeout: TIMEOUT_MS })
    sent.once('upgrade', (_, socket) => {
      socket.destroy()
      resolve(101)
    })
    sent.once('response', response => {
      response.destroy()
      resolve(response.statusCode ?? 0)
    })
    sent.once('timeout', () => sent.destroy(new Error('no answer')))
    sent.once('error', error => resolve(reasonOf(error)))
    sent.end()
  })
}

function localUrl({ http }: Config): string {
  return `${http.tls === undefined ? 'http' : 'https'}://${reachableHost(http.host)}:${http.port}`
}

function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

const TIMEOUT_MS = 10_000
