/** A node's start: opens the ledger and a copy of it, then serves. */

import { messageOf } from '../../errors.ts'
import { IndexStore } from '../../keyserver/index/index-store.ts'
import { INDEX_LOG } from '../../keyserver/kept-log.ts'
import { readRestoreMarker, removeRestoreMarker } from '../../keyserver/restore-marker.ts'
import { ShownHeads } from '../../keyserver/shown-heads.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { PostgresLedger } from '../../store/postgres/ledger.ts'
import { readKeys } from '../open-log.ts'
import type { Process } from '../process/process.ts'
import type { StartDeps } from '../process/running-server.ts'
import { VERSION } from '../process/version.ts'
import type { NodeConfig } from '../settings/node-settings.ts'
import type { KnownIndex } from '../writer/indexing.ts'
import { openFilledCopy } from './copy-follower.ts'
import { watchDatabase } from './database-watch.ts'
import { Node, unusable } from './node.ts'

/** Resolves when the node serves, as the writer or beside it. Throws as `start`. */
export async function startNode(
  context: Process,
  node: NodeConfig,
  { say, knownCheckpoint, knownIndexCheckpoint }: StartDeps,
): Promise<Node> {
  const { world, logger } = context
  const ledger = await PostgresLedger.open({
    url: node.databaseUrl,
    node: { name: node.name, address: addressOf(node), version: VERSION },
    monotonicMs: world.monotonicMs,
    random: world.random,
    onFailure: error => logger.warn({ event: 'record-not-written', err: error }),
  })
  const { state } = await ledger.writer()
  if (state !== 'open') {
    await ledger.close()
    throw unusable(state)
  }
  await watchDatabase(context, ledger, node)
  const { dataFolder, log } = context.config
  const { signer, indexSigner } = readKeys(context.config)
  const shownHeads = ShownHeads.open(dataFolder, log.headFile, signer)
  const indexHeads = indexSigner && ShownHeads.open(dataFolder, log.headFile, indexSigner, INDEX_LOG)
  const database = await openFilledCopy(context, ledger, shownHeads)
  // The rows are the ledger's now, whichever backup the directory came from.
  if (readRestoreMarker(dataFolder, INDEX_LOG) !== undefined) await removeRestoreMarker(dataFolder, INDEX_LOG)
  if (indexHeads !== undefined) await recordIndexHead(context, database, indexHeads)
  const index: KnownIndex = {
    ...(indexHeads && { shownHeads: indexHeads }),
    knownCheckpoint: knownIndexCheckpoint,
  }
  const running = new Node(context, node, { ledger, database, shownHeads, knownCheckpoint, index })
  await running.listen(say)
  await running.serve()
  return running
}

/** The node shows the copy's index from its start on. One that does not go on is held by whichever node writes. */
async function recordIndexHead({ logger }: Process, database: LmdbStore, heads: ShownHeads): Promise<void> {
  const store = new IndexStore(database)
  try {
    heads.assertExtendedBy(store)
    const head = store.head()
    if (head !== undefined) await heads.record(head)
  } catch (error) {
    logger.error({ event: 'index-head-not-recorded', reason: messageOf(error) })
  }
}

function addressOf({ host, port }: NodeConfig): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
