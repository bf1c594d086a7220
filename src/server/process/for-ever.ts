/** Work that a process does again and again. */

import type { Process } from './process.ts'

/** Acts so often, unless the last time is still under way. */
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
