/** The keys of a development log: made at the first start and kept beside its data, for the owner's eyes only. */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { DEVELOPMENT_ORIGIN } from '../../log/development-origin.ts'
import { formatKeys, generateKeys } from '../../log/keys.ts'
import type { LogKeys } from '../settings/config.ts'

/** Where the keys are, in the data directory. */
export const DEVELOPMENT_KEYS_FILE = 'development-keys.env'

/** Reports a log that has lost its keys: new keys would only be refused, since the log was made with the old ones. */
export function developmentKeysFault(dataFolder: string): string | undefined {
  const path = join(dataFolder, DEVELOPMENT_KEYS_FILE)
  if (!existsSync(join(dataFolder, 'store')) || existsSync(path)) return undefined
  return `${path} is missing: put back the keys that this log was made with; a log of a server in production never had such a file: start that without --dev, with its own keys`
}

/** Reads the keys in `dataFolder`, or makes them; `areNew` tells which. */
export function developmentKeys(dataFolder: string): { readonly keys: LogKeys; readonly areNew: boolean } {
  const path = join(dataFolder, DEVELOPMENT_KEYS_FILE)
  const areNew = !existsSync(path)
  if (areNew) writeDurably(path, formatKeys(generateKeys(DEVELOPMENT_ORIGIN, randomBytes)), dataFolder)
  const { CALLSIGN_ORIGIN, KT_PRIVATE_KEY, VRF_PRIVATE_KEY, CALLSIGN_SECRET, KT_INDEX_PRIVATE_KEY } =
    parseEnv(readFileSync(path, 'utf8'))
  if (!CALLSIGN_ORIGIN || !KT_PRIVATE_KEY || !VRF_PRIVATE_KEY || !CALLSIGN_SECRET) {
    throw new Error(`${path} does not hold all keys; remove the data directory to start anew`)
  }
  const keys = {
    origin: CALLSIGN_ORIGIN,
    ktPrivateKey: KT_PRIVATE_KEY,
    vrfPrivateKey: VRF_PRIVATE_KEY,
    secret: CALLSIGN_SECRET,
    // A folder of an earlier version has none.
    ...(KT_INDEX_PRIVATE_KEY && { ktIndexPrivateKey: KT_INDEX_PRIVATE_KEY }),
  }
  return { keys, areNew }
}

/** Writes the file whole or not at all: a log with half-written keys could never be opened again. */
function writeDurably(path: string, text: string, folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = openSync(`${path}.draft`, 'w', 0o600)
  writeSync(draft, text)
  fsyncSync(draft)
  closeSync(draft)
  renameSync(`${path}.draft`, path)
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}
