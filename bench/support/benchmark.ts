/**
 * What a benchmark is to the runner, and the JSON line that each of its rounds becomes. A line holds everything that
 * the report needs, so results of another day or machine can be read without the code that made them.
 */

import type { Machine } from './machine.ts'
import { rounded } from './statistics.ts'

/** The promise of a row: about the project's own figure, or its ratio to the limit. */
export interface Goal {
  readonly of: 'ratio' | 'cpuRatio' | 'project'
  readonly is: 'at least' | 'at most'
  readonly value: number
  /** The bound that keeps it from being higher, where that is not ours: one sentence. */
  readonly because?: string
}

/** One row of the table: a question, its limit and its goal. */
export interface Row {
  readonly name: string
  /** The project's job, in the table's words. */
  readonly project: string
  /** The figure beside it. */
  readonly limit: string
  readonly unit: string
  /** Absent where the row explains another row. */
  readonly goal?: Goal
  /** One sentence. */
  readonly notShown: string
}

/** The server's cost of one operation. A figure is absent where the system doesn't count it. */
export interface Cost {
  readonly cpuMicroseconds?: number
  /** Handed to files. */
  readonly writtenBytes?: number
  /**
   * Dirtied pages of files: each once between two syncs, but Linux counts whole folios, several times the bytes
   * written.
   */
  readonly diskBytes?: number
  readonly fdatasyncs?: number
}

export type Parameters = Readonly<Record<string, number | string>>

/**
 * One round of a row. `limit` and `project` are in the row's unit. In a row about growth the limit is the project's own
 * figure at the smaller size, which the parameter `than` has; the larger size is the parameter of the same kind.
 */
export interface Measurement {
  readonly limit: number
  readonly project: number
  /**
   * Work done per processor second of the server, project to limit. Less is read into it than into the ratio, because
   * the client's part is left out, but what else the machine does hardly changes it.
   */
  readonly cpuRatio?: number
  readonly costs?: { readonly limit?: Cost; readonly project: Cost }
  /**
   * What other servers that people would take for the job came to in the same turns, by name and version; in the row's
   * unit. A further figure of the row rather than rows of their own, since limit, parameters and rounds are the same.
   */
  readonly peers?: Readonly<Record<string, number>>
  /** Rows of the same parameters are one line of the table. */
  readonly parameters: Parameters
  /** Details that explain the round: processor time, latencies, batch sizes. */
  readonly details?: Parameters
}

/** The member `peers` of a measurement, absent where there are none. */
export function peersOf(
  figures: Iterable<readonly [name: string, figure: number]>,
): Pick<Measurement, 'peers'> {
  const peers = Object.fromEntries([...figures].map(([name, figure]) => [name, rounded(figure)]))
  return Object.keys(peers).length === 0 ? {} : { peers }
}

/** A line of the output. */
export interface Result extends Measurement {
  readonly benchmark: string
  readonly row: Row
  readonly round: number
  readonly ratio: number
  /** Cores that other programs kept busy during the round, on average. */
  readonly neighbourCores: number
  readonly machine: Machine
  readonly at: string
}

/** How much to do. */
export interface Scale {
  readonly isSmoke: boolean
  /** A round measures limit and project so many times in turn, each time for so long. */
  readonly turns: number
  readonly turnSeconds: number
  /** The same for loads that are at full speed at once: as long in all, but the machine's own speed changes within a second. */
  readonly shortTurns: { readonly turns: number; readonly turnSeconds: number }
  /** Runs first, unmeasured. */
  readonly warmUpSeconds: number
  /** Entries of the log where one size is enough, and how many of them belong to devices that can be looked up. */
  readonly entries: number
  readonly devices: number
  /** Sizes of the log where growth is the question, in order. */
  readonly sizes: readonly number[]
  /** Numbers of users where growth is the question, in order. */
  readonly userCounts: readonly number[]
  /** Entries appended in one measurement. */
  readonly appendedEntries: number
  /** Devices looked up again and again, and devices looked up before first lookups are measured. */
  readonly warmTargets: number
  readonly coldWarmUpTargets: number
}

export interface BenchmarkContext {
  readonly scale: Scale
  /** Whether peers are to be measured too, as far as they are installed. */
  readonly hasPeers: boolean
  /** A built checkout of another commit to measure against, if one was named. */
  readonly against: string | undefined
  /** Where prefilled logs are kept between runs. */
  readonly storesFolder: string
  /** Where the benchmark may write; removed after it. */
  readonly folder: string
  /** Where CPU profiles go; absent when none are wanted. */
  readonly profilesFolder: string | undefined
  /** Numbers from 1 on, more of them where neighbours disturb. A round ends when the next begins. */
  rounds(): Iterable<number>
  record(row: Row, round: number, measurement: Measurement): void
  /** Runs `end` after the benchmark, however it ended; the last one handed in runs first. */
  after(end: () => Promise<void> | void): void
}

export interface Benchmark {
  readonly name: string
  run(context: BenchmarkContext): Promise<void>
}
