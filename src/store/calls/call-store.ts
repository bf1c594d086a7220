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
import { assert, SignalError } from '../../errors.ts'
import { TIME_BYTES } from '../engine/expiries.ts'
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
import type { CallHistoryStore } from './call-history-store.ts'
import { CallRows, isWritten, putEnded, putNext, type WrittenCall } from './call-rows.ts'
import { CALL_CHANGES, CALLS, CALLS_BY_END, CALLS_ENDED, ENDED_CALL_KEPT_MS } from './call-tables.ts'

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

/** Decisions on one call that land together: all that are made before their change begins. */
interface Step {
  /** As the last of them left it. */
  call: Call
  readonly effects: CallEffect[]
  readonly beside: WrittenBeside[]
  durable: Promise<void>
}

/** The rows of a call behind a change. */
interface LeftCall {
  /** Undefined until the change writes a live call. */
  written: WrittenCall | undefined
  isOver: boolean
}

/** The calls as every process reads them. */
export class CallReader {
  protected readonly rows: CallRows

  constructor(deps: Pick<StoreDeps, 'secrets' | 'randomBytes'>) {
    this.rows = new CallRows(deps)
  }

  /** The call while it is live, and for 24 hours after. */
  read(view: View, callId: bigint): Call | undefined {
    return this.rows.read(view, callId)
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
  /** Steps whose change has not begun, which take more decisions. */
  readonly #open = new Map<CallId, Step>()
  /** Live calls that were written since they were opened, as the change leaves them that was asked for last. */
  readonly #left = new Map<CallId, LeftCall>()
  /** Each of a call's pushes asks for it. */
  readonly #ringing: WatchedCache<CallId, ReadonlySet<UserId>>

  constructor(deps: CallStoreDeps) {
    super(deps)
    this.#deps = deps
    this.#ringing = new WatchedCache(deps.database, [CALLS, CALL_CHANGES], callInKey, RINGING_CALLS_KEPT_MAX)
    deps.expiries.defineAged(CALLS_BY_END, ENDED_CALL_KEPT_MS, removeEnded)
  }

  /** As `read`, for the room that decides on the call: all its writes have ended. */
  open(callId: CallId): Call | undefined {
    this.#open.delete(callId)
    this.#left.delete(callId)
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
      [...view.range(CALLS)].map(({ key, value }) => ({
        key,
        call: this.rows.open(value, view.get(CALL_CHANGES, key)),
      })),
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
   *
   * People answer at once, so a decision joins those before it in a change that still waits for its turn.
   */
  apply(
    { call, effects, ended }: Omit<CallAccepted, 'kind' | 'reply'>,
    nowMs: number,
    beside: WrittenBeside = {},
  ): Promise<void> {
    const { callId } = call
    const open = this.#open.get(callId)
    if (open !== undefined && ended === undefined) {
      open.call = call
      for (const effect of effects) open.effects.push(effect)
      open.beside.push(beside)
      if (isOver(call)) this.#forgetOnce(open.durable, callId)
      return open.durable
    }
    // Later decisions on either call come behind this.
    this.#open.delete(callId)
    if (ended !== undefined) this.#open.delete(ended.call.callId)
    const step: Step = { call, effects: [...effects], beside: [beside], durable: NOT_ASKED }
    const endOther = ended && this.#writeOf(ended)
    const write = this.#writeOf(step)
    step.durable = this.#deps.database.change(change => {
      if (this.#open.get(callId) === step) this.#open.delete(callId)
      endOther?.(change)
      write(change)
      for (const { kept, audit } of step.beside) {
        if (kept !== undefined) this.#deps.idempotency.keep(change, kept.request, kept.reply)
        if (audit !== undefined) this.#deps.auditLog.add(change, audit)
      }
    }, nowMs)
    if (ended === undefined) this.#open.set(callId, step)
    else this.#forgetOnce(step.durable, ended.call.callId)
    if (isOver(call)) this.#forgetOnce(step.durable, callId)
    return step.durable
  }

  /** Resolves when the call is durable as it was last decided; rejects with `STORE_UNAVAILABLE` when it never will be. */
  async confirm(callId: CallId): Promise<void> {
    const left = this.#left.get(callId)
    await this.#deps.database.change(change => assertWritten(change, callId, left))
  }

  /** `step` is read when its change begins, which may be more than once: a change beside it may be taken back. */
  #writeOf(step: ChangedCall): (change: Change) => void {
    const { callId } = step.call
    const before = this.#left.get(callId)
    const after: LeftCall = { written: undefined, isOver: false }
    this.#left.set(callId, after)
    return change => {
      const { call, effects } = step
      assertWritten(change, callId, before)
      for (const effect of effects) this.#carryOut(change, callId, effect)
      this.#deps.webhooks?.add(
        change,
        ...effects.flatMap(each => (each.kind === 'webhook' ? each.event : [])),
      )
      const last = before?.written
      if (isOver(call)) {
        after.isOver = true
        return this.#putEnded(change, call, last)
      }
      const next = this.rows.next(last, call)
      after.written = next.written
      putNext(change, idsKey(callId), last, next)
    }
  }

  /** Not before the end is durable: after a failed end, later decisions must fail too. */
  #forgetOnce(durable: Promise<void>, callId: CallId): void {
    const left = this.#left.get(callId)
    const forget = () => void (this.#left.get(callId) === left && this.#left.delete(callId))
    durable.then(forget, () => undefined)
  }

  #putEnded(change: Change, call: Call, last: WrittenCall | undefined): void {
    const { callId, endedAtMs } = call
    assert(endedAtMs !== undefined, 'a call that is over has ended at some time')
    putEnded(change, idsKey(callId), last, this.rows.ended(call, endedAtMs))
    change.put(CALLS_BY_END, endKey(endedAtMs, callId), 0)
  }

  #carryOut(change: Change, callId: CallId, effect: CallEffect): void {
    const { inbox, notices, history } = this.#deps
    switch (effect.kind) {
      case 'device':
        return notices.tellDevice(change, effect)
      case 'withdraw':
        return void inbox.dropInvitation(change, effect.userId, effect.deviceId, callId)
      case 'history':
        return history.put(change, effect)
      case 'webhook':
        // All at once, and not one by one.
        return
      case 'topic':
        // Live only: the room tells those who watch.
        return
    }
  }

  #forget(keys: readonly Uint8Array[]): Promise<void> {
    return this.#deps.database.change(change => {
      for (const key of keys) {
        change.remove(CALLS, key)
        change.remove(CALL_CHANGES, key)
      }
    })
  }
}

function assertWritten(change: Change, callId: CallId, left: LeftCall | undefined): void {
  if (left === undefined) return
  if (left.isOver ? change.has(CALLS_ENDED, idsKey(callId)) : isLeft(change, callId, left)) return
  throw new SignalError('STORE_UNAVAILABLE', 'an earlier write to the call has failed')
}

function isLeft(change: Change, callId: CallId, { written }: LeftCall): boolean {
  return written !== undefined && isWritten(change, callId, written)
}

function removeEnded(change: Change, key: Uint8Array): void {
  change.remove(CALLS_BY_END, key)
  change.remove(CALLS_ENDED, key.subarray(TIME_BYTES))
}

function endKey(endedAtMs: number, callId: bigint): Uint8Array {
  return Buffer.concat([timeBytes(endedAtMs), idsKey(callId)])
}

function endOf(key: Uint8Array): ListEntry {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length)
  return { atMs: bytes.readUIntBE(0, 6), id: bytes.readBigUInt64BE(6) }
}

const NOT_ASKED = Promise.resolve()
/** As many calls as are pushed at a time, and some more. */
const RINGING_CALLS_KEPT_MAX = 1_024
