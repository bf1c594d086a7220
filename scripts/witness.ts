#!/usr/bin/env node
/** Cosigns the checkpoints of other operators' logs: `witness --key FILE --logs FILE --data-dir DIR`. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { messageOf, SignalError } from '../src/errors.ts'
import { formatWitnessKey, witnessKeyFromSeed } from '../src/log/cosignature.ts'
import { parseSignerKey, type SignerKey } from '../src/log/note.ts'
import { createLogger } from '../src/operations/log.ts'
import { LmdbStore } from '../src/store/engine/lmdb-store.ts'
import { type Flags, optional, required, runCommand, UsageError } from './support/command.ts'
import { makeKeyFile } from './support/key-file.ts'
import { IndexRebuild, type RebuildProgress } from './witness/index-rebuild.ts'
import { type IndexedLog, parseIndexedLogs, parseLogList, type WitnessedLogs } from './witness/log-list.ts'
import { Witness } from './witness/witness.ts'
import { witnessServer } from './witness/witness-server.ts'

const USAGE = `usage: callsign witness --key FILE --logs FILE --data-dir DIR [--name NAME] [--index]
                        [--host ADDRESS] [--port PORT]

Runs a witness (c2sp.org/tlog-witness): it cosigns each checkpoint of a log that extends all that it cosigned before. Any
log of c2sp.org/tlog-checkpoint will do. Serves POST /add-checkpoint until SIGTERM, over HTTP: put a proxy in front that
ends TLS. Prints a line with the key, as policies have it.

  --key FILE       the witness's own key, PRIVATE+KEY+NAME+...; made with --name where there is no such file
  --name NAME      the name of a new key: the witness's address without scheme, such as witness.example.net
  --logs FILE      the logs to cosign for: a policy (its \`log\` lines count) or a list that begins with \`logs/v0\`
  --index          of a log with an index of which the policy has both lines and an address: rebuild the index from the log's
                   entries, and cosign its checkpoints only where every leaf has the root of the rebuilt map. Without it, or
                   an address, they are cosigned as any log's
  --data-dir DIR   what was cosigned last; with an older copy of it the witness would cosign a fork, so never restore it
  --host ADDRESS   127.0.0.1 unless given
  --port PORT      8085 unless given

Exit code: 0 stopped by a signal, 2 it could not start or go on.
`

async function witness(flags: Flags): Promise<number> {
  const port = portOf(optional(flags, 'port') ?? '8085')
  const { logs, indexed } = readLogs(required(flags, 'logs'), flags.index === true)
  const key = readKey(required(flags, 'key'), optional(flags, 'name'))
  const logger = createLogger('info')
  const broken = new AbortController()
  const store = LmdbStore.open(required(flags, 'data-dir'), {
    onBroken: error => {
      logger.fatal({ event: 'store-broken', err: error })
      broken.abort()
    },
  })
  const stop = new AbortController()
  const onProgress = (progress: RebuildProgress) => logger.info({ event: 'index-rebuilding', ...progress })
  const indexes = new Map(
    indexed.map(each => [each.index.origin, new IndexRebuild(store, each, stop.signal, onProgress)]),
  )
  const server = witnessServer({
    witness: new Witness({ store, key, logs, indexes, nowMs: Date.now }),
    origins: logs.keys(),
    onAnswer: ({ kind, ...answer }) => logger.info({ event: kind, ...('lines' in answer ? {} : answer) }),
    onFault: error => logger.error({ event: 'fault', err: error }),
  })
  server.listen(port, optional(flags, 'host') ?? '127.0.0.1')
  await once(server, 'listening')
  const { address, family, port: bound } = server.address() as AddressInfo
  const http = `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`
  process.stdout.write(`${JSON.stringify({ event: 'ready', http, vkey: formatWitnessKey(key) })}\n`)
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT'), once(broken.signal, 'abort')])
  server.close()
  server.closeAllConnections()
  stop.abort()
  await Promise.all([...indexes.values()].map(index => index.ended))
  await store.close()
  logger.flush()
  return broken.signal.aborted ? 2 : 0
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new UsageError(`--port ${text} is not a port`)
}

function readLogs(
  path: string,
  rebuilds: boolean,
): { readonly logs: WitnessedLogs; readonly indexed: readonly IndexedLog[] } {
  const read = (parse: (text: string) => { logs: WitnessedLogs; indexed: readonly IndexedLog[] }) => {
    try {
      return parse(readFileSync(path, 'utf8'))
    } catch (error) {
      throw new UsageError(`--logs ${path}: ${messageOf(error)}`)
    }
  }
  const found = read(text => ({ logs: parseLogList(text), indexed: rebuilds ? parseIndexedLogs(text) : [] }))
  if (rebuilds && found.indexed.length === 0)
    throw new UsageError(`--index: ${path} has no log with its index and the address of one of them`)
  return found
}

/** A new key is in its file before anything is cosigned with it; a file that is there is never written to. */
function readKey(path: string, name: string | undefined): SignerKey {
  if (name !== undefined) makeKeyFile(path, name)
  const text = keyText(path)
  try {
    const key = parseSignerKey(text.trim())
    if (name === undefined || name === key.name) return witnessKeyFromSeed(key.name, key.seed)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw new UsageError(`--key ${path}: ${error.message}`)
  }
  throw new UsageError(`--key ${path} is of another name than --name ${name}`)
}

function keyText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UsageError(`--key ${path} can't be read (${messageOf(error)}); --name NAME makes one`)
  }
}

await runCommand({
  name: 'witness',
  usage: USAGE,
  flags: {
    key: 'value',
    name: 'value',
    logs: 'value',
    'data-dir': 'value',
    index: 'alone',
    host: 'value',
    port: 'value',
  },
  run: witness,
})
