/** Runs the server inside the test's own process, all of it but `main.ts`. */

import { networkInterfaces } from 'node:os'
import pino from 'pino'
import { listeningAsBefore } from '../../src/server/addresses.ts'
import { chooseLanAddress } from '../../src/server/development/lan-address.ts'
import { sentenceOf } from '../../src/server/process/end-process.ts'
import type { RunningServer } from '../../src/server/process/running-server.ts'
import { type Config, readConfig } from '../../src/server/settings/config.ts'
import { warningsOf } from '../../src/server/settings/warnings.ts'
import { start } from '../../src/server/start.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { environmentOf, type OpenOptions, type OpenServer, startServer } from './server.ts'

export interface OpenInProcess extends OpenOptions {
  /** The file of `--known-checkpoint`. */
  readonly knownCheckpoint?: string
  /** The file of `--known-index-checkpoint`. */
  readonly knownIndexCheckpoint?: string
}

/**
 * The server inside the test's process, which takes a fifth of the time. For tests of what a server answers; signals,
 * exit codes, limits and kills need `startServer`.
 */
export async function openServer(options: OpenInProcess): Promise<OpenServer> {
  const { dev = true, knownCheckpoint, knownIndexCheckpoint } = options
  // With fronts it is several processes anyhow, and their log lines are wanted too.
  if (environmentOf(options).CALLSIGN_FRONTS !== '0') {
    const args = [
      ...(knownCheckpoint === undefined ? [] : ['--known-checkpoint', knownCheckpoint]),
      ...(knownIndexCheckpoint === undefined ? [] : ['--known-index-checkpoint', knownIndexCheckpoint]),
    ]
    return startServer({ ...options, args })
  }
  const lanAddress = chooseLanAddress(networkInterfaces())
  const config = readConfig(environmentOf(options), { dev, lanAddress })
  let text = ''
  const say = (more: string) => {
    text += more
  }
  const logger = pino({ level: config.logLevel, base: null }, { write: say })
  const onReset = () => void startAnew()
  const run = (
    settings: Config,
    knownCheckpoint?: string,
    knownIndexCheckpoint?: string,
  ): Promise<RunningServer> =>
    start(settings, { logger, say, knownCheckpoint, knownIndexCheckpoint, onReset })
  let server = run(config, knownCheckpoint, knownIndexCheckpoint)
  async function startAnew(): Promise<void> {
    const { ready, stop } = await server
    server = stop('reset').then(() => run(listeningAsBefore(config, ready)))
  }
  const { ready } = await server
  return { ...ready, stderr: () => text, end: async () => (await server).stop('the test') }
}

/**
 * A start in the test's process that is meant to be refused, by its settings or by the content of the data directory.
 * Resolves with what `startRefused` gives: exit code and stderr of the program. The store is closed again; a start that
 * fails once it listens needs `startRefused`.
 */
export async function openRefused(options: OpenInProcess): Promise<{ code: number; stderr: string }> {
  const { dev = true, knownCheckpoint, knownIndexCheckpoint } = options
  const host = watchedHost()
  try {
    const config = readConfig(environmentOf(options), {
      dev,
      lanAddress: chooseLanAddress(networkInterfaces()),
    })
    const logger = pino({ level: config.logLevel, base: null, messageKey: 'event' }, { write: host.say })
    for (const warning of warningsOf(config)) logger.warn(warning)
    const starting = start(config, {
      logger,
      say: host.say,
      knownCheckpoint,
      knownIndexCheckpoint,
      onReset: () => undefined,
    })
    const server = await Promise.race([starting, host.exited])
    if (server === undefined) return { code: 1, stderr: host.text() }
    await server.stop('not refused')
    return { code: 0, stderr: host.text() }
  } catch (error) {
    return { code: 1, stderr: `${host.text()}callsign: ${sentenceOf(error)}\n` }
  } finally {
    await host.leave()
  }
}

/**
 * What a start does to its process, until `leave`: an exit is noted and does not take place, lines on stderr are kept, and
 * stores are closed, which a refused start leaves to the end of the process.
 */
function watchedHost() {
  const { exit } = process
  const { write } = process.stderr
  const { open } = LmdbStore
  const listeners = process.listeners('unhandledRejection')
  const opened: LmdbStore[] = []
  let text = ''
  const say = (more: string) => {
    text += more
  }
  LmdbStore.open = (...given) => {
    const database = open.apply(LmdbStore, given)
    opened.push(database)
    return database
  }
  process.stderr.write = (more: string | Uint8Array) => {
    say(String(more))
    return true
  }
  const exited = new Promise<undefined>(resolve => {
    process.exit = (() => resolve(undefined)) as typeof exit
  })
  return {
    say,
    text: () => text,
    exited,
    async leave() {
      await Promise.all(opened.map(database => database.close()))
      LmdbStore.open = open
      process.exit = exit
      process.stderr.write = write
      for (const listener of process.listeners('unhandledRejection'))
        if (!listeners.includes(listener)) process.off('unhandledRejection', listener)
    },
  }
}
