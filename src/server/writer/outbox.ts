/** The assembly of the outbox: an actor for each lane, woken at the start and for new messages. */

import type { OutboxCommand } from '../../../actors/messages.ts'
import { outboxKind } from '../../../actors/outbox.ts'
import { channelOf, LANES } from '../../domain/messages/outbox-message.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { Store } from '../../store/engine/store.ts'
import type { WritingProcess } from '../process/process.ts'
import type { Application } from './writes.ts'

export function startOutbox(
  { metrics, logger, onActorFailure }: WritingProcess,
  system: ActorSystem,
  database: Store,
  { outbox, delivery }: Application,
): void {
  const outboxOf = system.define<OutboxCommand>(
    outboxKind({
      queueOf: lane => outbox.queue(lane),
      send: message => delivery.send(message),
      onTried(lane, outcome) {
        const channel = channelOf(lane)
        metrics.deliveries.inc({ channel, outcome: outcome.kind })
        if (outcome.kind !== 'sent' && outcome.kind !== 'skipped')
          logger.warn({ event: 'not-delivered', channel, ...outcome })
      },
      onNotWritten: error => onActorFailure({ kind: 'outbox', error }),
    }),
  )
  database.subscribe('outbox-news', ({ lane }) => outboxOf(lane).tell({ kind: 'wake' }))
  for (const lane of LANES) outboxOf(lane).tell({ kind: 'wake' })
}
