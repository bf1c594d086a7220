/**
 * One tab of a device leads, by a lock of the browser, and has its connection. Without such locks each tab leads; the server
 * then lets the newest connection of a device take over.
 */

export interface LeadOptions {
  /** Taken from the tab that has it. */
  readonly isTaken: boolean
  /** Another tab leads. */
  readonly onWaiting: () => void
  /** Another tab has taken the lead. */
  readonly onLost: () => void
}

/** Resolves when this tab leads, which it does until `life` is aborted; also when `life` is aborted before. */
export async function leadTabs(name: string, life: AbortSignal, options: LeadOptions): Promise<void> {
  const locks = globalThis.navigator?.locks
  if (locks === undefined) return
  const { isTaken, onWaiting, onLost } = options
  return new Promise(resolve => {
    let isLeading = false
    const hold = () => {
      resolve()
      // It has ended: a lock that is not held stays free.
      if (life.aborted) return undefined
      isLeading = true
      return new Promise<void>(release => life.addEventListener('abort', () => release()))
    }
    const holdOrWait = (lock: Lock | null) => {
      if (lock !== null || life.aborted) return hold()
      onWaiting()
      void request({ signal: life }, hold)
      return undefined
    }
    const request = (how: LockOptions, granted: (lock: Lock | null) => unknown) =>
      locks.request(name, how, granted).catch(() => {
        if (isLeading) onLost()
        // Ended before, or a page that may have no locks.
        else resolve()
      })
    void request(isTaken ? { steal: true } : { ifAvailable: true }, holdOrWait)
  })
}
