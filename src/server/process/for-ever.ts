/** Recurring work of a process. */

import type { Process } from './process.ts'

/** Calls `act` at this interval, and skips a turn while the last call is under way. */
export function forEver(
  { world, onFault }: Pick<Process, 'world' | 'onFault'>,
  everyMs: number,
  act: () => Promise<unknown>,
): void {
  let isUnderWay = false
  world.every(everyMs, () => {
    if (isUnderWay) return
    isUnderWay = true
    act()
      .catch(error => onFault(error))
      .finally(() => {
        isUnderWay = false
      })
  })
}
