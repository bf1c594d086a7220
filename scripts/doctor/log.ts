/** The log: its keys belong together, the store is of these keys, and the head file is not ahead of it. */

import { fork } from 'node:child_process'
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { readRestoreMarker } from '../../src/keyserver/restore-marker.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from '../../src/log/note.ts'
import { parseVrfSecret, vrfPublicKey } from '../../src/log/vrf.ts'
import { DEVELOPMENT_KEYS_FILE, developmentKeysFault } from '../../src/server/development/development-keys.ts'
import type { LogKeys } from '../../src/server/settings/config.ts'
import { refusalOfForm } from '../../src/store/engine/store-form.ts'
import { type Check, type Finding, fails, off, ok, type Patient, reasonOf } from './finding.ts'
import { judgeFolder } from './folder.ts'
import { type IndexSigners, judgeIndex } from './log-index.ts'
import type { StoreAnswer } from './store-program.ts'

interface Keys {
  readonly signer: SignerKey
  readonly vkey: string
  readonly vrfPublicKey: string
  readonly index: IndexSigners
}

export const checkLog: Check = async patient => {
  const { config } = patient
  const fault = judgeFolder(config.dataFolder)
  const given = config.log.keys ?? keysOfDevelopment(config.dataFolder)
  if (given === undefined) return [fault ?? judgeNoKeys(config.dataFolder)]
  const keys = readKeys(given)
  if (!('signer' in keys)) return [keys]
  // Read before the store: beside a running server a later read is further on, and the file must not be.
  const { headFile } = config.log
  const headNote = readHeadFile(headFile)
  const indexHeadNote = readHeadFile(headFile && headFile + INDEX_LOG.headFileSuffix)
  const store: StoreAnswer | undefined =
    fault === undefined ? await readStore(config.dataFolder) : { kind: 'failed', reason: fault.detail }
  return [
    judgeKeys(patient, keys),
    fault ?? judgeStore(config, store, keys, headNote),
    judgeHeadFile(patient, headNote, store, keys),
    judgeIndexIn(config, store, keys, indexHeadNote),
  ]
}

function judgeIndexIn(
  config: Patient['config'],
  store: StoreAnswer | undefined,
  keys: Keys,
  headNote: string | undefined,
): Finding {
  if (store?.kind === 'failed') return off('index', 'not known: ask again once the store can be read')
  const { index, head } = store ?? {}
  return judgeIndex(config, keys.signer.name, keys.index, { index, treeSize: head?.treeSize ?? 0, headNote })
}

function judgeNoKeys(dataFolder: string): Finding {
  const path = join(dataFolder, DEVELOPMENT_KEYS_FILE)
  if (existsSync(path))
    return fails('keys', `${path} can't be read: run the doctor as the server's user, or chown it`)
  const fault = developmentKeysFault(dataFolder)
  return fault === undefined
    ? off('keys', 'a development server makes them at its first start')
    : fails('keys', fault)
}

/** The keys of the settings; undefined where there are none. */
export function publicKeysOf({ config }: Pick<Patient, 'config'>): Pick<Keys, 'vkey' | 'index'> | undefined {
  const given = config.log.keys ?? keysOfDevelopment(config.dataFolder)
  const keys = given && readKeys(given)
  return keys !== undefined && 'vkey' in keys ? keys : undefined
}

function keysOfDevelopment(dataFolder: string): LogKeys | undefined {
  const path = join(dataFolder, DEVELOPMENT_KEYS_FILE)
  const text = attempt(() => readFileSync(path, 'utf8'))
  if (text === undefined) return undefined
  const names = parseEnv(text)
  const { CALLSIGN_ORIGIN = '', KT_PRIVATE_KEY = '', VRF_PRIVATE_KEY = '', CALLSIGN_SECRET = '' } = names
  const { KT_INDEX_PRIVATE_KEY } = names
  return {
    origin: CALLSIGN_ORIGIN,
    ktPrivateKey: KT_PRIVATE_KEY,
    vrfPrivateKey: VRF_PRIVATE_KEY,
    secret: CALLSIGN_SECRET,
    ...(KT_INDEX_PRIVATE_KEY && { ktIndexPrivateKey: KT_INDEX_PRIVATE_KEY }),
  }
}

function readKeys(keys: LogKeys): Keys | Finding {
  const { origin, ktPrivateKey, vrfPrivateKey, ktIndexPrivateKey, secondKtIndexPrivateKey } = keys
  const signer = attempt(() => parseSignerKey(ktPrivateKey))
  const vrfSecret = attempt(() => parseVrfSecret(vrfPrivateKey))
  if (signer === undefined) return fails('keys', 'KT_PRIVATE_KEY is not a key that keygen makes')
  if (vrfSecret === undefined) return fails('keys', 'VRF_PRIVATE_KEY is not a key that keygen makes')
  if (signer.name !== origin) {
    return fails(
      'keys',
      `KT_PRIVATE_KEY is of ${signer.name}, CALLSIGN_ORIGIN is ${origin}: both come from one keygen`,
    )
  }
  const index = [ktIndexPrivateKey, secondKtIndexPrivateKey]
    .filter(text => text !== undefined)
    .map(text => attempt(() => parseSignerKey(text)))
  if (index.includes(undefined)) return fails('keys', 'KT_INDEX_PRIVATE_KEY is not a key that keygen makes')
  const publicKey = Buffer.from(vrfPublicKey(vrfSecret)).toString('base64')
  return {
    signer,
    vkey: formatVerifierKey(signer),
    vrfPublicKey: publicKey,
    index: index.filter(key => key !== undefined),
  }
}

function judgeKeys({ config }: Patient, { vkey, vrfPublicKey: vrfKey, index }: Keys): Finding {
  const { ktPublicKey = vkey, vrfPublicKey = vrfKey, ktIndexPublicKey } = config.log.publicKeys
  const indexKey = index[0] && formatVerifierKey(index[0])
  if (ktPublicKey !== vkey) {
    return fails(
      'keys',
      `KT_PUBLIC_KEY is not the public half of KT_PRIVATE_KEY, which is ${vkey}: clients need that one`,
    )
  }
  if (vrfPublicKey !== vrfKey) {
    return fails(
      'keys',
      `VRF_PUBLIC_KEY is not the public half of VRF_PRIVATE_KEY, which is ${vrfKey}: clients need that one`,
    )
  }
  if (ktIndexPublicKey !== undefined && ktIndexPublicKey !== indexKey) {
    return fails(
      'keys',
      indexKey === undefined
        ? 'KT_INDEX_PUBLIC_KEY is set, and KT_INDEX_PRIVATE_KEY is not: clients with that key refuse answers without an index'
        : `KT_INDEX_PUBLIC_KEY is not the public half of KT_INDEX_PRIVATE_KEY, which is ${indexKey}: clients need that one`,
    )
  }
  return ok('keys', `${vkey}, VRF ${vrfKey}`)
}

function judgeStore(
  { dataFolder, log: { isFrozen } }: Patient['config'],
  store: StoreAnswer | undefined,
  keys: Keys,
  headNote: string | undefined,
): Finding {
  const marker = readRestoreMarker(dataFolder)
  if (store === undefined && marker !== undefined)
    return fails('store', `the restore into ${dataFolder} did not finish: empty it and restore again`)
  if (store === undefined) return ok('store', `${dataFolder} will be made at the first start`)
  if (store.kind === 'failed') return fails('store', `${dataFolder}: ${store.reason}`)
  const { maker, head } = store
  if (maker === undefined || head === undefined) return ok('store', `${dataFolder} holds no log yet`)
  const refusal = refusalOfForm(maker.storeForm, `the store in ${dataFolder}`)
  if (refusal !== undefined) return fails('store', refusal)
  if (maker.vkey !== keys.vkey || maker.vrfPublicKey !== keys.vrfPublicKey) {
    return fails(
      'store',
      `${dataFolder} was made with ${maker.vkey} and VRF ${maker.vrfPublicKey}: the settings have other keys`,
    )
  }
  // As on the server: the head file answers, and a frozen log is not asked.
  if (marker !== undefined && headNote === undefined && !isFrozen) {
    return fails(
      'store',
      `${dataFolder} was restored from ${marker.backup}: start once with --known-checkpoint FILE, the newest that anybody has seen`,
    )
  }
  return ok('store', `${dataFolder} holds ${keys.signer.name} with ${head.treeSize} entries`)
}

function readHeadFile(path: string | undefined): string | undefined {
  return path === undefined ? undefined : attempt(() => readFileSync(path, 'utf8'))
}

function judgeHeadFile(
  { config }: Patient,
  note: string | undefined,
  store: StoreAnswer | undefined,
  { signer }: Keys,
): Finding {
  const { headFile } = config.log
  if (headFile === undefined) {
    return off(
      'head file',
      'set CALLSIGN_LOG_HEAD_FILE, on another disk than the data, to notice a roll-back',
    )
  }
  const folder = dirname(headFile)
  if (!existsSync(folder) || !canWrite(folder))
    return fails('head file', `${folder} is not there or not writable: make it for the server's user`)
  if (note === undefined && !existsSync(headFile))
    return ok('head file', `${headFile} will be made at the first start`)
  const checkpoint = note === undefined ? undefined : attempt(() => openCheckpoint(note, signer))
  if (checkpoint === undefined)
    return fails(
      'head file',
      `${headFile} is not a checkpoint of ${signer.name}: put this log's own file there, or set the KT_PRIVATE_KEY that signed it`,
    )
  if (store?.kind === 'failed')
    return off(
      'head file',
      `${headFile} is at ${checkpoint.treeSize} entries; ask again once the store can be read`,
    )
  const stored = store?.head?.treeSize ?? 0
  if (checkpoint.treeSize > stored) {
    return fails(
      'head file',
      `${headFile} has signed ${checkpoint.treeSize} entries, the store holds ${stored}: it is an older copy; put the newest one there`,
    )
  }
  return ok('head file', `${headFile} is at ${checkpoint.treeSize} entries`)
}

/** Undefined where there is no store. */
function readStore(dataFolder: string): Promise<StoreAnswer | undefined> {
  const file = join(dataFolder, 'store', 'data.mdb')
  if (!existsSync(file)) return Promise.resolve(undefined)
  const { uid } = statSync(file)
  // LMDB may make its lock file anew, and the server could not open one that is of root.
  if (process.getuid?.() === 0 && uid !== 0) {
    return Promise.resolve({
      kind: 'failed',
      reason: `it belongs to user ${uid}: run the doctor as that one`,
    })
  }
  const child = fork(fileURLToPath(new URL('./store-program.js', import.meta.url)), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  })
  child.send(dataFolder)
  return new Promise(resolve => {
    child.once('message', (answer: StoreAnswer) => resolve(answer))
    child.once('error', error => resolve({ kind: 'failed', reason: reasonOf(error) }))
    child.once('close', (code, signal) =>
      resolve({
        kind: 'failed',
        reason: `reading it ended the process that did it (${signal ?? code}): ${MEND}`,
      }),
    )
  })
}

function canWrite(path: string): boolean {
  return attempt(() => accessSync(path, constants.W_OK | constants.X_OK) ?? true) ?? false
}

function attempt<Result>(act: () => Result): Result | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

const MEND = 'look with fsck, and restore a backup'
