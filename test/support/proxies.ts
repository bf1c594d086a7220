/** Reverse proxies of the system, run with the files of `deploy` and with ports and folders of a test. */

import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { until } from './nodes.ts'
import { skipWithout, spawnBound } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

const NGINX = ['/usr/sbin/nginx', '/usr/local/sbin/nginx'].find(existsSync) ?? '/usr/sbin/nginx'
const CADDY = '/usr/bin/caddy'

export const skipWithoutNginx = skipWithout([NGINX], 'nginx-light')
export const skipWithoutCaddy = skipWithout([CADDY], 'caddy')

/** Ports of the proxy on 127.0.0.1, and the address of the server behind it, such as `127.0.0.1:8080`. */
export interface ProxyPlace {
  readonly port: number
  readonly tlsPort?: number
  readonly server: string
}

export function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'callsign-proxy-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** deploy/nginx.conf with the test's ports, folders and certificate. */
export function nginxConf(folder: string, { port, tlsPort, server }: ProxyPlace): string {
  const plain = `listen 127.0.0.1:${port};`
  const listen = tlsPort === undefined ? plain : `${plain}\n  listen 127.0.0.1:${tlsPort} ssl http2;`
  return replaceAll(read('nginx.conf'), [
    ['/var/cache/nginx/callsign', join(folder, 'cache')],
    ['listen 443 ssl http2;', listen],
    ['/etc/letsencrypt/live/call.example.org/fullchain.pem', TLS.certificate],
    ['/etc/letsencrypt/live/call.example.org/privkey.pem', TLS.key],
    ['127.0.0.1:8080', server],
  ])
}

/** An nginx of its own, with this in its `http` part. Resolves when it listens on the port. */
export async function startNginx(t: Test, folder: string, http: string, port: number): Promise<void> {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${join(folder, name)};\n`,
  )
  const file = join(folder, 'nginx.conf')
  // One process, which leaves no workers behind when it is killed.
  const main = `daemon off;\nmaster_process off;\npid ${join(folder, 'pid')};\nerror_log ${join(folder, 'error.log')};\n`
  writeFileSync(file, `${main}events {}\nhttp {\naccess_log off;\n${paths.join('')}${http}\n}\n`)
  await startProxy(t, [NGINX, '-e', join(folder, 'error.log'), '-c', file], port)
}

/** deploy/Caddyfile, likewise. */
export async function startCaddy(
  t: Test,
  folder: string,
  { port, tlsPort, server }: Required<ProxyPlace>,
): Promise<void> {
  const file = join(folder, 'Caddyfile')
  const site = replaceAll(read('Caddyfile'), [['127.0.0.1:8080', server]])
  const at = (address: string, line = '') =>
    replaceAll(site, [['call.example.org {', `${address} {\n\tbind 127.0.0.1\n\t${line}`]])
  const tls = `tls ${TLS.certificate} ${TLS.key}`
  const own = `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n`
  writeFileSync(file, `${own}${at(`http://127.0.0.1:${port}`)}\n${at(`https://localhost:${tlsPort}`, tls)}`)
  await startProxy(t, [CADDY, 'run', '--config', file, '--adapter', 'caddyfile'], port)
}

async function startProxy(t: Test, [program, ...args]: readonly string[], port: number): Promise<void> {
  const child = spawnBound(program!, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { HOME: tmpdir() } })
  let text = ''
  child.stderr!.setEncoding('utf8').on('data', more => {
    text += more
  })
  let hasEnded = false
  const ended = once(child, 'close').then(() => {
    hasEnded = true
  })
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await until(async () => hasEnded || (await fetch(`http://127.0.0.1:${port}/`)).status > 0)
  if (hasEnded) throw new Error(`${program} has ended: ${text}`)
}

function read(name: string): string {
  return readFileSync(join(PROJECT_ROOT, 'deploy', name), 'utf8')
}

/** Each of the texts has to be there. */
function replaceAll(text: string, pairs: readonly (readonly [from: string, to: string])[]): string {
  return pairs.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`${from} is not there`)
    return before.replaceAll(from, to)
  }, text)
}

const TLS = {
  certificate: join(PROJECT_ROOT, 'test/support/tls/server.crt'),
  key: join(PROJECT_ROOT, 'test/support/tls/server.key'),
}
