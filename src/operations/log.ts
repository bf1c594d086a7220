/** The log output: pino JSON lines on stderr, one fixed event name and its fields a line. */

import pino from 'pino'

export type Logger = pino.Logger

/**
 * Secrets are kept out by their names even where a caller passes a whole object. Lines are gathered for a moment, or
 * up to 4 kB, and written together: a write each took 4 % of a registration.
 */
export function createLogger(level: string): Logger {
  const destination = pino.destination({ dest: 2, sync: true, minLength: 4096 })
  setInterval(() => destination.flushSync(), FLUSH_MS).unref()
  process.on('exit', () => destination.flushSync())
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'event',
      formatters: { level: label => ({ level: label }) },
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
    },
    destination,
  )
}

const FLUSH_MS = 100
const SECRET_NAMES = [
  'token',
  'authorization',
  'otp',
  'secret',
  'privateKey',
  'encryptedAESKey',
  'encryptedAESKeys',
  'pushToken',
]
const SECRET_PATHS = SECRET_NAMES.flatMap(name => [name, `*.${name}`])
