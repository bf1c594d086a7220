/**
 * Opens the store and the log in it: reads the keys, checks that the log is ours to go on with, or makes a new one.
 * Joins parts of `store` and `log`; `main.ts` starts what works on them.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError } from './config.ts'
import { SignalError } from './errors.ts'
import { VRF_JOBS_WAITING_MAX } from './limits.ts'
import { signCheckpoint } from './log/checkpoint.ts'
import { EMPTY_ROOT } from './log/hash.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from './log/note.ts'
import { parseVrfSecret } from './log/vrf.ts'
import { VrfPool } from './log/vrf-pool.ts'
import { DEVELOPMENT_KEYS_FILE, developmentKeys } from './operations/development-keys.ts'
import type { Logger } from './operations/log.ts'
import { Database } from './store/database.ts'
import { type LogMaker, LogStore, STORE_FORMAT_VERSION } from './store/log-store.ts'
import { PublishedLog } from './store/published-log.ts'
import { RollBackGuard } from './store/roll-back-guard.ts'

export interface OpenedLog {
  readonly keys: Keys
  readonly maker: LogMaker
  readonly database: Database
  readonly store: LogStore
  readonly published: PublishedLog
  readonly guard: RollBackGuard
  /** Its threads may still be starting. */
  readonly vrf: VrfPool
}

/** Opens the store and makes a new log with its checkpoint of size 0, or checks that this log is ours to go on with. */
export async function openLog(
  config: Config,
  logger: Logger,
  knownCheckpoint: string | undefined,
): Promise<OpenedLog> {
  const keys = readKeys(config)
  const { dataFolder, log } = config
  const guard = new RollBackGuard({
    dataFolder,
    verifier: keys.signer,
    headFile: log.headFile,
    knownCheckpoint,
  })
  if (log.headFile === undefined && !config.isDevelopment) {
    logger.warn({ event: 'log-head-file-unset', advice: 'set CALLSIGN_LOG_HEAD_FILE to notice a roll-back' })
  }
  const vrf = new VrfPool({
    secret: keys.vrfSecret,
    threads: log.vrfThreads,
    cacheEntriesMax: log.vrfCacheEntriesMax,
    queueMax: VRF_JOBS_WAITING_MAX,
  })
  const database = Database.open(dataFolder)
  const store = new LogStore(database)
  const maker = {
    formatVersion: STORE_FORMAT_VERSION,
    vkey: formatVerifierKey(keys.signer),
    vrfPublicKey: Buffer.from(vrf.publicKey).toString('base64'),
  }
  const made = store.maker()
  if (made !== undefined) assertMaker(made, maker)
  else if (store.head() !== undefined) {
    throw new SignalError('CHECKPOINT_INVALID', 'the store holds a log without the record of who made it')
  }
  guard.assertExtends(store)
  if (made === undefined) {
    await store.create(maker, signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, keys.signer))
  }
  return { keys, maker, database, store, vrf, guard, published: new PublishedLog(store, keys.signer) }
}

function assertMaker(made: LogMaker, maker: LogMaker): void {
  for (const name of ['formatVersion', 'vkey', 'vrfPublicKey'] as const) {
    if (made[name] === maker[name]) continue
    throw new ConfigError([`the data directory was made with ${name} ${made[name]}, not ${maker[name]}`])
  }
}

export interface Keys {
  readonly signer: SignerKey
  readonly vrfSecret: Uint8Array
  /** Of the application, at least 32 bytes. */
  readonly secret: Uint8Array
  readonly areNew: boolean
}

function readKeys(config: Config): Keys {
  const keysFile = join(config.dataFolder, DEVELOPMENT_KEYS_FILE)
  // New keys would only be refused, by a log that was made with others.
  if (
    config.log.keys === undefined &&
    existsSync(join(config.dataFolder, 'store')) &&
    !existsSync(keysFile)
  ) {
    throw new ConfigError([`${keysFile} is missing: put back the keys that this log was made with`])
  }
  const { keys, areNew } =
    config.log.keys === undefined
      ? developmentKeys(config.dataFolder)
      : { keys: config.log.keys, areNew: false }
  const signer = parseKey('KT_PRIVATE_KEY', () => parseSignerKey(keys.ktPrivateKey))
  const vrfSecret = parseKey('VRF_PRIVATE_KEY', () => parseVrfSecret(keys.vrfPrivateKey))
  if (signer.name !== keys.origin) {
    throw new ConfigError([`KT_PRIVATE_KEY is of ${signer.name}, CALLSIGN_ORIGIN is ${keys.origin}`])
  }
  return { signer, vrfSecret, secret: Buffer.from(keys.secret, 'base64'), areNew }
}

function parseKey<Key>(name: string, parse: () => Key): Key {
  try {
    return parse()
  } catch (error) {
    throw new ConfigError([`${name}: ${error instanceof SignalError ? error.message : 'not usable'}`])
  }
}
