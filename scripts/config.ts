#!/usr/bin/env node

/** Looks for faults in the settings without touching anything, or lists every setting there is: `config`. */

import { ConfigError, readConfig } from '../src/server/settings/config.ts'
import { notesOf, warningsOf } from '../src/server/settings/warnings.ts'
import { type Flags, optional, runCommand, UsageError } from './support/command.ts'
import { settingReference } from './support/reference/setting-tables.ts'

const USAGE = `usage: callsign config check [--config FILE] [--dev]
       callsign config reference

check reads the settings of the environment and of FILE as the server would, asks nobody, and names every fault.
reference prints every setting with what it takes and its default, and the rates of CALLSIGN_RATES.

  --config FILE   settings as lines NAME=value or as a JSON object; the environment wins
  --dev           settings of a development server

Exit code: 0 no fault, 1 a fault, 2 wrong usage.
`

function check(flags: Flags): number {
  try {
    const config = readConfig(process.env, { dev: flags.dev === true, config: optional(flags, 'config') })
    for (const { advice } of warningsOf(config)) process.stdout.write(`warning  ${advice}\n`)
    for (const { advice } of notesOf(config)) process.stdout.write(`note     ${advice}\n`)
    process.stdout.write(`ok       ${config.isDevelopment ? 'development' : 'production'}, no fault\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const problem of error.problems) process.stdout.write(`fault    ${problem}\n`)
    return 1
  }
}

function reference(): number {
  process.stdout.write(settingReference())
  return 0
}

const COMMANDS: Readonly<Record<string, (flags: Flags) => number>> = { check, reference }
const [word = ''] = process.argv.splice(2, process.argv[2]?.startsWith('--') === false ? 1 : 0)

await runCommand({
  name: 'config',
  usage: USAGE,
  flags: { config: 'value', dev: 'alone' },
  async run(flags) {
    const command = COMMANDS[word]
    if (command === undefined) throw new UsageError(`say check or reference${word && `, not ${word}`}`)
    return command(flags)
  },
})
