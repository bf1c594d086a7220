/** Mistakes made on purpose in what rooms, connections and the store are given, to see that seeded runs show them. */

import type { CallRoomMessage } from '../../actors/messages.ts'
import type { ConnectionInbox } from '../../actors/stomp-connection/deps.ts'
import { type Call, isOver } from '../../src/domain/calls/call.ts'
import type { CallEffect } from '../../src/domain/calls/call-command.ts'
import { decide } from '../../src/domain/calls/call-decision.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { Context } from '../../src/runtime/actor.ts'
import { CallIndex } from '../../src/store/calls/call-index.ts'
import type { CallStore } from '../../src/store/calls/call-store.ts'
import type { Store } from '../../src/store/engine/store.ts'
import type { InboxStore } from '../../src/store/messages/inbox-store.ts'
import type { SeededRandom } from './world.ts'

export type PlantedBug =
  /** Receivers told at once all get the first one's key. */
  | 'shared key slice'
  /** A timer that is set anew leaves the one before it armed. */
  | 'stale timer generation'
  /** The end of a ring ends the call, even when a callee has joined. */
  | 'deadline of an old call'
  /** A room tells of its decisions before they are written. */
  | 'reply before commit'
  /** Now and then one device is not told. */
  | 'inbox row missing'
  /** An invitation that is taken back stays in the inbox. */
  | 'invitation delivered after cancel'
  /** When the host leaves, the store hears of no new one. */
  | 'host hand-over forgotten'
  /** An acknowledgement is answered and not carried out. */
  | 'ack that settles nothing'
  /** A decision that could not be written stays in the index. */
  | 'index not rebuilt after a failed commit'
  /** A start does not see the callee's own until that is written. */
  | 'crossing start overlooked'
  /** Now and then a connection does not hear that there is something in the inbox. */
  | 'news lost'
  /** Now and then no device hears that a badge has changed. */
  | 'badge lost'
  /** A failed write is taken for one that succeeded. */
  | 'swallowed failure'

export type RoomCalls = Pick<CallStore, 'open' | 'read' | 'live' | 'apply' | 'confirm'>
export type NoticeInbox = Pick<InboxStore, 'append' | 'dropInvitation'>

/** The live calls, as their rooms have them. */
export function plantInCalls(bug: PlantedBug | undefined, calls: RoomCalls, draw: SeededRandom): RoomCalls {
  const { apply } = calls
  switch (bug) {
    case 'shared key slice':
      return {
        ...calls,
        apply: (decision, ...more) =>
          apply({ ...decision, effects: withFirstKey(decision.effects) }, ...more),
      }
    case 'inbox row missing':
      return {
        ...calls,
        apply: (decision, ...more) =>
          apply({ ...decision, effects: withoutOne(decision.effects, draw) }, ...more),
      }
    case 'reply before commit':
      return { ...calls, apply: async (...args) => void apply(...args).catch(() => undefined) }
    case 'swallowed failure':
      return { ...calls, apply: (...args) => apply(...args).catch(() => undefined) }
    case 'host hand-over forgotten':
      return {
        ...calls,
        apply: (decision, ...more) => apply({ ...decision, call: withFirstHost(decision.call) }, ...more),
      }
    case 'deadline of an old call':
      return withOldDeadlines(calls)
    default:
      return calls
  }
}

/** The inboxes, as the store of calls has them. */
export function plantInNotices(bug: PlantedBug | undefined, inbox: NoticeInbox): NoticeInbox {
  if (bug !== 'invitation delivered after cancel') return inbox
  return {
    append: (change, userId, deviceId, { replaces: _, ...entry }) =>
      inbox.append(change, userId, deviceId, entry),
    dropInvitation: () => false,
  }
}

/** The inboxes, as connections have them. */
export function plantInInbox(bug: PlantedBug | undefined, inbox: ConnectionInbox): ConnectionInbox {
  if (bug !== 'ack that settles nothing') return inbox
  const change: ConnectionInbox['change'] = (userId, deviceId, { sent }) =>
    inbox.change(userId, deviceId, { sent, settled: [] })
  return { ...inbox, change, settleSoon: () => undefined }
}

/** The store, as connections and rooms hear of it. */
export function plantInStore(
  bug: PlantedBug | undefined,
  store: Store,
  draw: SeededRandom,
): Pick<Store, 'view' | 'watch' | 'subscribe'> {
  const untold = bug === 'news lost' ? 'inbox-news' : bug === 'badge lost' ? 'badge-changed' : undefined
  return {
    view: read => store.view(read),
    watch: (table, watcher) => store.watch(table, watcher),
    subscribe: (kind, listener) =>
      store.subscribe(kind, happening => {
        if (kind !== untold || !draw.chance(0.2)) listener(happening)
      }),
  }
}

/** A room's view of the runtime. */
export function plantInContext(
  bug: PlantedBug | undefined,
  context: Context<CallRoomMessage>,
): Context<CallRoomMessage> {
  if (bug !== 'stale timer generation') return context
  let generation = 0
  return {
    self: context.self,
    nowMs: () => context.nowMs(),
    random: () => context.random(),
    commit: (...args) => context.commit(...args),
    tellOutcome: (...args) => context.tellOutcome(...args),
    startTimer(key, ms, message) {
      generation += 1
      context.startTimer(`${key} ${generation}`, ms, message)
    },
    cancelTimer: key => context.cancelTimer(`${key} ${generation}`),
    stop: () => context.stop(),
  }
}

/** `stored` gives a call as it is written. */
export function plantInIndex(
  bug: PlantedBug | undefined,
  index: CallIndex,
  stored: (callId: CallId) => Call | undefined,
): void {
  if (bug === 'crossing start overlooked') {
    const { callsBetween } = CallIndex.prototype
    index.callsBetween = (...people) =>
      callsBetween.apply(index, people).filter(({ callId }) => stored(callId) !== undefined)
  }
  if (bug !== 'index not rebuilt after a failed commit') return
  const { put, forget } = CallIndex.prototype
  let isPutting = false
  index.put = call => {
    isPutting = true
    put.call(index, call)
    isPutting = false
  }
  index.forget = callId => {
    const call = stored(callId)
    if (isPutting || (call !== undefined && isOver(call))) forget.call(index, callId)
  }
}

function withFirstKey(effects: readonly CallEffect[]): CallEffect[] {
  let first: string | undefined
  return effects.map(effect => {
    if (effect.kind !== 'device' || effect.encryptedAESKey === undefined) return effect
    first ??= effect.encryptedAESKey
    return { ...effect, encryptedAESKey: first }
  })
}

function withoutOne(effects: readonly CallEffect[], draw: SeededRandom): CallEffect[] {
  const lost = draw.chance(0.2) ? effects.findIndex(({ kind }) => kind === 'device') : -1
  return effects.filter((_, at) => at !== lost)
}

/** Calls are started by their first host. */
function withFirstHost(call: Call): Call {
  return { ...call, hostUserId: call.initiatorId }
}

function withOldDeadlines(calls: RoomCalls): RoomCalls {
  const started = new Map<CallId, Call>()
  return {
    ...calls,
    apply(given, nowMs, kept) {
      const { call } = given
      const old = started.get(call.callId) ?? call
      started.set(call.callId, old)
      const isDue = call.status === 'active' && nowMs >= old.createdAtMs + RING_MS
      if (!isDue) return calls.apply(given, nowMs, kept)
      const decision = decide(old, { kind: 'deadline', nowMs })
      return calls.apply(decision.kind === 'accepted' ? decision : given, nowMs, kept)
    },
  }
}

const RING_MS = 65_000
