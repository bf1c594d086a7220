/**
 * What programs cost in processor time, with all that they start. Linux counts it in control groups, where one may be made;
 * elsewhere what nobody waited for, such as processes of a browser, is left out.
 */

import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Of `/proc`; Linux has fixed it. */
const TICKS_PER_S = 100
const NAME = 'callsign-test-'
const OWN_GROUP = ownGroup()
let groups = 0

/** The seconds of a program that is started by `command`, and of all below it. */
export class ProcessorTime {
  #group = OWN_GROUP && join(OWN_GROUP, String(++groups))

  constructor() {
    if (this.#group !== undefined) mkdirSync(this.#group)
  }

  /** The command and arguments that run the program. The shell that starts it writes to its third output. */
  command(program, args) {
    const script =
      this.#group === undefined
        ? '"$@" 3>&-; code=$?; times >&3; exit $code'
        : `echo $$ >${this.#group}/cgroup.procs; exec "$@" 3>&-`
    return ['/bin/sh', ['-c', script, 'sh', program, ...args]]
  }

  /** `times`: what came from the third output. Ends what the program has left behind. */
  end(times) {
    if (this.#group === undefined) return secondsOf(times)
    const seconds = usageOf(this.#group)
    for (const pid of readFileSync(join(this.#group, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean))
      killProcess(Number(pid))
    removeEmpty(this.#group)
    return seconds
  }
}

/** Seconds of this process and of all below it; undefined where the system does not say. */
export function secondsSoFar() {
  if (OWN_GROUP !== undefined) return usageOf(OWN_GROUP)
  return statOf('self')
    ?.slice(11, 15)
    .reduce((sum, ticks) => sum + secondsOfTicks(ticks), 0)
}

/** The fields of `/proc/PID/stat` behind the command's name, or undefined. */
export function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

export function secondsOfTicks(ticks) {
  return Number(ticks) / TICKS_PER_S
}

export function killProcess(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

/** A control group of version 2 for this process and what it starts, or undefined where none can be made. */
function ownGroup() {
  try {
    const [, mount] = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'latin1'))
    const [, path] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'latin1'))
    const above = join(mount, path)
    // A process can't remove the group that it is in: those of runs that have ended go now.
    const isLeft = name => name.startsWith(NAME) && statOf(name.slice(NAME.length)) === undefined
    for (const name of readdirSync(above).filter(isLeft)) removeEmpty(join(above, name))
    const folder = join(above, `${NAME}${process.pid}`)
    mkdirSync(folder)
    writeFileSync(join(folder, 'cgroup.procs'), String(process.pid))
    usageOf(folder)
    return folder
  } catch {
    return undefined
  }
}

/** Leaves a group in which a process has not ended yet. */
function removeEmpty(group) {
  try {
    for (const entry of readdirSync(group, { withFileTypes: true }))
      if (entry.isDirectory()) removeEmpty(join(group, entry.name))
    rmdirSync(group)
  } catch {}
}

function usageOf(group) {
  const [, microseconds] = /^usage_usec (\d+)/m.exec(readFileSync(join(group, 'cpu.stat'), 'latin1'))
  return Number(microseconds) / 1e6
}

/** Sums up what `times` prints, such as `0m0.01s 0m0.00s` for the shell and, on the next line, for its children. */
function secondsOf(times) {
  return Array.from(times.matchAll(/(\d+)m([\d.]+)s/g)).reduce((sum, [, m, s]) => sum + m * 60 + Number(s), 0)
}
