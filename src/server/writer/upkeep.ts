/** The writer's recurring work: ends expired rows, and finishes device lists that the log took late. */

import { forEver } from '../process/for-ever.ts'
import type { WritingProcess } from '../process/process.ts'
import type { Application } from './writes.ts'

export function startUpkeep(context: WritingProcess, { sweep, expire, lists }: Application): void {
  context.world.every(SWEEP_MS, sweep)
  forEver(context, EXPIRE_MS, () => expireAll(expire))
  // Until the server serves such a list, contacts see that the log has a different one.
  forEver(context, LATE_LISTS_MS, () => lists.repairPending())
}

/**
 * Ends expired rows, a bounded number at a time, so that no request ever scans for them. Makes no pause while there are
 * more, so that they never pile up.
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
