/** Reads the CPU profiles that a process left behind and says where its time went, by module. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ProfileRow {
  readonly where: string
  /** Share of the busy time of the thread, 0 to 1. */
  readonly share: number
  /** The functions that most of it is in, each with its share. */
  readonly functions: readonly string[]
}

export interface ThreadProfile {
  readonly thread: string
  /** Seconds the thread was not idle. */
  readonly busySeconds: number
  readonly rows: readonly ProfileRow[]
}

/** A stretch of time by the machine's monotonic clock. */
export interface ProfiledWindow {
  readonly startUs: number
  readonly endUs: number
}

/** The profiles in a folder, the busiest thread first; of all the time, or of the time within `windows`. */
export function readProfiles(folder: string, windows?: readonly ProfiledWindow[]): readonly ThreadProfile[] {
  const files = readdirSync(folder).filter(name => name.endsWith('.cpuprofile'))
  return files
    .map(name => summarise(JSON.parse(readFileSync(join(folder, name), 'utf8')) as CpuProfile, windows))
    .sort((a, b) => b.busySeconds - a.busySeconds)
}

/** A Markdown table of a thread's first rows. */
export function formatProfile({ thread, busySeconds, rows }: ThreadProfile, rowsMax: number): string {
  const lines = rows
    .slice(0, rowsMax)
    .map(({ where, share, functions }) => `| ${where} | ${percent(share)} | ${functions.join(', ')} |`)
  const head = `| ${thread}, busy ${busySeconds.toFixed(1)} s | self time | most of it in |`
  return [head, '|---|---|---|', ...lines, ''].join('\n')
}

/**
 * A Markdown table of what each part of the work takes of an operation, over all threads. A part is known by its
 * modules; the rest is the last row.
 */
export function formatShares(
  threads: readonly ThreadProfile[],
  parts: readonly (readonly [part: string, modules: RegExp])[],
  operations: number,
): string {
  const seconds = new Map<string, number>()
  for (const { rows, busySeconds } of threads) {
    for (const { where, share } of rows) {
      const part = parts.find(([, modules]) => modules.test(where))?.[0] ?? 'other'
      seconds.set(part, (seconds.get(part) ?? 0) + share * busySeconds)
    }
  }
  const whole = sum([...seconds.values()])
  const lines = [...seconds]
    .sort(([, a], [, b]) => b - a)
    .map(([part, of]) => `| ${part} | ${((of * 1e6) / operations).toFixed(0)} us | ${percent(of / whole)} |`)
  const head = `| of ${((whole * 1e6) / operations).toFixed(0)} us an operation, all threads | | |`
  return [head, '|---|---|---|', ...lines, ''].join('\n')
}

interface CpuProfile {
  /** Microseconds by the machine's monotonic clock. */
  readonly startTime: number
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
  }[]
  readonly samples: readonly number[]
  /** Microseconds between samples. */
  readonly timeDeltas: readonly number[]
}

function summarise(profile: CpuProfile, windows?: readonly ProfiledWindow[]): ThreadProfile {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]))
  const modules = new Map<string, Map<string, number>>()
  let sampledAtUs = profile.startTime
  for (const [at, node] of profile.samples.entries()) {
    sampledAtUs += profile.timeDeltas[at]!
    if (windows?.some(({ startUs, endUs }) => sampledAtUs >= startUs && sampledAtUs <= endUs) === false)
      continue
    const frame = frames.get(node) ?? UNKNOWN_FRAME
    const where = whereOf(frame)
    const functions = modules.get(where) ?? new Map<string, number>()
    modules.set(where, functions)
    functions.set(frame.functionName, (functions.get(frame.functionName) ?? 0) + profile.timeDeltas[at]!)
  }
  modules.delete(IDLE)
  const busy = sum([...modules.values()].map(timesOf))
  const rows = [...modules].map(([where, functions]) => ({
    where,
    share: timesOf(functions) / busy,
    functions: [...functions]
      .sort(([, a], [, b]) => b - a)
      .slice(0, FUNCTIONS_MAX)
      .map(([name, time]) => `${name || 'anonymous'} ${percent(time / busy)}`),
  }))
  rows.sort((a, b) => b.share - a.share)
  const isMain = profile.nodes.some(({ callFrame }) => MAIN_MODULES.test(callFrame.url))
  return { thread: isMain ? 'main thread' : 'worker thread', busySeconds: busy / 1e6, rows }
}

function timesOf(functions: ReadonlyMap<string, number>): number {
  return sum([...functions.values()])
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

/** The module that a frame belongs to: a file of ours, a package, Node, or what V8 says of itself. */
function whereOf({ functionName, url }: { functionName: string; url: string }): string {
  const packageName = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (packageName !== undefined) return packageName
  const ours = /\/((?:src|actors|bench)\/.*)\.js$/.exec(url)?.[1]
  if (ours !== undefined) return `${ours}.ts`
  if (url.startsWith('node:internal/modules') || url.startsWith('node:internal/source_map'))
    return 'Node: loading modules'
  if (url.startsWith('node:')) return `Node: ${url.slice('node:'.length).replace(/^internal\//, '')}`
  if (url.startsWith('wasm')) return 'WebAssembly (libsodium)'
  if (functionName === '(garbage collector)') return 'garbage collector'
  // Native code that V8 has no frame for: system calls, uWebSockets.js, LMDB.
  if (functionName === '(program)') return 'native code, system calls'
  return functionName.startsWith('(') ? functionName : `native: ${functionName}`
}

const IDLE = '(idle)'
const UNKNOWN_FRAME = { functionName: '', url: '' }
const MAIN_MODULES = /src\/main\.js|append-program\.js/
const FUNCTIONS_MAX = 4
