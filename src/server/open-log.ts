/**
 * Opens the store and the log in it: reads the keys, checks that the log is ours to go on with, or makes a new one.
 * Joins parts of `store` and `keyserver`; `start.ts` starts the parts that use them.
 */

import { getSystemErrorName } from 'node:util'
import { checkRows } from '../check/rows/row-check.ts'
import { messageOf, SignalError } from '../errors.ts'
import { IndexReader } from '../keyserver/index/index-reader.ts'
import { type LogMaker, LogStore, MAKER } from '../keyserver/log-store.ts'
import { PublishedLog } from '../keyserver/published-log.ts'
import { RollBackGuard, type RollBackGuardOptions } from '../keyserver/roll-back-guard.ts'
import { VrfPool } from '../keyserver/vrf/vrf-pool.ts'
import { VRF_JOBS_WAITING_MAX } from '../limits.ts'
import { signCheckpoint } from '../log/checkpoint.ts'
import { EMPTY_ROOT } from '../log/hash.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from '../log/note.ts'
import { parseVrfSecret, vrfPublicKey } from '../log/vrf.ts'
import { compactStore } from '../store/engine/compaction.ts'
import { LmdbStore, type StoreOptions } from '../store/engine/lmdb-store.ts'
import { walkPages } from '../store/engine/page-walk.ts'
import type { ReadStore, SharedStore } from '../store/engine/store.ts'
import { refusalOfForm, STORE_FORM } from '../store/engine/store-form.ts'
import { developmentKeys, developmentKeysFault } from './development/development-keys.ts'
import type { Process, WritingProcess } from './process/process.ts'
import { type Config, ConfigError } from './settings/config.ts'

export interface OpenedLog {
  readonly keys: Keys
  readonly maker: LogMaker
  readonly database: SharedStore
  readonly store: LogStore
  readonly published: PublishedLog
  readonly index: IndexReader
  readonly guard: RollBackGuard
  /** Its threads may still be starting. */
  readonly vrf: VrfPool
}

/**
 * Opens the store and makes a new log with its checkpoint of size 0, or checks that this log is ours to go on with.
 * Throws a `ConfigError` also when the data directory can't be read or written.
 */
export function openLog(
  context: Process,
  knownCheckpoint: string | undefined,
): Promise<OpenedLog & { readonly database: LmdbStore }> {
  return mendable(context.config.dataFolder, async () => {
    const keys = readKeys(context.config)
    const guard = guardOf(context, keys, { knownCheckpoint })
    return openLogIn(context, await openOwnDatabase(context), keys, guard)
  })
}

/** Opens the store of a node, which is a copy of the ledger and written without syncs. Throws as `openLog`. */
export function openCopy(context: Process): Promise<LmdbStore> {
  const onLost = () => context.logger.warn({ event: 'copy-removed', reason: MACHINE_STOPPED })
  return mendable(context.config.dataFolder, async () => {
    const database = await openDatabase(context, { hasLedger: true, onLost })
    // The store of a server without nodes stays what it is.
    if (database.copyState !== undefined || !database.hasRows) database.writeUnsynced()
    return database
  })
}

/** Opens the log in the store of a node that has become the writer and has all changes. Throws as `openLog`. */
export function openCopiedLog(
  context: WritingProcess,
  database: SharedStore,
  witnesses: Pick<RollBackGuardOptions, 'knownCheckpoint' | 'recordedHead'>,
): Promise<OpenedLog> {
  return mendable(context.config.dataFolder, () => {
    const keys = readKeys(context.config)
    return openLogIn(context, database, keys, guardOf(context, keys, witnesses))
  })
}

async function mendable<Opened>(dataFolder: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (error) {
    const fault = dataFolderFault(dataFolder, error)
    throw fault === undefined ? error : new ConfigError([fault], { cause: error })
  }
}

function guardOf(
  { config: { dataFolder, log } }: WritingProcess,
  { signer }: Keys,
  witnesses: Pick<RollBackGuardOptions, 'knownCheckpoint' | 'recordedHead'>,
): RollBackGuard {
  const { headFile, isFrozen } = log
  return new RollBackGuard({ dataFolder, verifier: signer, headFile, isFrozen, ...witnesses })
}

/** Throws where the store is a copy: with it this server would go on beside the ledger, which makes two logs of one. */
async function openOwnDatabase(context: Process): Promise<LmdbStore> {
  const database = await openDatabase(context)
  if (database.copyState === undefined) return database
  void database.close()
  throw new ConfigError([
    `CALLSIGN_DATA_DIR ${context.config.dataFolder} has a copy of the ledger that several nodes share, and CALLSIGN_DATABASE_URL is not set: set it, or move the ledger to this machine with \`migrate --to lmdb\` into an empty folder`,
  ])
}

async function openDatabase(
  { config: { dataFolder }, logger, world, fatal, onFault }: Process,
  options: Pick<StoreOptions, 'hasLedger' | 'onLost'> = {},
): Promise<LmdbStore> {
  const onWait = (sentence: string) => logger.warn({ event: 'data-folder-held', advice: sentence })
  await compact(dataFolder, logger, onWait)
  const startedAtMs = performance.now()
  const database = LmdbStore.open(dataFolder, {
    ...options,
    nowMs: world.nowMs,
    onBroken: fatal,
    onFault,
    onWait,
    inspect: path => checkPages(path, startedAtMs, logger),
  })
  if (!database.isClosedToOthers) {
    logger.warn({ event: 'data-folder-open', advice: 'chmod 700 CALLSIGN_DATA_DIR: others can look into it' })
  }
  assertForm(database, dataFolder)
  checkStoredRows(database, startedAtMs, logger)
  return database
}

/** Before the store is opened: no process may have the file open that is replaced. */
async function compact(
  dataFolder: string,
  logger: Process['logger'],
  onWait: (sentence: string) => void,
): Promise<void> {
  const startedAtMs = performance.now()
  const onBegin = (bytes: number) => logger.info({ event: 'store-compacting', bytes })
  const compaction = await compactStore(dataFolder, { onBegin, onWait })
  if (compaction === undefined) return
  const { kind, ...facts } = compaction
  const ms = Math.round(performance.now() - startedAtMs)
  if (kind === 'compacted') logger.info({ event: 'store-compacted', ...facts, ms })
  else logger.warn({ event: 'store-not-compacted', ...facts, ms })
}

/** Throws where another version has made the store, whose rows this one would misread. */
function assertForm(database: LmdbStore, dataFolder: string): void {
  const made = database.view(view => view.get(MAKER, 'maker'))
  const refusal = made && refusalOfForm(made.storeForm, `the store in ${dataFolder}`)
  if (refusal === undefined) return
  void database.close()
  throw new ConfigError([refusal])
}

async function openLogIn<Database extends SharedStore>(
  { config: { log }, onFault }: WritingProcess,
  database: Database,
  keys: Keys,
  guard: RollBackGuard,
): Promise<OpenedLog & { readonly database: Database }> {
  const store = new LogStore(database)
  const maker = makerOf(keys)
  const made = store.maker()
  if (made !== undefined) assertMaker(made, maker, keys.secondSigner)
  else if (store.head() !== undefined) {
    throw new SignalError('CHECKPOINT_INVALID', 'the store holds a log without the record of who made it')
  }
  guard.assertExtends(store)
  if (made === undefined) {
    const { signer, secondSigner } = keys
    await store.create(maker, signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, signer, secondSigner))
  } else if (made.vkey !== maker.vkey) await store.changeMaker(maker)
  // Last: a node that loses its lease before here goes on, without threads that nothing would end.
  const vrf = new VrfPool({
    secret: keys.vrfSecret,
    threads: log.vrfThreads,
    cacheEntriesMax: log.vrfCacheEntriesMax,
    queueMax: VRF_JOBS_WAITING_MAX,
  })
  const published = new PublishedLog(store, keys.signer)
  return {
    keys,
    maker,
    database,
    store,
    vrf,
    guard,
    published,
    index: indexReaderOf(database, keys, onFault),
  }
}

/** The index in the store, of either key while it changes. */
export function indexReaderOf(
  database: ReadStore,
  { indexSigner, secondIndexSigner }: Keys,
  onFault: (error: unknown) => void,
): IndexReader {
  const signers = [indexSigner, secondIndexSigner].filter(signer => signer !== undefined)
  return new IndexReader(database, signers, error => onFault(error))
}

/** Throws where a page is damaged, over which LMDB could end the process. */
function checkPages(path: string, startedAtMs: number, logger: Process['logger']): void {
  const walk = walkPages(path, () => performance.now() - startedAtMs < WALK_MS_MAX)
  logger.info({ event: 'store-walked', ...walk })
}

/** Over a damaged row the server still starts, and refuses only operations that need that row. */
function checkStoredRows(database: LmdbStore, startedAtMs: number, logger: Process['logger']): void {
  const endsAtMs = Math.min(performance.now() + ROWS_MS_MAX, startedAtMs + WALK_MS_MAX)
  const { told, ...rows } = checkRows(database, { mayGoOn: () => performance.now() < endsAtMs })
  for (const fault of told.slice(0, FAULTS_LOGGED_MAX)) logger.error({ event: 'store-row-damaged', ...fault })
  logger.info({ event: 'store-rows-read', ...rows })
}

/** Undefined for a failure of another kind, or of a file elsewhere. */
function dataFolderFault(dataFolder: string, error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const isThere =
    'path' in error ? `${error.path}/`.startsWith(`${dataFolder}/`) : typeof error.code === 'number'
  if (!isThere) return undefined
  // LMDB names no path, and gives the number of the system's error; those below zero are its own.
  const code = Number(error.code) > 0 ? getSystemErrorName(-Number(error.code)) : `${error.code}`
  const advice = FOLDER_ADVICE[code]
  return advice && `CALLSIGN_DATA_DIR ${dataFolder} can't be used (${messageOf(error)}): ${advice}`
}

const MACHINE_STOPPED =
  'the machine stopped while the node ran, so the copy may have holes; it is filled anew from PostgreSQL'
const NO_STORE = 'its store is damaged: look with fsck, and restore a backup'
const NO_FOLDER = 'a file is in the way: name a folder'
const FOLDER_ADVICE: Readonly<Record<string, string>> = {
  EACCES: 'chown it, with all that is in it, to the user that the server runs as',
  EPERM: 'chown it, with all that is in it, to the user that the server runs as',
  EEXIST: NO_FOLDER,
  ENOTDIR: NO_FOLDER,
  EIO: 'the disk may have failed, look with dmesg',
  EROFS: 'it is mounted read-only: name a folder that can be written to',
  ENOSPC: 'make room on its disk',
  EDQUOT: 'make room on its disk',
  // MDB_PAGE_NOTFOUND, MDB_CORRUPTED
  '-30797': NO_STORE,
  '-30796': NO_STORE,
}

/** Throws a `ConfigError` where another log is in the store. A log that was made with the second key is changing its key. */
export function assertMaker(made: LogMaker, maker: LogMaker, second: SignerKey | undefined): void {
  const isChanging = second !== undefined && made.vkey === formatVerifierKey(second)
  for (const name of ['vkey', 'vrfPublicKey'] as const) {
    if (made[name] === maker[name] || (name === 'vkey' && isChanging)) continue
    throw new ConfigError([`the data directory was made with ${name} ${made[name]}, not ${maker[name]}`])
  }
}

export interface Keys {
  readonly signer: SignerKey
  /** Signs, too, while the log changes its key. */
  readonly secondSigner?: SignerKey
  /** Signs the index's output log; absent: there is no index. */
  readonly indexSigner?: SignerKey
  /** Signs it, too, while the index changes its key. */
  readonly secondIndexSigner?: SignerKey
  readonly vrfSecret: Uint8Array
  /** For the application, at least 32 bytes. */
  readonly secret: Uint8Array
  readonly areNew: boolean
}

export function makerOf({ signer, vrfSecret }: Keys): LogMaker {
  return {
    storeForm: STORE_FORM,
    vkey: formatVerifierKey(signer),
    vrfPublicKey: Buffer.from(vrfPublicKey(vrfSecret)).toString('base64'),
  }
}

export function readKeys(config: Config): Keys {
  const fault = config.log.keys === undefined ? developmentKeysFault(config.dataFolder) : undefined
  if (fault !== undefined) throw new ConfigError([fault])
  const { keys, areNew } =
    config.log.keys === undefined
      ? developmentKeys(config.dataFolder)
      : { keys: config.log.keys, areNew: false }
  const signer = parseSignerKey(keys.ktPrivateKey)
  const { secondKtPrivateKey: second, ktIndexPrivateKey: index, secondKtIndexPrivateKey: secondIndex } = keys
  const vrfSecret = parseVrfSecret(keys.vrfPrivateKey)
  return {
    signer,
    ...(second && { secondSigner: parseSignerKey(second) }),
    ...(index && { indexSigner: parseSignerKey(index) }),
    ...(secondIndex && { secondIndexSigner: parseSignerKey(secondIndex) }),
    vrfSecret,
    secret: Buffer.from(keys.secret, 'base64'),
    areNew,
  }
}

/** A start has to be ready in three seconds, and a large store takes longer to walk than that: `fsck` walks all of it. */
const WALK_MS_MAX = 1_000
/** Within that: enough for a few thousand rows, the small tables that a start reads among them. */
const ROWS_MS_MAX = 300
const FAULTS_LOGGED_MAX = 20
