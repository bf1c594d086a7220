#!/usr/bin/env node
/**
 * Checks one lookup result as a client would, and says at each step what it found (contract 14). With a state file it
 * also holds the log to the highest checkpoint it has shown; that a larger tree begins with that one is not to be seen
 * from a lookup result, and left to `audit`.
 */

import { messageOf } from '../src/errors.ts'
import { endWithReader } from './support/broken-pipe.ts'
import { UsageError } from './support/command.ts'
import { type ExitCode, readSettings, type Step, verify } from './verify-proof/verification.ts'

const USAGE = `usage: node dist/scripts/verify-proof.js --user ID --device ID --public-key KEY [options] < RESULT

Reads one result of POST /api/get-public-keys from standard input, {"publicKey", "vrfHash", "proof"}, or a whole answer
that holds one, and checks that the log holds KEY for that device. Prints a line per check: JSON unless at a terminal.

  --user ID, --device ID   whose key was looked up
  --public-key KEY         the key it should be, in base64
  --vkey KEY               the log's verifier key (else KT_PUBLIC_KEY)
  --vrf-key KEY            the log's VRF key in base64 (else VRF_PUBLIC_KEY)
  --index-vkey KEY         the verifier key of the log's index: the result has to prove by it that it is the newest one
  --state FILE             remembers the highest checkpoint that held; a different one of its size is refused, and a smaller one
                           not believed

Exit code: 0 all holds, 1 the result or the log does not hold, 2 it could not be checked.
`

async function main(): Promise<ExitCode> {
  const settings = readSettings(process.argv.slice(2), process.env)
  if (settings === undefined) {
    process.stdout.write(USAGE)
    return 0
  }
  return verify(settings, process.stdin, process.stdout.isTTY ? tellAtTerminal : tellAsJson)
}

function tellAsJson(step: Step): void {
  process.stdout.write(`${JSON.stringify(step)}\n`)
}

function tellAtTerminal({ check, ok, detail, notes = [] }: Step): void {
  const mark = ok === true ? 'ok     ' : ok === false ? 'FAILED ' : 'unknown'
  process.stdout.write(`${mark}  ${check.padEnd('consistency'.length)}  ${detail}\n`)
  for (const note of notes) process.stdout.write(`\n${note.replace(/^(?=.)/gm, '    ')}\n`)
}

endWithReader()
try {
  process.exitCode = await main()
} catch (error) {
  const usage = error instanceof UsageError ? `\n\n${USAGE}` : '\n'
  process.stderr.write(`verify-proof: ${messageOf(error)}${usage}`)
  process.exitCode = 2
}
