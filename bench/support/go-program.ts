/**
 * Peers written in Go, built from their modules at a fixed version and kept beside the prefilled logs. Without Go, or where a
 * module is not to be had, the peer is not measured, and the reason is said once on standard error.
 */

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { BenchmarkContext } from './benchmark.ts'
import { type PeerProcess, startPeer } from './peer.ts'

export interface GoModule {
  /** Of the peer. */
  readonly name: string
  readonly path: string
  readonly version: string
  /** Of the program. */
  readonly file: string
}

/** The program's path; undefined when peers are not wanted or it cannot be built. */
export async function installGoProgram(
  { hasPeers, storesFolder }: BenchmarkContext,
  { name, path, version, file }: GoModule,
): Promise<string | undefined> {
  if (!hasPeers) return undefined
  const folder = join(storesFolder, 'go', `${file}-${version}`)
  const program = join(folder, file)
  if (existsSync(program)) return program
  const isBuilt = await runGo(name, ['install', `${path}@${version}`], { GOBIN: folder })
  return isBuilt ? program : undefined
}

export interface GoSource {
  /** Of the peer. */
  readonly name: string
  readonly folder: string
  /** Of the program. */
  readonly file: string
}

/** The path of a program whose source is ours, built anew; undefined as above. */
export async function buildGoProgram(
  { hasPeers, storesFolder }: BenchmarkContext,
  { name, folder, file }: GoSource,
): Promise<string | undefined> {
  if (!hasPeers) return undefined
  const program = join(storesFolder, 'go', file)
  const isBuilt = await runGo(name, ['build', '-o', program, '.'], {}, folder)
  return isBuilt ? program : undefined
}

/** Starts it with a configuration file for the time of the benchmark. It is ready when it listens on the port. */
export async function startWithConfig(
  context: BenchmarkContext,
  path: string,
  config: { readonly name: string; readonly text: string },
  port: number,
): Promise<PeerProcess> {
  const folder = mkdtempSync(join(context.folder, 'peer-'))
  const configPath = join(folder, config.name)
  writeFileSync(configPath, config.text)
  const server = await startPeer({
    path,
    commandArguments: ['--config', configPath],
    environment: {},
    logPath: join(folder, 'server.log'),
    port,
  })
  context.after(() => server.end())
  return server
}

/** Has a program that serves Go's profiles on a port of this machine collect its garbage. */
export async function collectGoGarbage(profilePort: number): Promise<void> {
  const profile = await fetch(`http://127.0.0.1:${profilePort}/debug/pprof/heap?gc=1`)
  if (!profile.ok) throw new Error(`no profile: ${profile.status}`)
  await profile.arrayBuffer()
}

/** Whether `go` did it; else says why the peer is not measured. */
async function runGo(
  name: string,
  goArguments: readonly string[],
  environment: Readonly<Record<string, string>>,
  folder?: string,
): Promise<boolean> {
  if (failed.has(name)) return false
  try {
    process.stderr.write(`${name} is being built, which takes minutes the first time\n`)
    await promisify(execFile)('go', goArguments, { env: { ...process.env, ...environment }, cwd: folder })
    return true
  } catch (error) {
    failed.add(name)
    process.stderr.write(`${name} is not measured: ${reasonOf(error)}\n`)
    return false
  }
}

function reasonOf(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { readonly stderr?: string }
  if (code === 'ENOENT') return 'Go is not installed'
  return stderr?.trim().split('\n').at(-1) ?? message
}

const failed = new Set<string>()
