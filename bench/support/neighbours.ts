/**
 * What other programs take of the machine while a round is measured. Limit and project are not slowed down alike by
 * neighbours (one keeps more threads busy than the other), so the runner repeats rounds that were disturbed and the
 * report leaves them out.
 */

import { readdirSync, readFileSync } from 'node:fs'

/** Processor time that is not ours, from `start` on. Reads Linux's `/proc`; elsewhere it sees no neighbours. */
export class Neighbours {
  #startedAt = 0
  #othersAtStart = 0

  start(): void {
    this.#startedAt = performance.now()
    this.#othersAtStart = othersSeconds()
  }

  /** How many cores other programs kept busy on average since the start. */
  coresBusy(): number {
    const seconds = (performance.now() - this.#startedAt) / 1000
    const cores = (othersSeconds() - this.#othersAtStart) / seconds
    return Number.isFinite(cores) ? Math.max(0, cores) : 0
  }
}

/** Processor seconds of everything but this process and its descendants, dead ones included. */
function othersSeconds(): number {
  try {
    return (busyTicks() - ownTicks()) / TICKS_PER_SECOND
  } catch {
    return Number.NaN
  }
}

/** User, nice, system and stolen time of all cores; interrupts are mostly those of our own traffic. */
function busyTicks(): number {
  const line = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!
  const [, user, nice, system, , , , , steal] = line.split(/\s+/).map(Number)
  return user! + nice! + system! + steal!
}

function ownTicks(): number {
  const processes = new Map<number, { parent: number; ticks: number }>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(name) : undefined
    if (stat !== undefined) processes.set(Number(name), stat)
  }
  let ticks = 0
  for (const [pid, process] of processes) if (isOurs(pid, processes)) ticks += process.ticks
  return ticks
}

function isOurs(pid: number, processes: ReadonlyMap<number, { parent: number }>): boolean {
  for (let at: number | undefined = pid; at !== undefined; at = processes.get(at)?.parent) {
    if (at === process.pid) return true
  }
  return false
}

/** The parent, and the time used by the process, its threads and its children that have ended. */
function readStat(pid: string): { parent: number; ticks: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    return { parent: fields[1]!, ticks: fields[11]! + fields[12]! + fields[13]! + fields[14]! }
  } catch {
    return undefined
  }
}

const TICKS_PER_SECOND = 100
