/** Program: one log engine that grows and is measured on request. */

import { LogEngine, type Tables } from './log-engine.ts'
import { serveParent } from './program.ts'
import { randomKeys } from './random-keys.ts'

export interface AppendProtocol {
  readonly setup: { readonly folder: string; readonly tables: Tables }
  readonly request: { readonly entries: number; readonly inFlight: number }
  readonly answer: AppendFigures
}

export interface AppendFigures {
  readonly entriesPerSecond: number
  /** The size at which it began, and the batches that were formed. */
  readonly firstIndex: number
  readonly batchSizes: readonly number[]
  readonly storeBytes: number
  readonly residentBytes: number
  /** Processor time of this process, with LMDB's threads. */
  readonly cpuMicrosecondsPerEntry: number
}

serveParent<AppendProtocol>(async ({ folder, tables }) => {
  const engine = await LogEngine.open(folder, tables)
  const nextKey = randomKeys()
  return async ({ entries, inFlight }) => {
    const firstIndex = engine.treeSize
    const firstBatch = engine.batchSizes.length
    const cpuBefore = process.cpuUsage()
    const startedAt = performance.now()
    await engine.append(entries, inFlight, nextKey)
    const seconds = (performance.now() - startedAt) / 1000
    const cpu = process.cpuUsage(cpuBefore)
    return {
      entriesPerSecond: entries / seconds,
      firstIndex,
      batchSizes: engine.batchSizes.slice(firstBatch),
      storeBytes: engine.storeBytes(),
      residentBytes: process.memoryUsage.rss(),
      cpuMicrosecondsPerEntry: (cpu.user + cpu.system) / entries,
    }
  }
})
