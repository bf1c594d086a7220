#!/usr/bin/env node
/** Makes the keys of a new server and prints them for an environment file: `keygen --origin example.org/log`. */

import { randomBytes } from 'node:crypto'
import { generateVapidKey } from '../src/delivery/vapid-key.ts'
import { generateUserTokenKey } from '../src/domain/accounts/user-token.ts'
import { formatKeys, generateKeys } from '../src/log/keys.ts'
import { optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/keygen.js --origin ORIGIN
       node dist/scripts/keygen.js --vapid | --token

Prints the log's four keys, CALLSIGN_ORIGIN, CALLSIGN_SECRET, CALLSIGN_VAPID_KEY and CALLSIGN_TOKEN_KEY as NAME=value lines.
With --vapid or --token it prints CALLSIGN_VAPID_KEY or CALLSIGN_TOKEN_KEY alone, for a server that has the others.
ORIGIN names the log for ever: its address without scheme, such as kt.example.org/log.
Keep the output in a file that only the server can read, and give the two public keys to clients and auditors.
`

await runCommand({
  name: 'keygen',
  usage: USAGE,
  flags: { origin: 'value', vapid: 'alone', token: 'alone' },
  async run(flags) {
    const origin = optional(flags, 'origin')
    const { vapid = false, token = false } = flags
    const isWhole = !vapid && !token
    if (!isWhole && origin !== undefined) throw new UsageError('--vapid and --token go without --origin')
    if (isWhole && origin === undefined) throw new UsageError('--origin is missing')
    if (origin !== undefined) process.stdout.write(formatKeys(generateKeys(origin, randomBytes)))
    if (isWhole || vapid) process.stdout.write(`CALLSIGN_VAPID_KEY=${generateVapidKey(randomBytes)}\n`)
    if (isWhole || token) process.stdout.write(`CALLSIGN_TOKEN_KEY=${generateUserTokenKey(randomBytes)}\n`)
    return 0
  },
})
