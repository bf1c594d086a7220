/** PostgreSQL, where several nodes share it: whether it can be used, and whether it keeps what it has acknowledged. */

import { SignalError } from '../../src/errors.ts'
import { Connection } from '../../src/store/postgres/connection.ts'
import {
  DURABILITY_ADVICE,
  type Durability,
  type DurabilityFault,
  durabilityFaults,
  readDurability,
} from '../../src/store/postgres/durability.ts'
import { refuseSharedSessions } from '../../src/store/postgres/shared-session.ts'
import { type Check, type Finding, fails, off, ok } from './finding.ts'

export const checkDatabase: Check = async ({ config: { node } }) => {
  if (node === undefined) return []
  try {
    const durability = await read({ url: node.databaseUrl, applicationName: 'callsign doctor' })
    const faults = durabilityFaults(durability, node.databaseKeptBy)
    const judge = (check: string, ours: readonly DurabilityFault[], well: string): Finding => {
      const fault = ours.find(each => faults.includes(each))
      if (fault !== undefined) return fails(check, DURABILITY_ADVICE[fault])
      if (node.databaseKeptBy === 'standbys' || check === 'database writes') return ok(check, well)
      return off(check, `not looked at: CALLSIGN_DATABASE_KEPT_BY is ${node.databaseKeptBy}`)
    }
    return [
      ok('database', 'PostgreSQL answers, with sessions of its own'),
      judge('database fsync', ['fsync-off'], 'a commit waits for the disk'),
      judge('database pages', ['full-page-writes-off'], 'a crash leaves no torn page'),
      judge(
        'database standby',
        ['standby-not-awaited', 'standby-missing', 'standby-hidden'],
        `a commit waits for a synchronous standby: ${durability.standbys} connected`,
      ),
      judge('database writes', ['read-only'], 'changes are taken'),
    ]
  } catch (error) {
    if (error instanceof SignalError) return [fails('database', error.message)]
    throw error
  }
}

async function read(deps: Parameters<typeof Connection.open>[0]): Promise<Durability> {
  const connection = await Connection.open(deps)
  try {
    await refuseSharedSessions(connection, deps)
    return await readDurability(connection)
  } finally {
    connection.cut()
  }
}
