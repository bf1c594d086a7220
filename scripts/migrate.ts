#!/usr/bin/env node
/** Moves a log between the store of one machine and the ledger of several: `migrate --to postgres|lmdb --data-dir DIR`. */

import { PostgresLedger } from '../src/store/postgres/ledger.ts'
import { MIGRATE, type Moved } from './migrate/moved.ts'
import { moveToLmdb } from './migrate/to-lmdb.ts'
import { moveToPostgres } from './migrate/to-postgres.ts'
import { type Flags, given, required, runCommand, secret, UsageError } from './support/command.ts'

const USAGE = `usage: callsign migrate --to postgres --data-dir DIR
       callsign migrate --to lmdb --data-dir DIR

Moves a server from one machine to several, or back, while none of them runs. Checks every entry of the log and its index,
compares every row of both sides, and prints one line of JSON. When it is broken off, run it again: the other side can't be used before.

  --to postgres    from the store in DIR into an empty database: that of one machine, or of a node whose database has
                   lost changes. DIR is the copy of a node from then on
  --to lmdb        from the database into a store in DIR, where no store is. No node uses the database from then on
  --data-dir DIR   the data directory (else CALLSIGN_DATA_DIR)

CALLSIGN_DATABASE_URL, or the file that CALLSIGN_DATABASE_URL_FILE names, has the address of the database.

Exit code: 0 moved, 1 the log is damaged, 2 not moved for another reason.
`

async function migrate(flags: Flags): Promise<number> {
  const to = required(flags, 'to')
  const move = MOVES.get(to)
  if (move === undefined) throw new UsageError(`--to ${to} is neither postgres nor lmdb`)
  const folder = required(flags, 'data-dir', 'CALLSIGN_DATA_DIR')
  const url = given('CALLSIGN_DATABASE_URL', secret('CALLSIGN_DATABASE_URL'))
  const startedAtMs = performance.now()
  const { rows, bytes, change, log } = await move(folder, () => openLedger(url), say)
  const seconds = Number(((performance.now() - startedAtMs) / 1000).toFixed(3))
  const { treeSize, rootHash } = log
  const line = {
    event: 'migrate',
    to,
    folder,
    rows,
    bytes,
    change,
    treeSize: `${treeSize}`,
    rootHash,
    seconds,
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
  return 0
}

function openLedger(url: string): Promise<PostgresLedger> {
  return PostgresLedger.open({
    url,
    node: MIGRATE,
    monotonicMs: () => performance.now(),
    random: Math.random,
    // It is tried again, and awaited.
    onFailure: () => undefined,
  })
}

function say(sentence: string): void {
  process.stderr.write(`migrate: ${sentence}\n`)
}

type Move = (
  folder: string,
  openLedger: () => Promise<PostgresLedger>,
  say: (sentence: string) => void,
) => Promise<Moved>

const MOVES: ReadonlyMap<string, Move> = new Map([
  ['postgres', moveToPostgres],
  ['lmdb', moveToLmdb],
])

await runCommand({ name: 'migrate', usage: USAGE, flags: { to: 'value', 'data-dir': 'value' }, run: migrate })
