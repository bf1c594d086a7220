/**
 * Loaded before a program that runs with `--expose-gc`: whenever SIGUSR2 comes it has its garbage collected, and then
 * what its memory is written to the file that `BENCH_MEMORY_FILE` names.
 */

import { renameSync, writeFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  // What the first finds may be held by what only the second one frees.
  globalThis.gc?.()
  globalThis.gc?.()
  const path = process.env.BENCH_MEMORY_FILE ?? ''
  writeFileSync(`${path}.draft`, JSON.stringify(process.memoryUsage()))
  renameSync(`${path}.draft`, path)
})
