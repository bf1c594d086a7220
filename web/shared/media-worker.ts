/** The worker of a call's media as a file of this server: the policy of its pages allows none of a Blob URL. */
export function newMediaWorker(): Worker {
  return new Worker(new URL('../../src/app/media/worker.js', import.meta.url), { type: 'module' })
}
