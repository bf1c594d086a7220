/**
 * What a run's processor time goes to, by looking at all processes several times a second. Sums: starts of this project's
 * programs (the first second of each), browsers, PostgreSQL, the test library (what an empty test costs, for each test process), and the
 * rest. Linux only.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './processes.mjs'
import { secondsOfTicks, secondsSoFar, statOf } from './processor-time.mjs'

const LOOK_EVERY_MS = 100
const START_S = 1
const EMPTY_TESTS = 3

export class Profile {
  /** By pid and start time: cause, seconds so far, and of a program's start the seconds of its first second. */
  #seen = new Map()
  #startedS = uptimeS()
  #timer = setInterval(() => this.#look(), LOOK_EVERY_MS)

  /** The lines of the table. */
  end() {
    clearInterval(this.#timer)
    const totalS = secondsSoFar()
    const seen = [...this.#seen.values()]
    const sum = (cause, value) =>
      seen.filter(each => each.cause === cause).reduce((all, each) => all + value(each), 0)
    const causes = {
      'process starts': sum('program', ({ startS }) => startS),
      browser: sum('browser', ({ cpuS }) => cpuS),
      PostgreSQL: sum('PostgreSQL', ({ cpuS }) => cpuS),
      'test library': sum('test', () => 1) * emptyTestS(),
    }
    const known = Object.values(causes).reduce((a, b) => a + b, 0)
    const count = cause => seen.filter(each => each.cause === cause).length
    return [
      `Of ${totalS.toFixed(0)} s of processor time, by ${count('program')} starts and ${count('test')} test processes:`,
      ...Object.entries({ ...causes, 'the rest': totalS - known }).map(
        ([cause, seconds]) => `${seconds.toFixed(0).padStart(8)} s  ${cause}`,
      ),
    ]
  }

  #look() {
    const nowS = uptimeS()
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      const stat = statOf(pid)
      if (stat === undefined) continue
      const bornS = secondsOfTicks(stat[19])
      if (bornS < this.#startedS) continue
      const id = `${pid} ${stat[19]}`
      const cpuS = secondsOfTicks(Number(stat[11]) + Number(stat[12]))
      const known = this.#seen.get(id)
      const startS = nowS - bornS <= START_S ? cpuS : (known?.startS ?? cpuS)
      // A process is what it was before it became another program for a moment only.
      this.#seen.set(id, { cause: causeOf(pid) ?? known?.cause, cpuS, startS })
    }
  }
}

function uptimeS() {
  return Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0])
}

function causeOf(pid) {
  let command
  try {
    command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
  } catch {
    return undefined
  }
  const [program = '', ...args] = command
  if (/chrom/.test(program)) return 'browser'
  if (/postgres|initdb/.test(program)) return 'PostgreSQL'
  if (!program.endsWith('node')) return undefined
  if (args.some(arg => /\.test\.(?:js|ts|mjs)$/.test(arg))) return 'test'
  return args.some(arg => arg.startsWith(ROOT) && /\/(?:src|scripts|support)\//.test(arg))
    ? 'program'
    : undefined
}

/** The seconds of processor time that an empty test takes, at the median. */
function emptyTestS() {
  const folder = mkdtempSync(join(ROOT, '.tap', 'empty-'))
  const file = join(folder, 'empty.test.mjs')
  writeFileSync(file, "import t from 'tap'\nt.pass()\n")
  const seconds = Array.from({ length: EMPTY_TESTS }, () => {
    const before = secondsSoFar()
    execFileSync(process.execPath, [file])
    return secondsSoFar() - before
  })
  rmSync(folder, { recursive: true })
  return seconds.toSorted((a, b) => a - b)[Math.floor(EMPTY_TESTS / 2)]
}
