#!/usr/bin/env node
/** Makes the keys of a new server and prints them for an environment file: `keygen --origin example.org/log`. */

import { randomBytes } from 'node:crypto'
import { generateVapidKey } from '../src/delivery/vapid-key.ts'
import { formatKeys, generateKeys } from '../src/log/keys.ts'
import { optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/keygen.js --origin ORIGIN
       node dist/scripts/keygen.js --vapid

Prints the log's four keys, CALLSIGN_ORIGIN, CALLSIGN_SECRET and CALLSIGN_VAPID_KEY as NAME=value lines.
With --vapid it prints CALLSIGN_VAPID_KEY alone, for a server that has the others.
ORIGIN names the log for ever: its address without scheme, such as kt.example.org/log.
Keep the output in a file that only the server can read, and give the two public keys to clients and auditors.
`

await runCommand({
  name: 'keygen',
  usage: USAGE,
  flags: { origin: 'value', vapid: 'alone' },
  async run(flags) {
    const origin = optional(flags, 'origin')
    const vapid = `CALLSIGN_VAPID_KEY=${generateVapidKey(randomBytes)}\n`
    if (flags.vapid !== undefined && origin !== undefined)
      throw new UsageError('--vapid goes without --origin')
    if (flags.vapid === undefined && origin === undefined) throw new UsageError('--origin is missing')
    process.stdout.write(
      `${origin === undefined ? '' : formatKeys(generateKeys(origin, randomBytes))}${vapid}`,
    )
    return 0
  },
})
