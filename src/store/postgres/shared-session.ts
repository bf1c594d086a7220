/**
 * Sessions that a pooler shares out, one transaction to each client in turn. Settings, prepared statements and LISTEN are of a
 * session, so they would be lost, or be another client's, at random. A pooler that keeps a session for each client may stay.
 */

import { SignalError } from '../../errors.ts'
import { Connection, type ConnectionDeps } from './connection.ts'
import { SHARED_SESSION } from './failure.ts'

/** Throws `STORE_UNAVAILABLE` where `connection` has no session of its own. `deps` are what it was opened with. */
export async function refuseSharedSessions(connection: Connection, deps: ConnectionDeps): Promise<void> {
  if (!connection.isPooled) return
  const other = await Connection.open(deps)
  try {
    // One that hands out the session used last shows that it is shared; any other shows that ours has changed.
    for (let looks = 0; looks < LOOKS; looks++) {
      const [ours, others] = [await pidOf(connection), await pidOf(other)]
      if (ours === others || ours !== connection.pid || others !== other.pid)
        throw new SignalError('STORE_UNAVAILABLE', `PostgreSQL: ${SHARED_SESSION}`)
    }
  } finally {
    other.cut()
  }
}

async function pidOf(connection: Connection): Promise<number | undefined> {
  const [row] = await connection.run<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
  return row?.pid
}

/** Other clients of a busy pooler may come between; hardly ever so often. */
const LOOKS = 10
