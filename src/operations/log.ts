/** The log output on stderr, one fixed event name and its fields a line: JSON by pino, readable on a terminal. */

import pino from 'pino'
import { readableLine } from './readable-line.ts'

export type Logger = pino.Logger

/** Secrets are kept out by their names even where a caller passes a whole object. */
export function createLogger(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'event',
      formatters: { level: label => ({ level: label }) },
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
    },
    new GatheredLines(),
  )
}

const SECRET_NAMES = [
  'token',
  'authorization',
  'otp',
  'secret',
  'privateKey',
  'encryptedAESKey',
  'pushKey',
  'encryptedAESKeys',
  'pushToken',
]
const SECRET_PATHS = SECRET_NAMES.flatMap(name => [name, `*.${name}`])

/**
 * Gathers lines for a moment, or up to 4 kB, and writes them together: a write for each took 4 % of a registration.
 * Not pino's own destination, which calls fsync at every flush and so blocks the event loop where stderr is a file.
 */
class GatheredLines {
  #text = ''

  constructor() {
    setInterval(() => this.flush(), FLUSH_MS).unref()
    process.on('exit', () => this.flush())
  }

  write(line: string): void {
    this.#text += process.stderr.isTTY ? readableLine(line) : line
    if (this.#text.length > GATHERED_CHARS_MAX) this.flush()
  }

  /**
   * Called by the logger's `flush`. Lines that the reader does not take wait in memory; beyond a bound they are lost.
   */
  flush(): void {
    if (this.#text === '') return
    if (process.stderr.writableLength < UNREAD_BYTES_MAX) process.stderr.write(this.#text)
    this.#text = ''
  }
}

const FLUSH_MS = 100
const GATHERED_CHARS_MAX = 4096
/** Ten thousand lines and more: minutes of a busy server. */
const UNREAD_BYTES_MAX = 1024 * 1024
