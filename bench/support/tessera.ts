/**
 * Tessera as a peer: its log on files behind grpc-go, with the project's messages, VRF hash and entry
 * (`bench/peers/tessera`), once answering when an entry is integrated and once when a checkpoint covers it.
 */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generateVrfSecret } from '../../src/log/vrf.ts'
import type { BenchmarkContext } from './benchmark.ts'
import { buildGoProgram } from './go-program.ts'
import { freePort, startPeer } from './peer.ts'

export interface Tessera {
  /** With its version and when it answers. */
  readonly name: string
  readonly pid: number
  /** Of gRPC. */
  readonly address: string
}

/** Starts it twice for the time of the benchmark; none when peers are not wanted or it cannot be built. */
export async function openTessera(context: BenchmarkContext): Promise<readonly Tessera[]> {
  const path = await buildGoProgram(context, SOURCE)
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

const SOURCE = {
  name: 'Tessera',
  folder: fileURLToPath(new URL('../../../bench/peers/tessera', import.meta.url)),
  file: 'tessera',
}
