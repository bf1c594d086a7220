#!/usr/bin/env node
/** `npx callsign <command>`: the server and the operators' commands under one name. */

import '../src/source-maps.ts'

import { VERSION } from '../src/server/process/version.ts'

const COMMANDS = new Map([
  ['serve', () => import('../src/main.ts')],
  ['keygen', () => import('./keygen.ts')],
  ['server-key', () => import('./server-key.ts')],
  ['webhook', () => import('./webhook.ts')],
  ['backup', () => import('./backup.ts')],
  ['restore', () => import('./restore.ts')],
  ['migrate', () => import('./migrate.ts')],
  ['fsck', () => import('./fsck.ts')],
  ['config', () => import('./config.ts')],
  ['doctor', () => import('./doctor.ts')],
  ['audit', () => import('./audit.ts')],
  ['verify-proof', () => import('./verify-proof.ts')],
  ['pin', () => import('./pin.ts')],
  ['witness', () => import('./witness.ts')],
  ['drill', () => import('./drill.ts')],
  ['simulate', () => import('./simulate.ts')],
  ['new', () => import('./new.ts')],
])

const USAGE = `usage: callsign ${[...COMMANDS.keys()].join('|')} [options]

Each says by --help what it takes; --version prints the version.
`

const command = process.argv[2]
const run = command === undefined ? undefined : COMMANDS.get(command)
if (command === '--help') {
  process.stdout.write(USAGE)
} else if (command === '--version') {
  process.stdout.write(`${VERSION}\n`)
} else if (run === undefined) {
  const fault = command === undefined ? '' : `callsign: there is no command ${command}\n\n`
  process.stderr.write(`${fault}${USAGE}`)
  process.exitCode = 2
} else {
  process.argv.splice(2, 1)
  await run()
}
