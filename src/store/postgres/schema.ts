/**
 * The ledger's tables in PostgreSQL, in a schema of their own, and their form. They are made where they are missing, and never
 * changed: a program works on tables of its own form alone.
 *
 * - `writer`, one row: who may append, and the log's head. `connection` counts the lease's connections; a
 *   statement of an earlier one is refused, so it can't come late. `state`: see `LedgerState`.
 * - `changes`: the order of changes. `epoch` names the lease that appended the change.
 * - `holds`: changes behind `after` are kept for `node` until `ends`, however old they are.
 * - `rows`: the state after the changes up to `applied.number`. `applied.epoch` is the lease that writes them.
 */

import { SignalError } from '../../errors.ts'
import { refusalOfForm, STORE_FORM } from '../engine/store-form.ts'
import type { Connection } from './connection.ts'

/** Makes the tables, or checks their form. Throws `STORE_UNAVAILABLE` for tables of another form. */
export async function openSchema(connection: Connection): Promise<void> {
  if ((await readForm(connection)) === STORE_FORM) return
  await connection.run({ text: 'begin' })
  // Two nodes may start at once.
  await connection.run({ text: `select pg_advisory_xact_lock(${LOCK})` })
  const form = await readForm(connection)
  if (form === undefined) await create(connection)
  await connection.run({ text: 'commit' })
  const refusal = refusalOfForm(form ?? STORE_FORM, 'the database')
  if (refusal !== undefined) throw new SignalError('STORE_UNAVAILABLE', refusal)
}

async function readForm(connection: Connection): Promise<number | undefined> {
  // `to_regclass` would answer from what the session knew before it waited for the lock.
  const known = await connection.run({
    text: `select from pg_tables where schemaname = 'callsign' and tablename = 'schema_version'`,
  })
  if (known.length === 0) return undefined
  const [row] = await connection.run<{ version: number }>({
    text: 'select version from callsign.schema_version',
  })
  return row?.version ?? 0
}

async function create(connection: Connection): Promise<void> {
  const schemas = await connection.run({ text: `select 1 from pg_namespace where nspname = 'callsign'` })
  // An administrator may have made it for a user who must not.
  if (schemas.length === 0) await connection.run({ text: 'create schema callsign' })
  await connection.run({ text: TABLES })
}

/** Any number that no other program locks. */
const LOCK = 0x63_61_6c_6c

const TABLES = `
  create table callsign.schema_version (version integer not null);
  insert into callsign.schema_version values (${STORE_FORM});

  create table callsign.writer (
    id boolean primary key default true check (id),
    epoch bigint not null,
    connection integer not null,
    node text not null,
    address text not null,
    version text not null,
    lease_ends timestamptz not null,
    head bytea,
    state text not null check (state in ('open', 'filling', 'left'))
  );
  insert into callsign.writer values (true, 0, 0, '', '', '', '-infinity', null, 'open');

  create table callsign.changes (
    number bigint primary key,
    epoch bigint not null,
    at timestamptz not null default clock_timestamp(),
    body bytea not null
  );

  create table callsign.holds (
    id uuid primary key,
    node text not null,
    after bigint not null,
    ends timestamptz not null
  );

  create table callsign.rows (
    tbl text collate "C" not null,
    k bytea not null,
    v bytea not null,
    primary key (tbl, k)
  ) with (fillfactor = 85);

  create table callsign.applied (
    id boolean primary key default true check (id),
    number bigint not null,
    epoch bigint not null
  );
  insert into callsign.applied values (true, 0, 0);

  -- Trying to compress what is mostly keys and hashes costs more than it saves.
  alter table callsign.changes alter column body set storage external;
  alter table callsign.rows alter column v set storage external;

  -- ANALYZE would copy some values, and so people's addresses and hashes of them, into pg_statistic, where they outlive their rows.
  alter table callsign.changes alter column body set statistics 0;
  alter table callsign.rows alter column k set statistics 0;
  alter table callsign.rows alter column v set statistics 0;
`
