/** The server as a program: reads the command line and the settings, starts, and stops on a signal. */

import { networkInterfaces } from 'node:os'
import { createLogger } from '../operations/log.ts'
import { listeningAsBefore } from './addresses.ts'
import { withDevelopmentJanus } from './development/development-janus.ts'
import { chooseLanAddress } from './development/lan-address.ts'
import { readFlags } from './process/command-line.ts'
import { endProcess, sentenceOf } from './process/end-process.ts'
import { binaryChoice, guardOwnBinaries } from './process/own-binaries.ts'
import { type Config, readConfig } from './settings/config.ts'
import { notesOf, warningsOf } from './settings/warnings.ts'

/** Does not reject: what can't start says why, and ends the process. */
export function runServer(): Promise<void> {
  return main().catch(sayAndExit)
}

async function main(): Promise<void> {
  const flags = readFlags(process.argv.slice(2))
  // A reader of the log that has gone, or a full disk under it, costs lines and not calls.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
  const lanAddress = chooseLanAddress(networkInterfaces())
  const settings = readConfig(process.env, { ...flags, lanAddress })
  // Before the imports that load them.
  guardOwnBinaries(binaryChoice(settings))
  await import('../transport/platform.ts')
  const { start } = await import('./start.ts')
  const say = (text: string) => void process.stderr.write(text)
  const config = flags.janus ? await withDevelopmentJanus(settings, say) : settings
  const logger = createLogger(config.logLevel)
  for (const warning of warningsOf(config)) logger.warn(warning)
  for (const note of notesOf(config)) logger.info(note)
  const onReset = () => void startAnew()
  const run = (settings: Config, knownCheckpoint?: string, knownIndexCheckpoint?: string) =>
    start(settings, { logger, say, knownCheckpoint, knownIndexCheckpoint, onReset }).catch(error => {
      // The last line is the reason.
      logger.flush()
      throw error
    })
  let server = await run(config, flags['known-checkpoint'], flags['known-index-checkpoint'])
  async function startAnew(): Promise<void> {
    await server.stop('reset')
    server = await run(listeningAsBefore(config, server.ready)).catch(sayAndExit)
    server.announce()
  }
  async function stop(reason: string): Promise<void> {
    await server.stop(reason)
    process.exit(0)
  }
  for (const signal of STOPPING) process.on(signal, () => void stop(signal))
  process.on('SIGHUP', () => {
    // Also of a terminal that is closed: a development server goes with it.
    if (config.isDevelopment) return void stop('SIGHUP')
    void server.renew(() => readConfig(process.env, flags))
  })
  server.announce()
}

function sayAndExit(error: unknown): never {
  process.stderr.write(`callsign: ${sentenceOf(error)}\n`)
  endProcess()
}

/** A supervisor's, and Ctrl-C. */
const STOPPING = ['SIGTERM', 'SIGINT'] as const
