/** The server's command line: flags in; usage, version or a fault out. */

import { parseArgs } from 'node:util'
import { messageOf } from '../../errors.ts'
import { VERSION } from './version.ts'

export interface ServerFlags {
  readonly dev: boolean
  /** Whether a development server serves phones on the same network. */
  readonly lan: boolean
  /** Whether a development server starts a Janus of its own. */
  readonly janus: boolean
  /** The settings file. */
  readonly config?: string
  /** A file with the newest checkpoint known to anyone. */
  readonly 'known-checkpoint'?: string
  /** The same for the output log of the index. */
  readonly 'known-index-checkpoint'?: string
}

/** Ends the process with exit code 0 after the usage or the version, with 2 for a flag that does not exist. */
export function readFlags(argv: readonly string[]): ServerFlags {
  try {
    const { values } = parseArgs({ args: [...argv], options: OPTIONS })
    const { help, version, dev = false, lan = false, janus = false, ...others } = values
    if (help !== true && version !== true) return { dev, lan, janus, ...others }
    process.stdout.write(help === true ? USAGE : `${VERSION}\n`)
    process.exit(0)
  } catch (error) {
    process.stderr.write(`callsign: ${messageOf(error)}\n\n${USAGE}`)
    process.exit(2)
  }
}

const OPTIONS = {
  dev: { type: 'boolean' },
  lan: { type: 'boolean' },
  janus: { type: 'boolean' },
  config: { type: 'string' },
  'known-checkpoint': { type: 'string' },
  'known-index-checkpoint': { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean' },
} as const
const USAGE = `usage: node --env-file=callsign.env dist/joined/src/main.js [--dev [--lan] [--janus]] [--config FILE] [--known-checkpoint FILE]
       [--known-index-checkpoint FILE]

Serves until SIGTERM. Its settings are environment variables and those of a file; \`callsign config reference\` and
docs/reference/settings.md list them. \`callsign config check\` looks for faults, \`callsign doctor\` tries them.

  --dev                     a development server: on this machine only, it makes its own keys and shows what it sends
  --lan                     with --dev: for phones on the same network, too
  --janus                   with --dev: starts a Janus with it, if the program is installed
  --config FILE             settings as lines NAME=value or as a JSON object; the environment wins
  --known-checkpoint FILE   at the first start after a restore: the newest checkpoint that anybody has seen
  --known-index-checkpoint FILE
                            the same for the index: without it the server starts, and its index is held
  --version                 prints the version

Exit code: 0 stopped by a signal, 1 it could not start or go on, 2 wrong usage.
`
