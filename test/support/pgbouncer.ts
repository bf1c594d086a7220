/** pgbouncer in front of PostgreSQL, from Debian's package. */

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { asUnprivileged, PASSWORD, type Postgres, unprivileged } from './postgres.ts'
import { skipWithout } from './programs.ts'

const PGBOUNCER = '/usr/sbin/pgbouncer'

export const skipWithoutPgbouncer = skipWithout([PGBOUNCER], 'pgbouncer')

/** Its port, once it takes connections. Runs until the end of the test; `settings` are pgbouncer's. */
export async function startPgbouncer(
  t: Test,
  postgres: Postgres,
  settings: readonly string[],
): Promise<number> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'callsign-pgbouncer-'))
  const file = join(folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${postgres.port} user=callsign password=${PASSWORD}`,
    '[pgbouncer]',
    ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any'],
    ...(preparesStatements() ? ['max_prepared_statements = 0'] : []),
    ...settings,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const owner = unprivileged()
  if (owner !== undefined) for (const path of [folder, file]) chownSync(path, owner.uid, owner.gid)
  const child = asUnprivileged(PGBOUNCER, [file])
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  for await (const line of createInterface(child.stderr!)) if (line.includes('process up')) break
  child.stderr!.resume()
  return port
}

/** From 1.21 on it can prepare the statements of its clients by itself, and from 1.24 on it does: then sharing sessions breaks none of them. */
function preparesStatements(): boolean {
  const [, minor] =
    /^PgBouncer 1\.(\d+)/.exec(execFileSync(PGBOUNCER, ['--version'], { encoding: 'utf8' })) ?? []
  return Number(minor) >= 21
}
