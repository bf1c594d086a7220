/**
 * nginx as a peer: files of a folder over HTTP, with the headers that the project sends and no log of requests. Open
 * files are kept, as its manual advises for many small ones.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { BenchmarkContext } from './benchmark.ts'
import type { RecordedAnswer } from './http-answer.ts'
import { findPeer, freePort, startPeer } from './peer.ts'

export interface Nginx {
  /** With its version and how many workers it has. */
  readonly name: string
  /** Process ids of the workers. */
  readonly pids: readonly number[]
  /** Without a path. */
  readonly url: string
}

/**
 * Starts it for the time of the benchmark, once with one worker and once with one for each core; none when peers are
 * not wanted or it is not installed. All answers must have the same headers.
 */
export async function openNginx(
  context: BenchmarkContext,
  name: string,
  answers: ReadonlyMap<string, RecordedAnswer>,
): Promise<readonly Nginx[]> {
  const path = context.hasPeers ? findPeer(PACKAGE) : undefined
  if (path === undefined) return []
  const folder = join(context.folder, `nginx-${name}`)
  const filesFolder = join(folder, 'files')
  for (const [name, { body }] of answers) {
    mkdirSync(dirname(join(filesFolder, name)), { recursive: true })
    writeFileSync(join(filesFolder, name), body)
  }
  const [answer] = answers.values()
  const site = { filesFolder, headers: answer?.headers ?? [] }
  const peers: Nginx[] = []
  for (const workers of ['1', 'auto'] as const) {
    peers.push(await start(context, path, { ...site, workers, folder: join(folder, `workers-${workers}`) }))
  }
  return peers
}

async function start(context: BenchmarkContext, path: string, site: Omit<Settings, 'port'>): Promise<Nginx> {
  const { folder, workers } = site
  const port = await freePort()
  mkdirSync(folder, { recursive: true })
  const configPath = join(folder, 'nginx.conf')
  writeFileSync(configPath, configOf({ ...site, port }))
  const logPath = join(folder, 'start.log')
  const commandArguments = ['-p', folder, '-c', configPath, '-e', join(folder, 'error.log')]
  const server = await startPeer({ path, commandArguments, environment: {}, logPath, port })
  context.after(() => server.end())
  return {
    name: `${versionOf(path)}, ${workers === '1' ? 'one worker' : 'a worker for each core'}`,
    pids: childrenOf(server.pid),
    url: `http://127.0.0.1:${port}`,
  }
}

interface Settings {
  readonly folder: string
  readonly filesFolder: string
  readonly headers: RecordedAnswer['headers']
  readonly workers: '1' | 'auto'
  readonly port: number
}

function configOf({ folder, filesFolder, headers, workers, port }: Settings): string {
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? 'application/octet-stream'
  const others = headers.filter(([name]) => name !== 'content-type' && name !== 'etag')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes ${workers};
    worker_rlimit_nofile 16384;
    pid ${join(folder, 'nginx.pid')};
    events { worker_connections 1024; }
    http {
      access_log off;
      server_tokens off;
      sendfile on;
      tcp_nopush on;
      keepalive_requests 1000000000;
      open_file_cache max=20000 inactive=10m;
      open_file_cache_valid 10m;
      ${temporary.map(name => `${name}_temp_path ${join(folder, name)};`).join('\n      ')}
      default_type "${type}";
      etag ${headers.some(([name]) => name === 'etag') ? 'on' : 'off'};
      server {
        listen 127.0.0.1:${port};
        root ${filesFolder};
        add_header Last-Modified "";
        ${others.map(([name, value]) => `add_header ${name} ${JSON.stringify(value)};`).join('\n        ')}
      }
    }
  `
}

function versionOf(path: string): string {
  // It tells its version on standard error.
  const text = execFileSync('sh', ['-c', '"$0" -v 2>&1', path], { encoding: 'latin1' })
  return `nginx ${/nginx\/([\d.]+)/.exec(text)?.[1] ?? ''}`.trim()
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
  return text.trim().split(' ').map(Number)
}

const PACKAGE = { name: 'nginx', paths: ['/usr/sbin/nginx', '/usr/bin/nginx'], aptPackage: 'nginx' }
