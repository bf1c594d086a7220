/** Where and on what a figure was taken, and what a process cost while it was. */

import { execFileSync } from 'node:child_process'
import { readFileSync, statfsSync } from 'node:fs'
import { cpus } from 'node:os'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly node: string
  /** `git describe` of the working directory, `-dirty` with uncommitted changes. */
  readonly commit: string
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    node: process.version,
    commit: describeCommit(),
  }
}

/** Processor seconds that a process and its threads have used so far; NaN where the system does not say. */
export function cpuSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces; user and system time are the 12th and 13th field behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  } catch {
    return Number.NaN
  }
}

/** Its child processes now. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Processor milliseconds of a process's main thread so far; NaN where the system does not say. */
export function mainThreadMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6
  } catch {
    return Number.NaN
  }
}

/** Memory of a process that is in use, bytes; NaN where the system does not say. */
export interface ResidentMemory {
  /** All of it, with the pages of files that are mapped. */
  readonly all: number
  /** Its own memory: pages that no file backs. */
  readonly own: number
}

export function residentMemory(pid: number): ResidentMemory {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const bytesOf = (name: string) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
    return { all: bytesOf('VmRSS'), own: bytesOf('RssAnon') }
  } catch {
    return { all: Number.NaN, own: Number.NaN }
  }
}

/** True when the folder is in memory, where a durable write costs nothing. */
export function isInMemory(folder: string): boolean {
  return statfsSync(folder).type === TMPFS_MAGIC
}

function describeCommit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], {
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim()
  } catch {
    return 'unknown'
  }
}

/** The unit of process times in Linux, on every common build. */
const TICKS_PER_SECOND = 100
const TMPFS_MAGIC = 0x01021994
