/**
 * A connection to PostgreSQL: one statement at a time, each with a deadline, in a session with the settings that the
 * ledger relies on. After any failure the connection is cut and not used again: an error says nothing about what the
 * server still does with the statement.
 */

import { Client } from 'pg'
import { assert, SignalError } from '../../errors.ts'
import { databaseFailure } from './failure.ts'

/** A statement with a name is prepared once on each connection. */
export interface Statement {
  readonly name?: string
  readonly text: string
}

export interface ConnectionDeps {
  /** Holds a password. */
  readonly url: string
  /** As `pg_stat_activity` shows it. */
  readonly applicationName: string
  /** Called for each NOTIFY that the session listens to. */
  readonly onNotified?: (payload: string) => void
}

export class Connection {
  readonly #client: Client
  /** The session's name in the answer to the connecting. */
  #session = 0
  #pid = 0
  /** The statements before are done when it settles. */
  #turn: Promise<unknown> = Promise.resolve()
  #failure: SignalError | undefined

  private constructor(client: Client) {
    this.#client = client
  }

  /** Throws `STORE_UNAVAILABLE`: nothing answers, or a standby or too old a server does. */
  static async open(deps: ConnectionDeps): Promise<Connection> {
    const connection = new Connection(clientOf(deps))
    try {
      await connection.#open(deps)
      return connection
    } catch (error) {
      connection.cut()
      throw databaseFailure('connecting', error)
    }
  }

  async #open({ onNotified }: ConnectionDeps): Promise<void> {
    const client = this.#client
    // Statements under way are rejected beside it.
    client.on('error', error => this.#fail(databaseFailure('connection', error)))
    client.on('notice', ({ routine }) => {
      if (routine === CANCELLED_WAIT) this.#fail(new SignalError('STORE_UNAVAILABLE', NOT_AT_STANDBY))
    })
    client.on('notification', ({ payload = '' }) => onNotified?.(payload))
    client.setTypeParser(INT8, numberOf)
    client.setTypeParser(BYTEA, bytesOf)
    client.connection.once('backendKeyData', ({ processID }: { readonly processID: number }) => {
      this.#session = processID
    })
    await client.connect()
    const [server] = await this.run<{ version: number; isStandby: boolean; pid: number }>(SET_UP)
    assert(server !== undefined, 'the settings of a session have one row')
    this.#pid = server.pid
    if (server.version < VERSION_MIN) {
      throw new SignalError(
        'STORE_UNAVAILABLE',
        `PostgreSQL ${Math.floor(server.version / 10_000)} is too old: 15 is the oldest that serves`,
      )
    }
    if (server.isStandby) throw new SignalError('STORE_UNAVAILABLE', 'PostgreSQL answers as a standby')
  }

  get isOpen(): boolean {
    return this.#failure === undefined
  }

  /** PostgreSQL's own name for the session as it was set up. */
  get pid(): number {
    return this.#pid
  }

  /** A pooler answers in PostgreSQL's place, and names its sessions by itself. */
  get isPooled(): boolean {
    return this.#session !== this.#pid
  }

  /**
   * The rows of a statement. Throws `STORE_UNAVAILABLE`: the statement failed, or was not answered within the deadline; it
   * may have been executed, or may be yet.
   */
  run<Row extends object>(
    statement: Statement,
    values: readonly unknown[] = [],
    deadlineMs = STATEMENT_MS,
  ): Promise<Row[]> {
    const rows = this.#turn.then(() => this.#runNow<Row>(statement, values, deadlineMs))
    this.#turn = rows.catch(() => {})
    return rows
  }

  async #runNow<Row extends object>(
    statement: Statement,
    values: readonly unknown[],
    deadlineMs: number,
  ): Promise<Row[]> {
    if (this.#failure !== undefined) throw this.#failure
    const doing = statement.name ?? 'statement'
    const timer = setTimeout(() => {
      const late = `PostgreSQL: ${doing}: no answer in ${deadlineMs} ms`
      this.#fail(new SignalError('STORE_UNAVAILABLE', late))
    }, deadlineMs)
    try {
      const { rows } = await this.#client.query<Row>({ ...statement, values: [...values] })
      // An answer that came with a reason not to believe it.
      if (this.#failure !== undefined) throw this.#failure
      return rows
    } catch (error) {
      this.#fail(databaseFailure(doing, error))
      throw this.#failure
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the connection once the statements before are done. */
  async close(): Promise<void> {
    await this.#turn
    const ended = this.#client.end().catch(() => {})
    this.#failure ??= CLOSED
    // A peer that is gone does not say goodbye.
    const timer = setTimeout(() => this.cut(), GOODBYE_MS)
    await ended
    clearTimeout(timer)
  }

  /** Ends the connection at once, whatever is under way. */
  cut(): void {
    this.#fail(CLOSED)
  }

  #fail(failure: SignalError): void {
    this.#failure ??= failure
    this.#client.connection.stream.destroy()
  }
}

function clientOf({ url, applicationName }: ConnectionDeps): Client {
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new SignalError('STORE_UNAVAILABLE', 'the URL of the database does not begin with postgres://')
  }
  try {
    return new Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
    })
  } catch (error) {
    throw databaseFailure('URL', error)
  }
}

function numberOf(text: string): number {
  const number = Number(text)
  assert(Number.isSafeInteger(number), 'a number of the ledger is a safe integer')
  return number
}

function bytesOf(text: string): Buffer {
  assert(text.startsWith('\\x'), 'bytes come as hexadecimal digits')
  return Buffer.from(text.slice(2), 'hex')
}

/** Connecting, with TLS and the password. */
const CONNECT_MS = 2_000
/** A statement, shorter than a lease: what it leaves unknown is resolved while the lease lasts. */
const STATEMENT_MS = 2_000
const GOODBYE_MS = 1_000
const VERSION_MIN = 150_000
/** Types, as PostgreSQL numbers them. */
const INT8 = 20
const BYTEA = 17

/** Warns of a commit that is acknowledged before its standby has it: someone has cancelled the statement. Names no text, which may be translated. */
const CANCELLED_WAIT = 'SyncRepWaitForLSN'
const NOT_AT_STANDBY = 'PostgreSQL: a commit was cancelled while it waited for its synchronous standby'

const CLOSED = new SignalError('STORE_UNAVAILABLE', 'the connection to PostgreSQL is closed')

/**
 * The server gives up a statement, or a transaction, of a client that is gone. A commit that is acknowledged before it
 * is on disk, here and at a synchronous standby, would be lost, so `synchronous_commit` is at least what the server ships with. Plans are made while tables
 * are still empty, and kept: without `enable_seqscan = off` they would read whole tables later. The planner's penalty
 * for that would have every statement compiled, so `jit` is off.
 */
const SET_UP: Statement = {
  text: `select
      set_config('statement_timeout', '${2 * STATEMENT_MS}', false),
      set_config('idle_in_transaction_session_timeout', '${2 * STATEMENT_MS}', false),
      set_config('default_transaction_isolation', 'read committed', false),
      set_config('bytea_output', 'hex', false),
      set_config('enable_seqscan', 'off', false),
      set_config('jit', 'off', false),
      set_config('synchronous_commit', case
        when current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply'
        else 'on'
      end, false),
      pg_backend_pid() as pid,
      current_setting('server_version_num')::integer as version,
      pg_is_in_recovery() as "isStandby"`,
}
