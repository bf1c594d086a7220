/** The log output: pino JSON lines on stderr, one fixed event name and its fields a line. */

import pino from 'pino'

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
    pino.destination({ dest: 2, minLength: 0, sync: true }),
  )
}

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
