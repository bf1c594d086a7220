/** A log line for a web page whose origin may not call, with the setting that would let it in: once in a while for each. */

import type { Logger } from './log.ts'

export class OriginLog {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #monotonicMs: () => number
  /** Those that have had a line since `#sinceMs`. */
  readonly #noted = new Set<string>()
  #sinceMs: number

  constructor(logger: Pick<Logger, 'warn'>, monotonicMs: () => number) {
    this.#logger = logger
    this.#monotonicMs = monotonicMs
    this.#sinceMs = monotonicMs()
  }

  /** `origin` is what the peer sent: a text that is no origin is not repeated. */
  note(origin: string): void {
    const name = ORIGIN_FORM.test(origin) ? origin : origin === 'null' ? 'null' : 'unreadable'
    const nowMs = this.#monotonicMs()
    if (nowMs - this.#sinceMs >= AGAIN_AFTER_MS) {
      this.#noted.clear()
      this.#sinceMs = nowMs
    }
    if (this.#noted.has(name) || this.#noted.size >= ORIGINS_MAX) return
    this.#noted.add(name)
    this.#logger.warn({ event: 'origin-refused', origin: name, setting: SETTING, advice: adviceOn(name) })
  }
}

function adviceOn(origin: string): string {
  if (origin === 'null') return 'serve the page by http: one from a file or a sandboxed frame has no origin'
  if (origin === 'unreadable') return `${SETTING} names origins such as https://app.example.org`
  return `add ${origin} to ${SETTING} to let its pages in`
}

const SETTING = 'CALLSIGN_CORS_ORIGINS'
/** As browsers send it, and as the setting takes it: a scheme, a host, perhaps a port. */
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]{1,30}:\/\/[a-z0-9.:[\]_-]{1,253}$/
const AGAIN_AFTER_MS = 600_000
/** Lines in that time. */
const ORIGINS_MAX = 20
