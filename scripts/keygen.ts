#!/usr/bin/env node
/** Makes the keys of a new log and prints them for an environment file: `keygen --origin example.org/log`. */

import { randomBytes } from 'node:crypto'
import { formatKeys, generateKeys } from '../src/log/keys.ts'
import { optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/keygen.js --origin ORIGIN

Prints the four keys, CALLSIGN_ORIGIN and CALLSIGN_SECRET as NAME=value lines.
ORIGIN names the log for ever: its address without scheme, such as kt.example.org/log.
Keep the output in a file that only the server can read, and give the two public keys to clients and auditors.
`

await runCommand({
  name: 'keygen',
  usage: USAGE,
  flags: { origin: 'value' },
  async run(flags) {
    const origin = optional(flags, 'origin')
    if (origin === undefined) throw new UsageError('--origin is missing')
    process.stdout.write(formatKeys(generateKeys(origin, randomBytes)))
    return 0
  },
})
