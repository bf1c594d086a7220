/**
 * Program: the server in production mode with its own settings and start, but without request rates, since one address
 * makes all the load. With `--test-topics` it knows topics of any name, as in development, but without what development shows
 * on its console. No setting of the product allows either.
 */

import '../../src/server/process/v8-flags.ts'
import { createLogger } from '../../src/operations/log.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { start } from '../../src/server/start.ts'

const { rateLimits: _, ...config } = readConfig(process.env, { dev: false })
const logger = createLogger(config.logLevel)
const hasTestTopics = process.argv.includes('--test-topics')
const server = await start(
  { ...config, hasTestTopics },
  {
    logger,
    say: text => void process.stderr.write(text),
    knownCheckpoint: undefined,
    onReset: () => undefined,
  },
)
process.once('SIGTERM', async () => {
  await server.stop('SIGTERM')
  process.exit(0)
})
server.announce()
