/**
 * How PostgreSQL keeps a change that it has acknowledged, as far as it shows that. A provider whose storage keeps other
 * copies, below PostgreSQL, shows nothing: its operator has to say so.
 */

import type { Connection, Statement } from './connection.ts'
import { READ_ONLY_ADVICE } from './failure.ts'

export interface Durability {
  readonly hasFsync: boolean
  readonly hasFullPageWrites: boolean
  /** Whether a commit waits for a standby: `synchronous_standby_names` is set. */
  readonly waitsForStandby: boolean
  /** Synchronous standbys that are connected. Undefined where this role may not see them. */
  readonly standbys: number | undefined
  /** `default_transaction_read_only`. */
  readonly isReadOnly: boolean
}

/** Where changes are kept: at synchronous standbys, in the provider's storage, or on PostgreSQL's own disk alone. */
export type KeptBy = 'standbys' | 'storage' | 'disk'

export type DurabilityFault =
  | 'fsync-off'
  | 'full-page-writes-off'
  | 'standby-not-awaited'
  | 'standby-missing'
  | 'standby-hidden'
  | 'read-only'

/** Throws `STORE_UNAVAILABLE`. */
export async function readDurability(connection: Connection): Promise<Durability> {
  const [row] = await connection.run<Durability & { readonly standbys: number | null }>(READ)
  return { ...row!, standbys: row!.standbys ?? undefined }
}

/** Faults that would lose or hold back changes, the worst first. */
export function durabilityFaults(durability: Durability, keptBy: KeptBy): DurabilityFault[] {
  const { hasFsync, hasFullPageWrites, waitsForStandby, standbys, isReadOnly } = durability
  const faults: DurabilityFault[] = []
  if (keptBy === 'standbys') {
    if (!hasFsync) faults.push('fsync-off')
    if (!hasFullPageWrites) faults.push('full-page-writes-off')
    if (!waitsForStandby) faults.push('standby-not-awaited')
    else if (standbys === undefined) faults.push('standby-hidden')
    else if (standbys === 0) faults.push('standby-missing')
  }
  if (isReadOnly) faults.push('read-only')
  return faults
}

/** After these nothing that was acknowledged could be relied on. */
export const UNUSABLE_FAULTS: ReadonlySet<DurabilityFault> = new Set(['fsync-off', 'full-page-writes-off'])

const OTHERWISE =
  "or set CALLSIGN_DATABASE_KEPT_BY: storage where the provider's storage keeps other copies, disk where changes may be lost with PostgreSQL's machine"

/** A sentence for each, with a remedy. */
export const DURABILITY_ADVICE: Readonly<Record<DurabilityFault, string>> = {
  'fsync-off': `fsync is off: a crash of PostgreSQL's machine loses acknowledged changes, or damages all; set it on, ${OTHERWISE}`,
  'full-page-writes-off': `full_page_writes is off: a crash of PostgreSQL's machine may damage all; set it on, ${OTHERWISE}`,
  'standby-not-awaited': `synchronous_standby_names is empty: a fail-over loses changes that were acknowledged; give PostgreSQL a synchronous standby, ${OTHERWISE}`,
  'standby-missing':
    'no synchronous standby is connected: every change waits until one is, and is lost if this server fails; start a standby',
  'standby-hidden': "this role may not see PostgreSQL's standbys: grant it pg_monitor",
  'read-only': `default_transaction_read_only is on, and no change is taken: ${READ_ONLY_ADVICE}`,
}

const READ: Statement = {
  text: `
    select
      current_setting('fsync')::boolean as "hasFsync",
      current_setting('full_page_writes')::boolean as "hasFullPageWrites",
      current_setting('synchronous_standby_names') <> '' as "waitsForStandby",
      current_setting('default_transaction_read_only')::boolean as "isReadOnly",
      case when pg_has_role('pg_read_all_stats', 'usage') then (
        select count(*)::integer from pg_stat_replication
        where state = 'streaming' and sync_state in ('sync', 'quorum')
      ) end as standbys`,
}
