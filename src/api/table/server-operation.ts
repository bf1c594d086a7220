/**
 * One operation of the server API (operators.md section 2): a row of a table like one of the application API, asked for by a
 * server key or the operator's command instead of a session.
 */

import type { Static, TObject, TSchema } from 'typebox'
import type { Scope, ServerKeyHolder } from '../../domain/operators/server-key.ts'
import type { Change } from '../../store/engine/store.ts'
import type { AuditRow } from '../../store/operators/operator-tables.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { NOTHING_TAKEN, type OperationForm, type OperationRules, type Reply } from './operation.ts'

/** A request to the server API that has passed its checks. */
export interface ServerRequest<Body, Query> {
  readonly body: Body
  readonly query: Query
  /** The values of the path's `{name}` segments, percent-decoded. */
  readonly params: readonly string[]
  readonly holder: ServerKeyHolder
  readonly requestId: string
  readonly network: string
  readonly nowMs: number
  /** The key under which the reply is kept; a room that carries the operation out keeps the reply itself. */
  readonly idempotent: IdempotentRequest | undefined
  /** Adds the row that says what the holder did to `target`, such as `id:4294967297`; never an address or external id. */
  audit(change: Change, target: string): void
  /** The row that says so, for what commits elsewhere and writes it with what it changes. */
  readonly auditRow: (target: string) => AuditRow
  /** Runs `write` in one change at `nowMs`, with its audit row; an `Idempotency-Key` is honoured as in the application API. */
  readonly commit: (write: (change: Change) => AuditedReply) => Promise<Reply>
}

/** Undefined where nothing was changed. */
export interface AuditedReply extends Reply {
  readonly target: string | undefined
}

type HandleServer<Deps, Body, Query> = (
  deps: Deps,
  request: ServerRequest<Body, Query>,
) => Reply | Promise<Reply>

type ServerAccess = 'server-key' | 'operator'

/** `scope` says which keys may ask; without one, the operator's command alone. */
interface ServerRules<Deps, Body, Query> extends Omit<OperationRules<ServerAccess>, 'access' | 'scope'> {
  readonly scope?: Scope
  readonly handle: HandleServer<Deps, Body, Query>
}

interface ServerReadRules<Deps, Query> extends ServerRules<Deps, undefined, Query> {
  readonly method: 'GET'
}

interface ServerWriteRules<Deps, Body> extends ServerRules<Deps, Body, undefined> {
  readonly method: Exclude<HttpRoute['method'], 'GET'>
}

/** An operation of the server API as the table holds it. */
export interface ServerOperation<in Deps> extends OperationForm {
  readonly access: ServerAccess
  /** Whether its body is of another media type than JSON, and handed on as bytes. */
  readonly bodyMediaType?: string
  readonly handle: HandleServer<Deps, unknown, unknown>
}

export function serverRead<Deps>(rules: ServerReadRules<Deps, undefined>): ServerOperation<Deps> {
  return { ...ruled(rules), ...NOTHING_TAKEN }
}

export function serverReadWithQuery<Deps, Schema extends TObject>(
  querySchema: Schema,
  rules: ServerReadRules<Deps, Static<Schema>>,
): ServerOperation<Deps> {
  return { ...ruled(rules), ...NOTHING_TAKEN, querySchema }
}

/** One that takes no body, and is no read. */
export function serverOperation<Deps>(rules: ServerWriteRules<Deps, undefined>): ServerOperation<Deps> {
  return { ...ruled(rules), ...NOTHING_TAKEN }
}

export function serverOperationWithQuery<Deps, Schema extends TObject>(
  querySchema: Schema,
  rules: ServerRules<Deps, undefined, Static<Schema>>,
): ServerOperation<Deps> {
  return { ...ruled(rules), ...NOTHING_TAKEN, querySchema }
}

export function serverOperationWithBody<Deps, Schema extends TSchema>(
  bodySchema: Schema,
  {
    isBodyOptional = false,
    ...rules
  }: ServerWriteRules<Deps, Static<Schema>> & { readonly isBodyOptional?: boolean },
): ServerOperation<Deps> {
  return { ...ruled(rules), querySchema: undefined, bodySchema, isBodyOptional }
}

/** An operation with a body that is not JSON. The handler gets its own copy of the bytes. */
export function serverOperationWithBytes<Deps>(
  bodyMediaType: string,
  rules: ServerWriteRules<Deps, Uint8Array>,
): ServerOperation<Deps> {
  return { ...ruled(rules), ...NOTHING_TAKEN, isBodyOptional: false, bodyMediaType }
}

function ruled<Deps, Body, Query>(
  rules: ServerRules<Deps, Body, Query>,
): ServerRules<Deps, Body, Query> & { access: ServerAccess; handle: ServerOperation<Deps>['handle'] } {
  const access = rules.scope === undefined ? 'operator' : 'server-key'
  return { ...rules, access, handle: rules.handle as ServerOperation<Deps>['handle'] }
}
