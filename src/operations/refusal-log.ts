/** A log line for each refusal while there are few of a kind: who floods the server does not fill its disk. */

import type { RefusedRequest } from '../transport/http-deps.ts'
import type { Logger } from './log.ts'

export class RefusalLog {
  readonly #logger: Pick<Logger, 'info'>
  readonly #monotonicMs: () => number
  readonly #codes = new Map<string, Lines>()

  constructor(logger: Pick<Logger, 'info'>, monotonicMs: () => number) {
    this.#logger = logger
    this.#monotonicMs = monotonicMs
  }

  /**
   * Says which code, where, and what of the request was at fault: never a value of it. `leftOut` of a line is how many of
   * its code came before it without one. The metrics count them all.
   */
  note(code: string, { requestId, method, route, pointer }: Partial<RefusedRequest>): void {
    const lines = this.#linesOf(code)
    if (lines.written >= LINES_PER_SECOND) {
      lines.leftOut++
      return
    }
    lines.written++
    const leftOut = lines.leftOut === 0 ? undefined : lines.leftOut
    lines.leftOut = 0
    const at = pointer === undefined ? undefined : readable(pointer)
    this.#logger.info({ event: 'refused', code, method, route, pointer: at, requestId, leftOut })
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

/**
 * Names of members are ours, but some are the peer's own, such as the devices in a map of keys: cut where the name
 * ends.
 */
function readable(pointer: string): string {
  const names = /^(?:\/[A-Za-z0-9_.~-]{0,41}(?=\/|$))*/.exec(pointer.slice(0, POINTER_CHARS_MAX))?.[0] ?? ''
  return names === pointer ? pointer : `${names}/…`
}

const POINTER_CHARS_MAX = 200
/** Limit for each code. */
const LINES_PER_SECOND = 10
