/** The simulator's output: for people to read, or its state as lines of JSON. */

import { BEHAVIOURS } from './behaviour.ts'
import type { Crowd } from './crowd.ts'
import type { Latency } from './figures.ts'
import type { Person } from './person.ts'
import type { Simulation } from './simulation.ts'

export type Write = (text: string) => void

/** The people present, and the possible next steps. */
export function formatPeople(people: readonly Person[]): string {
  const rows = people.map(
    ({ name, behaviour, shareLink }, at) =>
      `  ${String(at + 1).padStart(2)}  ${name.padEnd(NAME_CHARS)} ${BEHAVIOURS[behaviour].does}\n      ${shareLink}\n`,
  )
  return `\n${rows.join('')}\n${NEXT}\n`
}

/** One person's deed. */
export function formatDeed(name: string, deed: string): string {
  return `${new Date().toTimeString().slice(0, 8)}  ${name.padEnd(NAME_CHARS)} ${deed}\n`
}

/** A line about the last second of a load. */
export function formatSecond(seconds: number, crowd: Crowd): string {
  const { figures, connects, online, users, callsUnderWay } = crowd
  return `${[
    `${seconds} s`.padStart(6),
    `calls ${figures.started} started, ${figures.answered} answered, ${figures.ended} ended, ${figures.failed} failed, ${callsUnderWay} under way`,
    `ring ${formatLatency(figures.takeLatency())}`,
    `online ${online} of ${users}, ${connects} connects`,
    `${Math.round(process.memoryUsage.rss() / 1e6)} MB`,
  ].join('   ')}\n`
}

/** A load's results. */
export function formatSummary(crowd: Crowd): string {
  const { figures, connects, users } = crowd
  const failures = [...figures.failures].map(([reason, count]) => `  ${reason}: ${count}\n`)
  return `
${figures.started} calls of ${users} users: ${figures.answered} answered, ${figures.ended} ended as they should, ${figures.failed} failed
ring ${formatLatency(figures.latency)}, from the request to the device; ${connects} connects, ${figures.heldBack} calls held back while nobody was free
${failures.join('')}`
}

/** Prints the state at once when it is another, and else once a second, until it is stopped. */
export class StateLines {
  readonly #simulation: Simulation
  readonly #write: Write
  readonly #timer: NodeJS.Timeout
  #isDue = false

  constructor(simulation: Simulation, write: Write) {
    this.#simulation = simulation
    this.#write = write
    this.#timer = setInterval(() => this.#print(), SECOND_MS)
    this.#print()
  }

  /** Changes of one moment make one line. */
  onChange(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      if (this.#isDue) this.#print()
    })
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#print()
  }

  #print(): void {
    this.#isDue = false
    this.#write(`${JSON.stringify(this.#simulation.state)}\n`)
  }
}

function formatLatency(latency: Latency | undefined): string {
  return latency === undefined ? 'nobody' : `p50 ${latency.p50} ms, p99 ${latency.p99} ms`
}

const NEXT = `Open one of these links in your app, or run this again with --befriend and a share link of yours; then call them.
Type a number and Enter to be called by that one, with v behind it for video. Ctrl-C ends.`
const NAME_CHARS = 14
const SECOND_MS = 1_000
