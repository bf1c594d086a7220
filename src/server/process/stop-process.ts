/** The orderly end of a process, the same for every role: what was asked is answered, then everything closes. */

import { setImmediate } from 'node:timers/promises'
import { STOP_DEADLINE_MS } from '../../limits.ts'
import type { Process } from './process.ts'
import { type StopStage, type Stops, stopInStages } from './stages.ts'

/** Resolves when all parts have ended. The process ends at once where that takes longer than `STOP_DEADLINE_MS`. */
export async function stopProcess(
  context: Process,
  parts: () => readonly Stops[],
  reason: string,
): Promise<void> {
  const { logger } = context
  let reached: StopStage = 'listening'
  context.stopping()
  logger.info({ event: 'stopping', reason })
  const deadline = setTimeout(
    () => context.fatal(new Error(`not stopped within ${STOP_DEADLINE_MS} ms: it waits for ${reached}`)),
    STOP_DEADLINE_MS,
  ).unref()
  // Clients that have connected by now are let in; closing the socket would reset them.
  await setImmediate()
  await stopInStages(parts, stage => {
    reached = stage
    logger.debug({ event: 'stop-stage', stage })
  })
  context.close()
  clearTimeout(deadline)
  logger.info({ event: 'stopped' })
}
