/** A node's start as the writer. Each part says how it ends with the tenure. */

import { SignalError } from '../../errors.ts'
import type { ShownHeads } from '../../keyserver/shown-heads.ts'
import { observe } from '../../operations/figures.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { LeasedStore } from '../../store/engine/leased-store.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { Newcomers } from '../../transport/newcomers.ts'
import { FrontDesks } from '../fronts/front-desks.ts'
import { publicRoutes } from '../listeners.ts'
import { openCopiedLog } from '../open-log.ts'
import type { Tenure } from '../process/tenure.ts'
import type { Recording } from '../writer/appender.ts'
import type { KnownIndex } from '../writer/indexing.ts'
import { startWriter } from '../writer/writer.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { WritingNode } from './node-role.ts'

/** Parts that the node has in every role, and the lease. */
interface WritingParts {
  readonly lease: LeaseKeeper
  readonly database: LmdbStore
  readonly shownHeads: ShownHeads
  readonly knownCheckpoint: string | undefined
  readonly index: KnownIndex
  /** The head in the ledger. */
  readonly recordedHead: string | undefined
  readonly system: ActorSystem
  readonly publicUrl: () => string
  readonly onPublished: () => void
}

/** Witnesses see a head before it is shown, and the store keeps which one is. */
function recordingOf(hasWitnesses: boolean, shownHeads: ShownHeads, lease: LeaseKeeper): Recording {
  if (!hasWitnesses) return { record: head => shownHeads.record(head), show: head => lease.recordHead(head) }
  return {
    async record(head) {
      await shownHeads.record(head)
      await lease.recordHead(head)
    },
  }
}

/** Throws as `startWriter`; then the tenure has to end. */
export async function startWriting(tenure: Tenure, parts: WritingParts): Promise<WritingNode> {
  const { lease, shownHeads, system, publicUrl } = parts
  const { context } = tenure
  const store = new LeasedStore(parts.database, lease)
  tenure.onEnd(() => store.end())
  const log = await openCopiedLog(context, store, parts)
  tenure.onEnd(() => log.vrf.close())
  tenure.onEnd(() => system.dropAll(new SignalError('OUTCOME_UNKNOWN', 'this node is no longer the writer')))
  log.published.subscribe(parts.onPublished)
  const writer = await startWriter(context, system, log, {
    publicUrl,
    newcomers: new Newcomers(),
    index: parts.index,
    recording: recordingOf(context.config.log.witnesses !== undefined, shownHeads, lease),
  })
  tenure.onEnd(() => writer.stops.services?.())
  observe(context.metrics, system, log.vrf)
  const { application } = writer
  const routes = [...publicRoutes(context, log, application, publicUrl), ...application.serverRoutes]
  const leaseLastsMs = () => lease.lastsUntilMs - context.world.monotonicMs()
  const desks = new FrontDesks({ context, system, writer, routes, leaseLastsMs })
  tenure.onEnd(() => desks.close())
  return { kind: 'writing node', lease, tenure, writer, desks }
}
