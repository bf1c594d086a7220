/**
 * The parts that only the writer has: the log appender, the rooms, the outbox, and everything else that changes the
 * store.
 */

import { FrontLinks } from '../../fronts/front-links.ts'
import { observeFrontLinks } from '../../operations/figures.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { Register } from '../../transport/grpc.ts'
import type { Newcomers } from '../../transport/newcomers.ts'
import type { OpenedLog } from '../open-log.ts'
import type { WritingProcess } from '../process/process.ts'
import type { Stops } from '../process/stages.ts'
import { startWitnessing } from '../witnessing.ts'
import { type Recording, registrationOf, startAppender } from './appender.ts'
import { type StartedApplication, startApplication } from './application.ts'
import { type KnownIndex, startIndexing } from './indexing.ts'

export interface Writer {
  readonly log: OpenedLog
  readonly application: StartedApplication
  /** The fronts that show this process's changes. */
  readonly fronts: FrontLinks
  /** Registers a key; resolves when every front shows it. */
  readonly register: Register
  readonly stops: Stops
}

export interface WriterDeps {
  readonly publicUrl: () => string
  readonly newcomers: Newcomers
  readonly recording: Recording
  readonly index: KnownIndex
}

/** Starts every part that changes the store: this process is then the writer. */
export async function startWriter(
  context: WritingProcess,
  system: ActorSystem,
  log: OpenedLog,
  { publicUrl, newcomers, recording, index }: WriterDeps,
): Promise<Writer> {
  const fronts = new FrontLinks(log.published, context.world)
  observeFrontLinks(context.metrics, () => fronts.figures())
  const witnesses = await startWitnessing(context, log, fronts, recording.record)
  const appender = await startAppender(context, system, log, { fronts, recording, witnesses })
  const indexing = startIndexing(context, log, index)
  const register = registrationOf(context, log, appender)
  const application = await startApplication(context, log, system, { publicUrl, register, newcomers })
  await log.guard.confirm()
  await log.vrf.ready
  return {
    log,
    application,
    fronts,
    async register(...key) {
      const registration = await register(...key)
      await fronts.caughtUp()
      return registration
    },
    stops: {
      inboxes: () => application.stores.deviceInbox.settleNow(),
      async services() {
        witnesses?.close()
        await Promise.all([application.close(), log.vrf.close(), indexing?.close()])
      },
    },
  }
}
