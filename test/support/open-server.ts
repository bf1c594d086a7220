/** Runs the server inside the test's own process, all of it but `main.ts`. */

import { networkInterfaces } from 'node:os'
import pino from 'pino'
import { listeningAsBefore } from '../../src/server/addresses.ts'
import { type Config, readConfig } from '../../src/server/config.ts'
import { chooseLanAddress } from '../../src/server/lan-address.ts'
import type { RunningServer } from '../../src/server/running-server.ts'
import { start } from '../../src/server/start.ts'
import { environmentOf, type OpenOptions, type OpenServer, startServer } from './server.ts'

/**
 * The server inside the test's process, which takes a fifth of the time. For tests of what a server answers; signals,
 * exit codes, limits and kills need `startServer`.
 */
export async function openServer(
  options: OpenOptions & { readonly knownCheckpoint?: string },
): Promise<OpenServer> {
  const { dev = true, knownCheckpoint } = options
  // With fronts it is several processes anyhow, and their log lines are wanted too.
  if (environmentOf(options).CALLSIGN_FRONTS !== '0') {
    const args = knownCheckpoint === undefined ? [] : ['--known-checkpoint', knownCheckpoint]
    return startServer({ ...options, args })
  }
  const lanAddress = chooseLanAddress(networkInterfaces())
  const config = readConfig(environmentOf(options), { dev, lanAddress })
  let text = ''
  const say = (more: string) => {
    text += more
  }
  const logger = pino({ level: config.logLevel, base: null }, { write: say })
  const run = (settings: Config, knownCheckpoint?: string): Promise<RunningServer> =>
    start(settings, { logger, say, knownCheckpoint, onReset: () => void startAnew() })
  let server = run(config, knownCheckpoint)
  async function startAnew(): Promise<void> {
    const { ready, stop } = await server
    server = stop('reset').then(() => run(listeningAsBefore(config, ready)))
  }
  const { ready } = await server
  return { ...ready, stderr: () => text, end: async () => (await server).stop('the test') }
}
