/** A log line for each refusal while there are few of a kind: who floods the server does not fill its disk. */

import type { Logger } from './log.ts'

export class RefusalLog {
  readonly #logger: Pick<Logger, 'info'>
  readonly #monotonicMs: () => number
  readonly #codes = new Map<string, Lines>()

  constructor(logger: Pick<Logger, 'info'>, monotonicMs: () => number) {
    this.#logger = logger
    this.#monotonicMs = monotonicMs
  }

  /** `leftOut` of a line is how many of its code came before it without one. The metrics count them all. */
  note(code: string, requestId?: string): void {
    const lines = this.#linesOf(code)
    if (lines.written >= LINES_PER_SECOND) {
      lines.leftOut++
      return
    }
    lines.written++
    const leftOut = lines.leftOut === 0 ? undefined : lines.leftOut
    lines.leftOut = 0
    this.#logger.info({ event: 'refused', code, requestId, leftOut })
  }

  #linesOf(code: string): Lines {
    const second = Math.floor(this.#monotonicMs() / 1000)
    const lines = this.#codes.get(code) ?? { second, written: 0, leftOut: 0 }
    this.#codes.set(code, lines)
    if (lines.second !== second) {
      lines.second = second
      lines.written = 0
    }
    return lines
  }
}

interface Lines {
  second: number
  /** In that second. */
  written: number
  leftOut: number
}

/** Of each code. */
const LINES_PER_SECOND = 10
