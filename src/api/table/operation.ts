/**
 * One HTTP operation as a row of a table: its path, who may call it, what it takes and answers, what can go wrong.
 * Requests are checked against the table, the OpenAPI document is made from it, and tests walk through it.
 */

import type { Static, TObject, TSchema } from 'typebox'
import { type DeviceId, parseUint64 } from '../../domain/ids.ts'
import type { CountedNetwork } from '../../domain/network.ts'
import type { Scope } from '../../domain/operators/server-key.ts'
import type { RateName } from '../../domain/rates.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Change } from '../../store/engine/store.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { Requester } from '../accounts/authentication.ts'

/**
 * `optional`: a session if a token is sent, which must then be good. `ended`: a session, also one that is over.
 * `session`: a session that is not restricted (`domain/devices/restriction.ts`). `device`: such a one that is bound to a
 * device. `restricted` and `restricted-device`: the same, restricted or not. `server-key` and `operator` are of the server API
 * (`server-operation.ts`).
 */
export type Access =
  | 'public'
  | 'optional'
  | 'ended'
  | 'restricted'
  | 'restricted-device'
  | 'session'
  | 'device'
  | 'server-key'
  | 'operator'

/** Access of the application API: by a session, if at all. */
export type AppAccess = Exclude<Access, 'server-key' | 'operator'>

/** How often an operation may be called; rules of one name share their counts. */
export interface RateRule {
  readonly name: RateName
  readonly by: 'address' | 'user' | 'session'
}

export interface Reply {
  readonly status: 200 | 201 | 202 | 204
  /**
   * Plain members, bigints being ids, or JSON that is already text, or its bytes, or its parts (see `AnswerBody`), which are made
   * while the client reads. Left out for 204.
   */
  readonly body?: object | string | AsyncIterable<Uint8Array>
  /** JSON where it is left out. */
  readonly contentType?: string
}

/** A GET that has passed its checks: nothing can be changed by it. */
export interface ReadRequest<Body, Query, A extends Access> {
  readonly body: Body
  readonly query: Query
  /** The values of the path's `{name}` segments, as sent. */
  readonly params: readonly string[]
  readonly requester: RequesterOf<A>
  readonly requestId: string
  /** The client's network: its IPv4 address or the /64 of its IPv6 address. */
  readonly network: string
  readonly nowMs: number
}

/** A command that has passed its checks. */
export interface CommandRequest<Body, Query, A extends Access> extends ReadRequest<Body, Query, A> {
  /** The key under which the reply is kept, in the change that it reports; undefined where none is kept. */
  readonly idempotent: IdempotentRequest | undefined
}

/** Any other request that has passed its checks. */
export interface OperationRequest<Body, Query, A extends Access> extends CommandRequest<Body, Query, A> {
  /** The best language for texts to the user: an RFC 4647 range list, empty when none was asked for. */
  readonly acceptLanguage: string
  readonly userAgent: string
  /** The `Idempotency-Key`, undefined when none was sent. */
  readonly idempotencyKey: string | undefined
  /** The `If-Match` of an operation that `readsIfMatch`, empty when none was sent. */
  readonly ifMatch: string
  /**
   * Runs `write` in one change at `nowMs` and resolves with its reply once that is durable. Where the request has
   * an `Idempotency-Key`, the reply is kept in the same change, and a repeated request gets the kept one instead.
   */
  commit(write: (change: Change) => Reply): Promise<Reply>
}

type RequesterOf<A extends Access> = A extends 'public'
  ? undefined
  : A extends 'optional' | 'ended'
    ? Requester | undefined
    : A extends 'device' | 'restricted-device'
      ? Requester & { readonly deviceId: DeviceId }
      : Requester

export type AppTag = 'sign-in' | 'user' | 'devices' | 'contacts' | 'calls' | 'log' | 'meta'
export type ServerTag =
  | 'users'
  | 'sign-in tokens'
  | 'contacts and circles'
  | 'calls of users'
  | 'moderation'
  | 'operator'

export interface OperationRules<A extends Access> {
  /** `operationId` of the document, such as `verifyLogin`. */
  readonly id: string
  readonly method: HttpRoute['method']
  readonly path: string
  /** Other spellings of the path, and older ones whose answers say so (contract 1.1). */
  readonly aliases?: HttpRoute['aliases']
  readonly deprecatedAliases?: HttpRoute['deprecatedAliases']
  readonly tag: AppTag | ServerTag
  /** One line for the document. */
  readonly summary: string
  readonly access: A
  /** The scope that the server key must have, for an operation by one. */
  readonly scope?: Scope
  /** The form of the answer's body by status; null for none. */
  readonly replies: Readonly<Partial<Record<Reply['status'], TSchema | null>>>
  /** The codes that it refuses with, beyond those of every operation of its access and form. */
  readonly codes: readonly ErrorCode[]
  readonly rates?: readonly RateRule[]
  /** `access-token` where it is left out, but for one that is `public`. */
  readonly countsFor?: HttpRoute['countsFor']
  /** Whether it honours `Idempotency-Key`. */
  readonly isIdempotent?: boolean
  /** Whether it goes by the `Idempotency-Key` itself: at a sign-in there is nobody yet whose replies could be kept. */
  readonly readsIdempotencyKey?: boolean
  /** Whether it goes by `If-Match`. */
  readonly readsIfMatch?: boolean
  /**
   * Whether it does something to the session that asks, so that the reply kept for an `Idempotency-Key` is that
   * session's alone; else it is the user's.
   */
  readonly areRepliesOfSession?: boolean
  readonly bodyBytesMax?: number
}

/** Handed the parts of its process, and a request that has passed its checks. */
type Handle<Deps, Body, Query, A extends Access> = (
  deps: Deps,
  request: OperationRequest<Body, Query, A>,
) => Reply | Promise<Reply>

/** The text of a reply that is repeated, from the kept one: what it says of the present may have changed. */
type Repeat<Deps> = (deps: Deps, requester: Requester, kept: string) => string

type HandleRead<Deps, Body, Query, A extends Access> = (
  deps: Deps,
  request: ReadRequest<Body, Query, A>,
) => Reply | Promise<Reply>

type HandleCommand<Deps, Body, Query, A extends Access> = (
  deps: Deps,
  request: CommandRequest<Body, Query, A>,
) => Promise<Reply>

interface ReadRules<Deps, Query, A extends Access> extends OperationRules<A> {
  readonly method: 'GET'
  readonly handle: HandleRead<Deps, undefined, Query, A>
}

interface WriteRules<Deps, Body, A extends Access> extends OperationRules<A> {
  readonly method: Exclude<HttpRoute['method'], 'GET'>
  readonly handle: Handle<Deps, Body, undefined, A>
}

/** The writer counts it, so it has no rates of its own. */
interface CommandRules<Deps, Body, A extends Access> extends Omit<OperationRules<A>, 'rates'> {
  readonly method: 'POST'
  readonly repeat?: Repeat<Deps>
  readonly handle: HandleCommand<Deps, Body, undefined, A>
}

/**
 * Of an operation that needs no session: whether the account that its body names has signed in from within a prefix of IPv6.
 * Such a prefix does not slow the request.
 */
type IsPrefixKnown<Deps, Body> = (deps: Deps, body: Body, prefix: CountedNetwork, nowMs: number) => boolean

/** An operation as documents describe it and routes announce it. */
export interface OperationForm extends OperationRules<Access> {
  readonly bodySchema: TSchema | undefined
  /** Whether a request without a body is one with no members. */
  readonly isBodyOptional: boolean
  readonly querySchema: TObject | undefined
}

/** An operation as the table holds it. A process that has no `Deps` can't have it answered. */
export interface Operation<in Deps> extends OperationForm {
  /** For commands; left out: a repeated request gets the reply as it was. */
  readonly repeat?: Repeat<Deps>
  readonly isPrefixKnown?: IsPrefixKnown<Deps, unknown>
  readonly handle: Handle<Deps, unknown, unknown, Access>
}

/** One that only reads. */
export interface Read<in Deps> extends Operation<Deps> {
  readonly method: 'GET'
  readonly handle: HandleRead<Deps, unknown, unknown, Access>
}

/**
 * One that the writer is asked to carry out, and answers for: any process checks its request and writes the answer. Requests
 * with one `Idempotency-Key` are carried out one after the other there, and none that has a kept reply.
 */
export interface Command<in Deps> extends Operation<Deps> {
  readonly method: 'POST'
  readonly handle: HandleCommand<Deps, unknown, unknown, Access>
}

/** A read that takes no query. */
export function read<Deps, A extends AppAccess>(rules: ReadRules<Deps, undefined, A>): Read<Deps> {
  return { ...rules, ...NOTHING_TAKEN, handle: rules.handle as Read<Deps>['handle'] }
}

/** A read with a query of this schema. */
export function readWithQuery<Deps, Schema extends TObject, A extends AppAccess>(
  querySchema: Schema,
  rules: ReadRules<Deps, Static<Schema>, A>,
): Read<Deps> {
  return { ...rules, ...NOTHING_TAKEN, querySchema, handle: rules.handle as Read<Deps>['handle'] }
}

/** A command that takes no body. */
export function command<Deps, A extends AppAccess>(rules: CommandRules<Deps, undefined, A>): Command<Deps> {
  return { ...rules, ...NOTHING_TAKEN, handle: rules.handle as Command<Deps>['handle'] }
}

/** A command with a body of this schema. */
export function commandWithBody<Deps, Schema extends TSchema, A extends AppAccess>(
  bodySchema: Schema,
  rules: CommandRules<Deps, Static<Schema>, A> & { readonly isBodyOptional?: boolean },
): Command<Deps> {
  const handle = rules.handle as Command<Deps>['handle']
  return { ...NOTHING_TAKEN, isBodyOptional: false, ...rules, bodySchema, handle }
}

/** An operation that takes no body, and is no read. */
export function operation<Deps, A extends AppAccess>(
  rules: WriteRules<Deps, undefined, A> & Pick<Operation<Deps>, 'isPrefixKnown'>,
): Operation<Deps> {
  return { ...rules, ...NOTHING_TAKEN, handle: rules.handle as Operation<Deps>['handle'] }
}

/** An operation with a body of this schema. */
export function operationWithBody<Deps, Schema extends TSchema, A extends AppAccess>(
  bodySchema: Schema,
  {
    isPrefixKnown,
    ...rules
  }: WriteRules<Deps, Static<Schema>, A> & {
    readonly isBodyOptional?: boolean
    readonly isPrefixKnown?: IsPrefixKnown<Deps, Static<Schema>>
  },
): Operation<Deps> {
  return {
    ...NOTHING_TAKEN,
    isBodyOptional: false,
    ...rules,
    ...(isPrefixKnown && { isPrefixKnown: isPrefixKnown as IsPrefixKnown<Deps, unknown> }),
    bodySchema,
    handle: rules.handle as Operation<Deps>['handle'],
  }
}

/** The id in a path that has one; undefined for any other text. */
export function pathId<Id extends bigint = bigint>([text = '']: readonly string[]): Id | undefined {
  return parseUint64(text) as Id | undefined
}

/** The form of an operation with neither body nor query. */
export const NOTHING_TAKEN = { bodySchema: undefined, querySchema: undefined, isBodyOptional: true } as const
