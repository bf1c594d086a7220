/**
 * Tessera as a peer: its log on files behind grpc-go, with the project's messages, VRF hash and entry
 * (`bench/peers/tessera`), once answering when an entry is integrated and once when a checkpoint covers it. Without Go, or
 * where its modules are not to be had, it is not measured, and the reason is said once on standard error.
 */

import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generateVrfSecret } from '../../src/log/vrf.ts'
import type { BenchmarkContext } from './benchmark.ts'
import { freePort, startPeer } from './peer.ts'

export interface Tessera {
  /** With its version and when it answers. */
  readonly name: string
  readonly pid: number
  /** Its gRPC address. */
  readonly address: string
}

/** Starts it twice for the time of the benchmark; none when peers are not wanted or it cannot be built. */
export async function openTessera(context: BenchmarkContext): Promise<readonly Tessera[]> {
  const path = context.hasPeers ? await build(context.storesFolder) : undefined
  if (path === undefined) return []
  return [
    await start(context, path, 'integrated', []),
    await start(context, path, 'in a checkpoint', ['-published']),
  ]
}

async function start(
  context: BenchmarkContext,
  path: string,
  when: string,
  flags: readonly string[],
): Promise<Tessera> {
  const folder = mkdtempSync(join(context.folder, 'tessera-'))
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const vrfKey = Buffer.from(generateVrfSecret(Buffer.alloc(64, 7))).toString('base64')
  const server = await startPeer({
    path,
    commandArguments: ['-listen', address, '-folder', join(folder, 'log'), '-vrf-key', vrfKey, ...flags],
    environment: {},
    logPath: join(folder, 'server.log'),
    port,
  })
  context.after(() => server.end())
  return { name: `Tessera 1.0.4, ${when}`, pid: server.pid, address }
}

/** The program's path; undefined when it cannot be built. */
async function build(storesFolder: string): Promise<string | undefined> {
  const program = join(storesFolder, 'go', 'tessera')
  process.stderr.write('Tessera is being built, which takes minutes the first time\n')
  try {
    await promisify(execFile)('go', ['build', '-o', program, '.'], { cwd: SOURCE })
    return program
  } catch (error) {
    process.stderr.write(`Tessera is not measured: ${reasonOf(error)}\n`)
    return undefined
  }
}

function reasonOf(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { readonly stderr?: string }
  if (code === 'ENOENT') return 'Go is not installed'
  return stderr?.trim().split('\n').at(-1) ?? message
}

const SOURCE = fileURLToPath(new URL('../../../bench/peers/tessera', import.meta.url))
