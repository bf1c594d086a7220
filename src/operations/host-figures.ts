/** Figures of the server, its machine and each of its processes, as gauges read on demand. */

import { statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import type { Metrics } from './metrics.ts'

export interface Host {
  readonly version: string
  /** Where the store is. */
  readonly dataFolder: string
  /** Whether checkpoints are recorded outside the data directory. */
  readonly hasHeadFile: boolean
  /** Whether the process should get traffic now. */
  readonly isReady: () => boolean
}

export function observeHost(metrics: Metrics, { version, dataFolder, hasHeadFile, isReady }: Host): void {
  const store = join(dataFolder, 'store', 'data.mdb')
  metrics.labelledGauge('callsign_info', 'Always 1; the label says which version runs', 'version', () => {
    return new Map([[version, 1]])
  })
  metrics.gauge('callsign_ready', 'As /readyz says it: 1 to get traffic, 0 not', () => Number(isReady()))
  metrics.gauge('callsign_log_head_file_set', '1 when CALLSIGN_LOG_HEAD_FILE is set, else 0', () =>
    Number(hasHeadFile),
  )
  metrics.gauge('callsign_store_bytes', 'Size of the store file', () => read(() => statSync(store).size))
  metrics.gauge('callsign_disk_bytes', 'Size of the file system with the data directory', () =>
    read(() => ofFileSystem(dataFolder, 'blocks')),
  )
  metrics.gauge('callsign_disk_free_bytes', 'What the process may still write on it', () =>
    read(() => ofFileSystem(dataFolder, 'bavail')),
  )
}

export function observeProcess(metrics: Metrics): void {
  metrics.gauge('callsign_heap_limit_bytes', 'The heap size at which V8 ends the process', () => {
    return getHeapStatistics().heap_size_limit
  })
}

function ofFileSystem(folder: string, blocks: 'blocks' | 'bavail'): number {
  const system = statfsSync(folder)
  return system[blocks] * system.bsize
}

/** One unreadable figure must not hide the rest. */
function read(figure: () => number): number {
  try {
    return figure()
  } catch {
    return Number.NaN
  }
}
