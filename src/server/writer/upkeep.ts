/** What the writer does again and again: ends what comes to its end, and finishes device lists that the log took late. */

import type { Application } from '../application.ts'
import { forEver } from '../process/for-ever.ts'
import type { Process } from '../process/process.ts'

export function startUpkeep(context: Process, { sweep, expire, lists }: Application): void {
  context.world.every(SWEEP_MS, sweep)
  forEver(context, EXPIRE_MS, () => expireAll(expire))
  // Until a list that the log took too late is served, contacts find that the log has another one.
  forEver(context, LATE_LISTS_MS, () => lists.repairPending())
}

/**
 * Ends what comes to its end, a bounded number at a time, so that no request ever scans for it. Without a pause while there
 * is more, so that what ends never gathers faster than it goes.
 */
async function expireAll(expire: Application['expire']): Promise<void> {
  while ((await expire(EXPIRED_AT_ONCE)) === EXPIRED_AT_ONCE);
  // The last portion may have left more.
  await expire(EXPIRED_AT_ONCE)
}

const SWEEP_MS = 60_000
const EXPIRE_MS = 1_000
const LATE_LISTS_MS = 5_000
/** Rows ended in one change: a few milliseconds. */
const EXPIRED_AT_ONCE = 1_000
