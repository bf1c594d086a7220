/** How well PostgreSQL keeps changes, as it stands: looked at as the node starts, then every few seconds, and shown. */

import { observeDatabase } from '../../operations/figures.ts'
import type { Logger } from '../../operations/log.ts'
import type { Metrics } from '../../operations/metrics.ts'
import type { World } from '../../runtime/clock.ts'
import {
  DURABILITY_ADVICE,
  type Durability,
  type DurabilityFault,
  durabilityFaults,
  UNUSABLE_FAULTS,
} from '../../store/postgres/durability.ts'
import type { PostgresLedger } from '../../store/postgres/ledger.ts'
import { ConfigError } from '../settings/config.ts'
import type { NodeConfig } from '../settings/node-settings.ts'

interface Watching {
  readonly world: Pick<World, 'every'>
  readonly logger: Pick<Logger, 'warn'>
  readonly metrics: Metrics
}

/** Throws `ConfigError` for a database that can't be relied on; `STORE_UNAVAILABLE`. */
export async function watchDatabase(
  { world, logger, metrics }: Watching,
  ledger: Pick<PostgresLedger, 'durability'>,
  { databaseKeptBy }: Pick<NodeConfig, 'databaseKeptBy'>,
): Promise<void> {
  let durability: Durability | undefined
  let known: readonly DurabilityFault[] = []
  const look = async () => {
    durability = await ledger.durability()
    const faults = durabilityFaults(durability, databaseKeptBy)
    for (const fault of faults) {
      if (!known.includes(fault)) logger.warn({ event: 'database', fault, advice: DURABILITY_ADVICE[fault] })
    }
    known = faults
  }
  await look()
  const unusable = known.filter(fault => UNUSABLE_FAULTS.has(fault))
  if (unusable.length > 0) {
    throw new ConfigError(
      unusable.map(fault => `the database in CALLSIGN_DATABASE_URL: ${DURABILITY_ADVICE[fault]}`),
    )
  }
  observeDatabase(metrics, () => {
    if (durability === undefined || databaseKeptBy === 'standbys') return durability ?? {}
    return { isReadOnly: durability.isReadOnly }
  })
  world.every(LOOK_MS, () => {
    // PostgreSQL is away; the rest of the node says so.
    look().catch(() => {
      durability = undefined
    })
  })
}

const LOOK_MS = 10_000
