/**
 * Loaded before a program: whenever SIGUSR2 comes, the bytes that its main thread has allocated in V8's heap so far are written
 * to the file that `BENCH_GARBAGE_FILE` names.
 */

import { renameSync, writeFileSync } from 'node:fs'
import { GCProfiler, getHeapStatistics } from 'node:v8'

let profiler = new GCProfiler()
let heldBytes = getHeapStatistics().used_heap_size
let allocatedBytes = 0
profiler.start()

process.on('SIGUSR2', () => {
  // Octets before a collection that were not there after the last one are new.
  for (const { beforeGC, afterGC } of profiler.stop().statistics) {
    allocatedBytes += beforeGC.heapStatistics.usedHeapSize - heldBytes
    heldBytes = afterGC.heapStatistics.usedHeapSize
  }
  const nowBytes = getHeapStatistics().used_heap_size
  allocatedBytes += nowBytes - heldBytes
  heldBytes = nowBytes
  profiler = new GCProfiler()
  profiler.start()
  const path = process.env.BENCH_GARBAGE_FILE ?? ''
  writeFileSync(`${path}.draft`, String(allocatedBytes))
  renameSync(`${path}.draft`, path)
})
