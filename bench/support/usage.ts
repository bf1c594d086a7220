/** The cost of work to its processes: processor time, bytes written, and waits for the disk. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Duplex, Readable } from 'node:stream'
import type { Cost, Parameters } from './benchmark.ts'
import { cpuSeconds } from './machine.ts'
import { rounded, sum } from './statistics.ts'

/** Figures that the system doesn't say are NaN. */
export interface Usage {
  readonly cpu: number
  /** Handed to files, not to sockets. */
  readonly writtenBytes: number
  /** See `Cost`. */
  readonly diskBytes: number
  readonly fdatasyncs: number
}

/** What `run` came to, and its cost to the process, or to all of them. */
export async function withUsage<Figure>(
  pid: number | readonly number[],
  run: () => Promise<Figure>,
): Promise<Usage & { readonly figure: Figure; readonly seconds: number }> {
  const pids = typeof pid === 'number' ? [pid] : pid
  const syncs = await SyncCounter.start(pids)
  const [before, startMs] = [usageOf(pids), performance.now()]
  const figure = await run()
  const [after, endMs] = [usageOf(pids), performance.now()]
  return {
    figure,
    seconds: (endMs - startMs) / 1000,
    cpu: after.cpu - before.cpu,
    writtenBytes: after.writtenBytes - before.writtenBytes,
    diskBytes: after.diskBytes - before.diskBytes,
    fdatasyncs: (await syncs?.end()) ?? Number.NaN,
  }
}

/** Turns of one side, and the operations in all of them. */
export interface Work {
  readonly turns: readonly Usage[]
  readonly operations: number
}

/** What one operation costs on both sides, beside figures of another kind. */
export function comparedCosts(limit: Work, project: Work) {
  const { costs, ...figures } = costFigures(limit, project)
  return { costs, cpuRatio: figures.limit / figures.project }
}

/** The same where the figures are microseconds of processor time. */
export function costFigures(limit: Work, project: Work) {
  const costs = {
    limit: costOf(limit.turns, limit.operations),
    project: costOf(project.turns, project.operations),
  }
  return { limit: cpuMicroseconds(costs.limit), project: cpuMicroseconds(costs.project), costs }
}

/** Details of peers: processor time of each server for one operation. */
export function peerDetails(figures: readonly (readonly [name: string, work: Work])[]): Parameters {
  return Object.fromEntries(
    figures.map(([name, { turns, operations }]) => [
      `${name}: CpuMicroseconds`,
      cpuMicroseconds(costOf(turns, operations)),
    ]),
  )
}

/** NaN where the system doesn't say. */
function cpuMicroseconds({ cpuMicroseconds: known = Number.NaN }: Cost): number {
  return known
}

/** The cost of one operation, over several turns. */
export function costOf(turns: readonly Usage[], operations: number): Cost {
  const each = (of: (turn: Usage) => number) => sum(turns.map(of)) / operations
  const cost = {
    cpuMicroseconds: each(({ cpu }) => cpu * 1e6),
    writtenBytes: each(({ writtenBytes }) => writtenBytes),
    diskBytes: each(({ diskBytes }) => diskBytes),
    fdatasyncs: each(({ fdatasyncs }) => fdatasyncs),
  }
  const known = Object.entries(cost).filter(([, figure]) => Number.isFinite(figure))
  return Object.fromEntries(known.map(([name, figure]) => [name, rounded(figure)]))
}

function usageOf(pids: readonly number[]): Omit<Usage, 'fdatasyncs'> {
  const files = pids.map(readIo)
  return {
    cpu: sum(pids.map(cpuSeconds)),
    writtenBytes: sum(files.map(text => ioFigure(text, 'wchar'))),
    diskBytes: sum(files.map(text => ioFigure(text, 'write_bytes'))),
  }
}

function readIo(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/io`, 'latin1')
  } catch {
    return ''
  }
}

function ioFigure(text: string, name: string): number {
  return Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(text)?.[1])
}

/** Counts the fdatasyncs and fsyncs of processes by `perf stat`, where that is installed and allowed: it leaves them as fast as they are. */
class SyncCounter {
  static #isPossible: boolean | undefined
  readonly #perf: ChildProcess

  private constructor(perf: ChildProcess) {
    this.#perf = perf
  }

  static async start(pids: readonly number[]): Promise<SyncCounter | undefined> {
    SyncCounter.#isPossible ??= spawnSync('perf', ['stat', '-e', EVENTS, 'true']).status === 0
    if (!SyncCounter.#isPossible) return undefined
    const control = ['-D', '-1', '--control', 'fd:3,4', '-p', pids.join(',')]
    const perf = spawn('perf', ['stat', '-x', ',', '-e', EVENTS, ...control], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    })
    const [, , , asked, answered] = perf.stdio as unknown as Duplex[]
    // It ends with the process that it watches; the caller learns of that process's end elsewhere.
    for (const pipe of [asked!, answered!]) pipe.on('error', () => undefined)
    asked!.write('enable\n')
    await once(answered!, 'data')
    return new SyncCounter(perf)
  }

  async end(): Promise<number> {
    let text = ''
    const stderr = this.#perf.stderr as Readable
    stderr.setEncoding('latin1').on('data', chunk => {
      text += chunk
    })
    const closed = once(this.#perf, 'close')
    this.#perf.kill('SIGINT')
    await closed
    return sum(Array.from(text.matchAll(/^(\d+),/gm), ([, count]) => Number(count)))
  }
}

/** Ours are all of the first kind, peers' of the second. */
const EVENTS = 'syscalls:sys_enter_fdatasync,syscalls:sys_enter_fsync'
