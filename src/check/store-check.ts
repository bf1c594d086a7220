/** The check of a store, in the caller's process. */

import { SignalError } from '../errors.ts'
import { parseVerifierKey } from '../log/note.ts'
import { parseVrfSecret, vrfInput, vrfPublicKey } from '../log/vrf.ts'
import { createFastVrf, type FastVrf } from '../log/vrf-fast.ts'
import { LmdbStore } from '../store/engine/lmdb-store.ts'
import { walkPages } from '../store/engine/page-walk.ts'
import { storeFile } from '../store/engine/store-files.ts'
import type { CheckRequest, StoreReport } from './check-process.ts'
import { refusalOfStore } from './log/head-check.ts'
import { checkLog, type LogCheckOptions } from './log/log-check.ts'
import { RawLog } from './log/raw-log.ts'
import { checkRows } from './rows/row-check.ts'

/** A damaged or truncated file may kill the process: check an unknown store by `checkInProcess`. */
export async function checkStore(
  { dataFolder, vkey, vrf, withRows = false }: CheckRequest,
  onProgress: (done: number) => void = () => {},
): Promise<StoreReport> {
  const fastVrf = vrf === undefined ? undefined : await fastVrfOf(parseVrfSecret(vrf.secret))
  const database = LmdbStore.openReadOnly(dataFolder)
  // Keeps a server from reusing this moment's pages during the check.
  const moment = database.snapshot()
  walkPages(storeFile(dataFolder))
  moment.end()
  const raw = new RawLog(database)
  const options: LogCheckOptions = {
    known: {
      ...(vkey === undefined ? {} : { verifier: parseVerifierKey(vkey) }),
      ...(fastVrf === undefined ? {} : { vrfPublicKey: Buffer.from(fastVrf.publicKey).toString('base64') }),
    },
    ...(fastVrf === undefined || vrf === undefined
      ? {}
      : {
          vrf: {
            hash: (userId, deviceId) => fastVrf.hash(vrfInput(userId, deviceId)),
            sampleMax: vrf.sampleMax,
            random: Math.random,
          },
        }),
    onProgress,
  }
  try {
    // Each of its rows would count as damaged.
    const refusal = refusalOfStore(raw)
    if (refusal !== undefined) throw new SignalError('STORE_UNAVAILABLE', refusal)
    const log = await checkLog(raw, options)
    return { log, rows: withRows ? checkRows(database, { onProgress }) : undefined }
  } finally {
    raw.end()
    await database.close()
  }
}

function fastVrfOf(secret: Uint8Array): Promise<FastVrf> {
  return createFastVrf({ secret, publicKey: vrfPublicKey(secret) })
}
