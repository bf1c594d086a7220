/** The order of changes as the ledger keeps it, read in portions. */

import type { Connection, Statement } from './connection.ts'

/** A place in the order of changes. */
export interface Position {
  /** The last change before it; 0 before the first. */
  readonly number: number
  /** Names the lease that appended this change; 0 before the first. */
  readonly epoch: number
}

export interface LedgerChange extends Position {
  readonly body: Buffer
}

/** The next changes behind `after`, up to `until`: at least one if there is any, more while they fit in `bytesMax`. */
export function readChanges(
  connection: Connection,
  { after, until, bytesMax }: { after: number; until: number; bytesMax: number },
): Promise<LedgerChange[]> {
  return connection.run<LedgerChange>(READ_CHANGES, [after, until, bytesMax])
}

/**
 * Deletes a portion of the changes from `from` on that are older than `keptMs`, but neither the newest of these nor any
 * behind `until`: where a snapshot stands and where a follower waits there is always a change. Returns where the next portion
 * begins, or undefined when nothing more is due.
 */
export async function deleteOldChanges(
  connection: Connection,
  { from, until, keptMs }: { from: number; until: number; keptMs: number },
): Promise<number | undefined> {
  const [row] = await connection.run<{ newestOld: number | null }>(DELETE_OLD, [from, until, keptMs])
  const newestOld = row?.newestOld ?? from
  return newestOld > from ? newestOld : undefined
}

const READ_CHANGES: Statement = {
  name: 'read_changes',
  text: `
    select number, epoch, body from (
      select number, epoch, body, sum(octet_length(body)) over (order by number) - octet_length(body) as ahead
      from (
        select number, epoch, body from callsign.changes
        where number > $1 and number <= $2 order by number limit 1000
      ) as next
    ) as portion
    where ahead < $3::bigint
    order by number`,
}

const DELETE_OLD: Statement = {
  name: 'delete_old',
  text: `
    with portion as (
      select number, at from callsign.changes where number >= $1 and number <= $2 order by number limit 1000
    ), newest_old as (
      select max(number) as number from portion
      where at < clock_timestamp() - $3::bigint * interval '1 millisecond'
    ), deleted as (
      delete from callsign.changes where number >= $1 and number < (select number from newest_old)
    )
    select number as "newestOld" from newest_old`,
}
