/** The orderly end of a process, the same for every role: open requests are answered, then everything closes. */

import { setImmediate } from 'node:timers/promises'
import { STOP_DEADLINE_MS } from '../../limits.ts'
import type { Process } from './process.ts'
import { type StopStage, type Stops, stopInStages } from './stages.ts'

/** Resolves when all parts have ended. After `STOP_DEADLINE_MS` the process ends at once. */
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
  // Lets pending connections in: closing the socket would reset them.
  await setImmediate()
  await stopInStages(parts, stage => {
    reached = stage
    logger.debug({ event: 'stop-stage', stage })
  })
  context.close()
  clearTimeout(deadline)
  logger.info({ event: 'stopped' })
}
