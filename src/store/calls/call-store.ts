/**
 * The live calls. Each step of a call is one change: the call, its devices' inbox messages, pushes, its people's
 * histories, and the kept reply for a repeated request.
 *
 * A call is sealed, since it holds the keys that wait for its devices. An ended call has no keys any more; it is kept
 * for a day, so that late and repeated requests get the same answers.
 */

import { type Call, isOver, isPending } from '../../domain/calls/call.ts'
import type { CallAccepted, CallEffect, ChangedCall } from '../../domain/calls/call-command.ts'
import type { CallId, UserId } from '../../domain/ids.ts'
import { IV_BYTES } from '../../domain/secrets.ts'
import { assert, SignalError } from '../../errors.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { callInKey, idsKey, timeBytes } from '../engine/keys.ts'
import type { Change, Store, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { InboxStore } from '../messages/inbox-store.ts'
import type { Notices } from '../messages/notices.ts'
import type { AuditLog } from '../operators/audit-log.ts'
import type { AuditRow } from '../operators/operator-tables.ts'
import type { Webhooks } from '../operators/webhook-store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import type { ListEntry, ListRange } from '../tables/id-lists.ts'
import type { IdempotencyStore, IdempotentRequest } from '../tables/idempotency-store.ts'
import { SealedValues } from '../tables/sealed-values.ts'
import type { CallHistoryStore } from './call-history-store.ts'
import { CALLS, CALLS_BY_END, CALLS_ENDED, ENDED_CALL_KEPT_MS } from './call-tables.ts'

export interface CallStoreDeps extends StoreDeps {
  readonly database: Store
  readonly inbox: Pick<InboxStore, 'dropInvitation'>
  readonly notices: Pick<Notices, 'tellDevice'>
  readonly history: Pick<CallHistoryStore, 'put'>
  readonly idempotency: Pick<IdempotencyStore, 'keep'>
  readonly auditLog: Pick<AuditLog, 'add'>
  /** Without it, no event is written. */
  readonly webhooks?: Pick<Webhooks, 'add'>
}

/** Rows written with a decision. */
export interface WrittenBeside {
  readonly kept?: KeptReply | undefined
  /** The operator's command. */
  readonly audit?: AuditRow | undefined
}

/** The reply to the request that the command came with, for when the request is repeated. */
export interface KeptReply {
  readonly request: IdempotentRequest
  readonly reply: string
}

/** The calls as every process reads them. */
export class CallReader {
  protected readonly sealed: SealedValues<Call>

  constructor({ secrets, randomBytes }: Pick<StoreDeps, 'secrets' | 'randomBytes'>) {
    this.sealed = new SealedValues(secrets, randomBytes, 'call')
  }

  /** The call while it is live, and for 24 hours after. */
  read(view: View, callId: bigint): Call | undefined {
    const key = idsKey(callId)
    const row = view.get(CALLS, key) ?? view.get(CALLS_ENDED, key)
    return row && this.sealed.open(row)
  }

  /** Calls that ended in the last day, the latest end first. */
  readEnded(view: View, { limit, after }: Pick<ListRange, 'limit' | 'after'>): ListEntry[] {
    // Read backwards, the start belongs to the range; the entry itself may be gone.
    const start = after && endKey(after.atMs, after.id)
    const keys = view.keys(CALLS_BY_END, { ...(start && { start }), reverse: true, limit: limit + 1 })
    const entries = [...keys].map(endOf)
    return entries.filter(({ id, atMs }) => id !== after?.id || atMs !== after.atMs).slice(0, limit)
  }
}

/** The calls of the writer. */
export class CallStore extends CallReader {
  readonly #deps: CallStoreDeps
  /** How the row of a call begins once the writes that were asked for so far have landed; none that begins alike. */
  readonly #lastWritten = new Map<CallId, Uint8Array>()
  /** Each of a call's pushes asks for it. */
  readonly #ringing: WatchedCache<CallId, ReadonlySet<UserId>>

  constructor(deps: CallStoreDeps) {
    super(deps)
    this.#deps = deps
    this.#ringing = new WatchedCache(deps.database, [CALLS], callInKey, RINGING_CALLS_KEPT_MAX)
    deps.expiries.define(EXPIRY.endedCall, (change, key) => this.#onEndedDue(change, key))
  }

  /** As `read`, for the room that decides on the call: all its writes have ended. */
  open(callId: CallId): Call | undefined {
    this.#lastWritten.delete(callId)
    return this.#deps.database.view(view => this.read(view, callId))
  }

  /** Users who are invited to the call and have not answered. */
  ringingAt(callId: CallId): ReadonlySet<UserId> {
    return this.#ringing.of(callId, () => {
      const { database } = this.#deps
      const participants = database.view(view => this.read(view, callId))?.participants ?? []
      return new Set(participants.filter(isPending).map(({ userId }) => userId))
    })
  }

  /** Every call that is not over, by id; for a process that starts. */
  live(): Call[] {
    const rows = this.#deps.database.view(view =>
      [...view.range(CALLS)].map(({ key, value }) => ({ key, call: this.sealed.open(value) })),
    )
    // Sealed by another secret: its people's sessions are over with it, and so is their call.
    const lost = rows.filter(({ call }) => call === undefined)
    if (lost.length > 0) void this.#forget(lost.map(({ key }) => key))
    return rows.flatMap(({ call }) => call ?? [])
  }

  /**
   * Writes a decision's effects and the rows beside them; resolves when all of it is durable. Rejects with
   * `STORE_UNAVAILABLE` when an earlier write since `open` has failed: the decision rests on it, and the call would
   * otherwise exist without its messages.
   */
  async apply(
    { call, effects, ended }: Omit<CallAccepted, 'kind' | 'reply'>,
    nowMs: number,
    { kept, audit }: WrittenBeside = {},
  ): Promise<void> {
    const endOther = ended && this.#writeOf(ended)
    const write = this.#writeOf({ call, effects })
    await this.#deps.database.change(change => {
      endOther?.(change)
      write(change)
      if (kept !== undefined) this.#deps.idempotency.keep(change, kept.request, kept.reply)
      if (audit !== undefined) this.#deps.auditLog.add(change, audit)
    }, nowMs)
  }

  /** Resolves when the call is durable as it was last decided; rejects with `STORE_UNAVAILABLE` when it never will be. */
  async confirm(callId: CallId): Promise<void> {
    const expected = this.#lastWritten.get(callId)
    await this.#deps.database.change(change => assertBegins(change, callId, expected))
  }

  #writeOf({ call, effects }: ChangedCall): (change: Change) => void {
    const { callId } = call
    const expected = this.#lastWritten.get(callId)
    const sealed = this.sealed.seal(call)
    if (isOver(call)) this.#lastWritten.delete(callId)
    else this.#lastWritten.set(callId, Uint8Array.from(sealed.subarray(0, IV_BYTES)))
    return change => {
      assertBegins(change, callId, expected)
      for (const effect of effects) this.#carryOut(change, callId, effect)
      if (isOver(call)) this.#end(change, call, sealed)
      else change.put(CALLS, idsKey(callId), sealed)
    }
  }

  #end(change: Change, { callId, endedAtMs }: Call, sealed: Uint8Array): void {
    assert(endedAtMs !== undefined, 'a call that is over has ended at some time')
    const key = idsKey(callId)
    change.remove(CALLS, key)
    change.put(CALLS_ENDED, key, sealed)
    change.put(CALLS_BY_END, endKey(endedAtMs, callId), 0)
    this.#deps.expiries.add(change, EXPIRY.endedCall, endedAtMs + ENDED_CALL_KEPT_MS, key)
  }

  /** The row that says when the call ended is among those that are as old; another ending may have taken it already. */
  #onEndedDue(change: Change, key: Uint8Array): undefined {
    change.remove(CALLS_ENDED, key)
    const end = timeBytes(change.nowMs - ENDED_CALL_KEPT_MS + 1)
    for (const old of [...change.keys(CALLS_BY_END, { end, limit: OLD_AT_ONCE })])
      change.remove(CALLS_BY_END, old)
  }

  #carryOut(change: Change, callId: CallId, effect: CallEffect): void {
    const { inbox, notices, history, webhooks } = this.#deps
    switch (effect.kind) {
      case 'device':
        return notices.tellDevice(change, effect)
      case 'withdraw':
        return void inbox.dropInvitation(change, effect.userId, effect.deviceId, callId)
      case 'history':
        return history.put(change, effect.userId, effect.row)
      case 'webhook':
        return webhooks?.add(change, effect.event)
      case 'topic':
        // Live only: the room tells those who watch.
        return
    }
  }

  #forget(keys: readonly Uint8Array[]): Promise<void> {
    return this.#deps.database.change(change => {
      for (const key of keys) change.remove(CALLS, key)
    })
  }
}

function assertBegins(change: Change, callId: CallId, expected: Uint8Array | undefined): void {
  if (expected === undefined) return
  const row = change.get(CALLS, idsKey(callId))
  if (row !== undefined && Buffer.compare(row.subarray(0, IV_BYTES), expected) === 0) return
  throw new SignalError('STORE_UNAVAILABLE', 'an earlier write to the call has failed')
}

function endKey(endedAtMs: number, callId: bigint): Uint8Array {
  return Buffer.concat([timeBytes(endedAtMs), idsKey(callId)])
}

function endOf(key: Uint8Array): ListEntry {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length)
  return { atMs: bytes.readUIntBE(0, 6), id: bytes.readBigUInt64BE(6) }
}

const OLD_AT_ONCE = 16
/** As many calls as are pushed at a time, and some more. */
const RINGING_CALLS_KEPT_MAX = 1_024
