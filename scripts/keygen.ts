#!/usr/bin/env node
/** Makes the keys of a new log and prints them for an environment file: `keygen --origin example.org/log`. */

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'
import { formatKeys, generateKeys } from '../src/log/keys.ts'

const USAGE = `usage: node dist/scripts/keygen.js --origin ORIGIN

Prints the four keys, CALLSIGN_ORIGIN and CALLSIGN_SECRET as NAME=value lines.
ORIGIN names the log for ever: its address without scheme, such as kt.example.org/log.
Keep the output in a file that only the server can read, and give the two public keys to clients and auditors.
`

function main(): number {
  let origin: string | undefined
  try {
    const { values } = parseArgs({ options: { origin: { type: 'string' }, help: { type: 'boolean' } } })
    if (values.help) {
      process.stdout.write(USAGE)
      return 0
    }
    origin = values.origin
  } catch (error) {
    process.stderr.write(`keygen: ${messageOf(error)}\n\n${USAGE}`)
    return 2
  }
  if (origin === undefined) {
    process.stderr.write(`keygen: --origin is missing\n\n${USAGE}`)
    return 2
  }
  try {
    process.stdout.write(formatKeys(generateKeys(origin, randomBytes)))
    return 0
  } catch (error) {
    process.stderr.write(`keygen: ${messageOf(error)}\n`)
    return 2
  }
}

process.exitCode = main()
