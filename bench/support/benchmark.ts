/**
 * What a benchmark is to the runner, and the JSON line that each of its rounds becomes. A line holds everything that
 * the report needs, so results of another day or machine can be read without the code that made them.
 */

import type { Machine } from './machine.ts'

/** What a row promises: of the project's own figure, or of its ratio to the limit. */
export interface Goal {
  readonly of: 'ratio' | 'project'
  readonly is: 'at least' | 'at most'
  readonly value: number
}

/** One row of the table: a question, its limit and its goal. */
export interface Row {
  readonly name: string
  /** What the project does, in the table's words. */
  readonly project: string
  /** What it is held against. */
  readonly limit: string
  readonly unit: string
  /** Absent where the row explains another one. */
  readonly goal?: Goal
  /** One sentence. */
  readonly notShown: string
}

export type Parameters = Readonly<Record<string, number | string>>

/** One round of a row. `limit` and `project` are in the row's unit. */
export interface Measurement {
  readonly limit: number
  readonly project: number
  /**
   * Work done per processor second of the server, project to limit. Less is read into it than into the ratio, because
   * the client's part is left out, but what else the machine does hardly changes it.
   */
  readonly cpuRatio?: number
  /** Rows of the same parameters are one line of the table. */
  readonly parameters: Parameters
  /** What helps to understand the round: processor time, latencies, batch sizes. */
  readonly details?: Parameters
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
  /** What runs unmeasured before. */
  readonly warmUpSeconds: number
  /** Entries of the log where one size is enough, and how many of them belong to devices that can be looked up. */
  readonly entries: number
  readonly devices: number
  /** Sizes of the log where growth is the question, in order. */
  readonly sizes: readonly number[]
  /** Entries appended in one measurement. */
  readonly appendedEntries: number
  /** Devices looked up again and again, and devices looked up before first lookups are measured. */
  readonly warmTargets: number
  readonly coldWarmUpTargets: number
}

export interface BenchmarkContext {
  readonly scale: Scale
  /** Where prefilled logs are kept between runs. */
  readonly storesFolder: string
  /** Where the benchmark may write; removed after it. */
  readonly folder: string
  /** Where CPU profiles go; absent when none are wanted. */
  readonly profilesFolder: string | undefined
  /** Numbers from 1 on, more of them where neighbours disturb. Each is over when the next is taken. */
  rounds(): Iterable<number>
  record(row: Row, round: number, measurement: Measurement): void
  /** Runs `end` when the benchmark is over, however it ended; the last one handed in runs first. */
  after(end: () => Promise<void> | void): void
}

export interface Benchmark {
  readonly name: string
  run(context: BenchmarkContext): Promise<void>
}
