#!/usr/bin/env node
/** Makes the keys of a new server and prints them for an environment file: `keygen --origin example.org/log`. */

import { randomBytes } from 'node:crypto'
import { generateVapidKey } from '../src/delivery/vapid-key.ts'
import { generateUserTokenKey } from '../src/domain/accounts/user-token.ts'
import { formatIndexKey, formatKeys, generateIndexKey, generateKeys } from '../src/log/keys.ts'
import { optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/keygen.js --origin ORIGIN
       node dist/scripts/keygen.js --index --origin ORIGIN
       node dist/scripts/keygen.js --vapid | --token

Prints the keys of the log and of its index, CALLSIGN_ORIGIN, CALLSIGN_SECRET, CALLSIGN_VAPID_KEY and CALLSIGN_TOKEN_KEY as NAME=value lines.
With --vapid or --token it prints CALLSIGN_VAPID_KEY or CALLSIGN_TOKEN_KEY alone, for a server that has the others.
With --index it prints the two keys of the index alone, for the log of that ORIGIN.
ORIGIN names the log for ever: its address without scheme, such as kt.example.org/log.
Keep the output in a file that only the server can read, and give the public keys to clients and auditors.
`

await runCommand({
  name: 'keygen',
  usage: USAGE,
  flags: { origin: 'value', index: 'alone', vapid: 'alone', token: 'alone' },
  async run(flags) {
    const origin = optional(flags, 'origin')
    const { index = false, vapid = false, token = false } = flags
    const isWhole = !index && !vapid && !token
    if ((vapid || token) && (index || origin !== undefined))
      throw new UsageError('--vapid and --token go without --index and --origin')
    if ((isWhole || index) && origin === undefined) throw new UsageError('--origin is missing')
    if (origin !== undefined) {
      const keys = index
        ? formatIndexKey(generateIndexKey(origin, randomBytes))
        : formatKeys(generateKeys(origin, randomBytes))
      process.stdout.write(keys)
    }
    if (isWhole || vapid) process.stdout.write(`CALLSIGN_VAPID_KEY=${generateVapidKey(randomBytes)}\n`)
    if (isWhole || token) process.stdout.write(`CALLSIGN_TOKEN_KEY=${generateUserTokenKey(randomBytes)}\n`)
    return 0
  },
})
