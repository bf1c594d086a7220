/** A log line for a connection at the nodes' port that did not prove to be a node's: once in a while for each reason. */

import type { Logger } from './log.ts'

export class LinkRefusalLog {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #monotonicMs: () => number
  readonly #reasons = new Map<string, { saidAtMs: number; leftOut: number }>()

  constructor(logger: Pick<Logger, 'warn'>, monotonicMs: () => number) {
    this.#logger = logger
    this.#monotonicMs = monotonicMs
  }

  /** `leftOut` of a line is how many of its reason came before it without one. */
  readonly note = (reason: string, address: string | undefined): void => {
    const nowMs = this.#monotonicMs()
    const last = this.#reasons.get(reason)
    if (last !== undefined && nowMs - last.saidAtMs < AGAIN_AFTER_MS) {
      last.leftOut++
      return
    }
    const leftOut = last === undefined || last.leftOut === 0 ? undefined : last.leftOut
    this.#reasons.set(reason, { saidAtMs: nowMs, leftOut: 0 })
    this.#logger.warn({ event: 'link-refused', reason, address, leftOut, advice: ADVICE[reason] ?? STRANGER })
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  'other secret': 'give all nodes the same CALLSIGN_SECRET',
}
const STRANGER =
  'only nodes connect to CALLSIGN_NODE_PORT: look which program did, and keep others away from it'
const AGAIN_AFTER_MS = 60_000
