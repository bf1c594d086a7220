/** The process of `check-process.ts`: takes one request, answers how far it is and then with a report or a refusal. */

import { messageOf, SignalError } from '../../errors.ts'
import { parseVerifierKey } from '../../log/note.ts'
import { parseVrfSecret, vrfInput, vrfPublicKey } from '../../log/vrf.ts'
import { createFastVrf, type FastVrf } from '../../log/vrf-fast.ts'
import { Database } from '../../store/engine/database.ts'
import { walkPages } from '../../store/engine/page-walk.ts'
import { storeFile } from '../../store/engine/store-files.ts'
import { checkRows } from '../../store/row-check.ts'
import type { CheckMessage, CheckRequest, StoreReport } from './check-process.ts'
import { refusalOfStore } from './head-check.ts'
import { checkLog, type LogCheckOptions } from './log-check.ts'
import { RawLog } from './raw-log.ts'

process.once('message', (request: CheckRequest) => void answer(request))
process.once('disconnect', () => process.exit())

async function answer(request: CheckRequest): Promise<void> {
  let message: CheckMessage
  try {
    message = { kind: 'report', report: await check(request) }
  } catch (error) {
    message = refusalOf(error)
  }
  process.send!(message, () => process.disconnect())
}

async function check({ dataFolder, vkey, vrf, withRows = false }: CheckRequest): Promise<StoreReport> {
  const fastVrf = vrf === undefined ? undefined : await fastVrfOf(parseVrfSecret(vrf.secret))
  const database = Database.openReadOnly(dataFolder)
  // Keeps a server from using the pages of this moment again while they are walked.
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
    onProgress: tellProgress,
  }
  try {
    // Each of its rows would count as damaged.
    const refusal = refusalOfStore(raw)
    if (refusal !== undefined) throw new SignalError('STORE_UNAVAILABLE', refusal)
    const log = await checkLog(raw, options)
    return { log, rows: withRows ? checkRows(database, { onProgress: tellProgress }) : undefined }
  } finally {
    raw.end()
    await database.close()
  }
}

function tellProgress(done: number): void {
  process.send!({ kind: 'progress', done } satisfies CheckMessage)
}

function fastVrfOf(secret: Uint8Array): Promise<FastVrf> {
  return createFastVrf({ secret, publicKey: vrfPublicKey(secret) })
}

function refusalOf(error: unknown): CheckMessage {
  if (error instanceof SignalError) return { kind: 'refusal', code: error.code, message: error.message }
  const message = messageOf(error)
  // LMDB found that its file is not what it wrote.
  if (message.startsWith('MDB_')) {
    return { kind: 'refusal', code: 'CHECKPOINT_INVALID', message: `the store's file is damaged: ${message}` }
  }
  return { kind: 'refusal', code: 'STORE_UNAVAILABLE', message: `the store can't be read: ${message}` }
}
