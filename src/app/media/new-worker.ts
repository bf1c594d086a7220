/**
 * Starts the worker of a call. The build puts another module in this one's place (scripts/support/inline-worker.ts), which holds the
 * worker's code: apps load one file, and no bundler has to find another.
 */

export function newWorker(): Worker {
  return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
}
