/**
 * Loaded before a program that runs with `--expose-gc`: whenever SIGUSR2 comes it has its garbage collected, and then
 * what its memory is written to the file that `BENCH_MEMORY_FILE` names.
 */

import { renameSync, writeFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  // Objects that the second collection frees may hold garbage of the first.
  globalThis.gc?.()
  globalThis.gc?.()
  const path = process.env.BENCH_MEMORY_FILE ?? ''
  writeFileSync(`${path}.draft`, JSON.stringify(process.memoryUsage()))
  renameSync(`${path}.draft`, path)
})
