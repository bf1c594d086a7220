/** An intruder's means on a data directory while no server runs on it. */

import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { TreeTail } from '../../src/log/integrate.ts'
import { parseSignerKey } from '../../src/log/note.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../src/store/engine/store.ts'

/** Opens the store for one change. */
export async function changeStore(dataFolder: string, write: (change: Change) => void): Promise<void> {
  const database = LmdbStore.open(dataFolder)
  await database.change(write)
  await database.close()
}

/** SHA-256 of everything that LMDB keeps in the store. */
export function storeDigest(dataFolder: string): string {
  return createHash('sha256')
    .update(readFileSync(join(dataFolder, 'store', 'data.mdb')))
    .digest('hex')
}

/** Grows a development log to `treeSize` with keys of made-up users, signed as the server would. */
export async function growLog(dataFolder: string, treeSize: number): Promise<void> {
  const signer = parseSignerKey(developmentKeys(dataFolder).keys.ktPrivateKey)
  const database = LmdbStore.open(dataFolder)
  const store = new LogStore(database)
  const tail = new TreeTail(store.openTail(store.head()!.treeSize))
  while (tail.treeSize < treeSize) {
    const firstIndex = tail.treeSize
    const count = Math.min(BATCH_ENTRIES, treeSize - firstIndex)
    const entries = Array.from({ length: count }, (_, at) => ({
      vrfHash: randomBytes(64),
      userId: BigInt(firstIndex + at),
      deviceId: NOBODYS_DEVICE,
      previousIndex: undefined,
      earlierKeys: 0,
    }))
    const texts = entries.map(({ vrfHash }) => formatEntry(vrfHash, randomBytes(32).toString('base64')))
    const integration = tail.integrate(texts)
    const checkpoint = signCheckpoint(integration, signer)
    await store.append({ firstIndex, entries, integration, checkpoint })
  }
  await database.close()
}

const BATCH_ENTRIES = 2_048
const NOBODYS_DEVICE = 2n ** 64n - 2n
