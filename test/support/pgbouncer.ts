/** pgbouncer in front of PostgreSQL, from Debian's package. */

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
