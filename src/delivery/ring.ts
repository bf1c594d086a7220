/**
 * The pace of a ring (contract 6): the caller waits for it, so a push without a good answer is tried once more after a
 * second, beside the first where that one is silent.
 */

import type { DeliveryOutcome } from './outcome.ts'

/** Resolves after so many milliseconds. */
export type Wait = (ms: number) => Promise<unknown>

/** Undefined where nothing is sent any more: the call rings no more, or the device has no token for it. */
export type Tried = DeliveryOutcome | undefined

/**
 * Resolves with the first outcome that a second try would not better, else with the last. `onAgain` hears of the other
 * outcome. Rejects as `send` does.
 */
export function tryTwice(
  send: () => Promise<Tried>,
  wait: Wait,
  onAgain: (outcome: DeliveryOutcome) => void,
): Promise<Tried> {
  return new Promise((resolve, reject) => {
    let [open, isOver] = [2, false]
    const end = (outcome: Tried) => {
      isOver = true
      resolve(outcome)
    }
    const hear = (outcome: Tried) => {
      if (isOver) return
      open--
      if (outcome === undefined || isFinal(outcome) || open === 0) return end(outcome)
      onAgain(outcome)
    }
    send().then(hear, reject)
    void wait(AGAIN_MS).then(() => {
      if (!isOver) send().then(hear, reject)
    })
  })
}

/** Whether to try again at once would have the same outcome. */
function isFinal(outcome: DeliveryOutcome): boolean {
  return outcome.kind !== 'retry' || outcome.isOfAccount === true
}

/** When a VoIP push without a 200 is given up for an alert. */
export const ALERT_AFTER_MS = 2_500
const AGAIN_MS = 1_000
