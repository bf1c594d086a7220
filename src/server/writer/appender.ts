/** The assembly of the log appender, and of registrations, which it appends. */

import { logAppenderKind } from '../../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../../actors/messages.ts'
import { SignalError } from '../../errors.ts'
import type { FrontLinks } from '../../fronts/front-links.ts'
import { type Alongside, KeyRegistration, type LoggedKeyRequest } from '../../keyserver/registration.ts'
import type { WitnessRounds } from '../../keyserver/witness-rounds.ts'
import { APPEND_DEADLINE_MS } from '../../limits.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { OpenedLog } from '../open-log.ts'
import type { WritingProcess } from '../process/process.ts'

/** Where checkpoints are recorded outside the store. */
export interface Recording {
  /** See `LogAppenderDeps`. */
  readonly record?: (head: LogHead) => Promise<void>
  /** Resolves when the ledger says that the head is shown: a front that can't ask the writer goes by that. */
  readonly show?: (head: LogHead) => Promise<void>
}

export interface AppenderDeps {
  /** They hear of each checkpoint before it is published. */
  readonly fronts: FrontLinks
  readonly recording: Recording
  readonly witnesses: WitnessRounds | undefined
}

/** Resolves when the appender has checked the right edge of the log. */
export async function startAppender(
  context: WritingProcess,
  system: ActorSystem,
  { store, keys, published }: OpenedLog,
  { fronts, recording: { record, show }, witnesses }: AppenderDeps,
): Promise<Ref<LogAppenderMessage>> {
  const { fatal, metrics, logger, devConsole } = context
  const appenderKind = logAppenderKind({
    store,
    signer: keys.signer,
    ...(keys.secondSigner && { secondSigner: keys.secondSigner }),
    publishedSize: () => published.size,
    ...(record && { record }),
    ...(witnesses && { witnesses }),
    async announce(head) {
      await fronts.announce(head)
      await show?.(head)
    },
    publish: head => {
      published.publish(head)
      metrics.batches.inc()
      metrics.treeSize.set(head.treeSize)
      devConsole?.onCheckpoint(head)
      logger.info({ event: 'checkpoint', treeSize: head.treeSize })
    },
    fatal,
  })
  const logAppender = system.define(appenderKind)('log')
  witnesses?.listen({
    onCosigned: head => logAppender.tellControl({ kind: 'cosigned', head }),
    onQuorumLost: () => logAppender.tellControl({ kind: 'quorum-lost' }),
  })
  // The appender checks the log's whole right edge before it answers with the size.
  await logAppender.ask<number>(reply => ({ kind: 'open', reply }), OPEN_DEADLINE_MS)
  return logAppender
}

export function registrationOf(
  context: WritingProcess,
  { vrf }: OpenedLog,
  logAppender: Ref<LogAppenderMessage>,
) {
  const { config, metrics, logger } = context
  const append = async (key: LoggedKeyRequest) => {
    const index = await logAppender
      .ask<number>(reply => ({ kind: 'append', ...key, reply }), APPEND_DEADLINE_MS)
      .catch(error => {
        const isLate = error instanceof SignalError && error.code === 'DEADLINE_EXCEEDED'
        if (!isLate || config.log.witnesses === undefined) throw error
        throw new SignalError('LOG_UNAVAILABLE', 'the log’s witnesses did not answer in time', {
          cause: error,
        })
      })
    metrics.registrations.inc()
    logger.info({ event: 'registered', index })
    return index
  }
  const registration = new KeyRegistration(config.log.isFrozen, vrf, append)
  return (userId: bigint, deviceId: bigint, publicKey: string, alongside?: Alongside) =>
    registration.register({ userId, deviceId, publicKey, alongside })
}

/** Opening a log reads its right edge and the last 65,000 entries: well below a second on any disk. */
const OPEN_DEADLINE_MS = 60_000
