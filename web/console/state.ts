/**
 * All that the page shows, in one object. Events and answers of the server change it here; views read it. Every list in
 * it is bounded, newest first.
 */

import type { SignedCheckpoint } from '../../src/client/client.ts'
import type {
  CallFact,
  ConnectionFact,
  ConsoleEvent,
  ConsoleState,
  LetterFact,
  PushFact,
  RequestDetail,
  RequestRow,
} from '../../src/operations/console/events.ts'
import type { Language } from './snippets.ts'
import type { Step } from './verification.ts'

/** A fact with its place in the feed. */
export type At<Fact> = Fact & { readonly sequence: number; readonly atMs: number }
export type CheckpointFact = Extract<ConsoleEvent, { readonly type: 'checkpoint' }>

/** The page's record of a call: the messages to its room, oldest first. */
export interface WatchedCall {
  readonly callId: string
  readonly messages: readonly At<CallFact>[]
  readonly status: string
  readonly participants: CallFact['participants']
}

export interface PageState {
  link: 'connecting' | 'live' | 'lost'
  /** The reader has stopped the page: nothing new is asked for. */
  isHeld: boolean
  nowMs: number
  server: ConsoleState | undefined
  /** The newest event that is shown. */
  sequence: number
  /** Events that the server no longer had when the page asked for them. */
  missed: number
  letters: readonly At<LetterFact>[]
  /** Codes of the simulator's people, who read them by themselves: only counted. */
  simulatedLetters: number
  pushes: readonly At<PushFact>[]
  calls: readonly WatchedCall[]
  comings: readonly At<ConnectionFact>[]
  checkpoints: readonly CheckpointFact[]
  /** Display names by user id. */
  readonly names: Map<string, string>
  /** Which rows the reader has opened or closed, by their keys. */
  readonly opened: Map<string, boolean>
  /** The lists that are shown in full. */
  readonly inFull: Set<string>
  /** The key of the last copied text. */
  copied: string | undefined
  /** For screen readers: the newest code, or the server's state. */
  announcement: string
  verify: {
    isRunning: boolean
    /** How often it was gone through. */
    runs: number
    steps: readonly Step[]
    /** The paths of tiles that were fetched for it. */
    tiles: ReadonlySet<string>
    remembered: SignedCheckpoint | undefined
  }
  simulator: { isSending: boolean; problem: string | undefined }
  /** Asked: the question is shown. */
  reset: { isAsked: boolean; isSending: boolean; problem: string | undefined }
  requests: {
    rows: readonly RequestRow[]
    /** The newest request that is shown. */
    sequence: number
    isRefusedOnly: boolean
    /** Those that the reader has opened, or a sentence in place of one. */
    readonly details: Map<number, RequestDetail | string>
  }
  readonly connect: { language: Language; isOnPhone: boolean }
}

/** How views change the state: a change shows at the next frame. */
export interface Page {
  readonly state: PageState
  change(act: (state: PageState) => void): void
}

export function initialState(nowMs: number): PageState {
  return {
    ...{ link: 'connecting', isHeld: false, nowMs, server: undefined, sequence: 0, missed: 0 },
    ...{ letters: [], simulatedLetters: 0, pushes: [], calls: [], comings: [], checkpoints: [] },
    ...{ names: new Map(), opened: new Map(), inFull: new Set(), copied: undefined, announcement: '' },
    verify: { isRunning: false, runs: 0, steps: [], tiles: new Set(), remembered: undefined },
    simulator: { isSending: false, problem: undefined },
    reset: { isAsked: false, isSending: false, problem: undefined },
    requests: { rows: [], sequence: 0, isRefusedOnly: false, details: new Map() },
    connect: { language: 'typescript', isOnPhone: false },
  }
}

/** A restarted server counts its events from 1: the last one's events are void. */
export function takeServer(state: PageState, server: ConsoleState): void {
  const before = state.server
  if (before !== undefined && before.startedAtMs !== server.startedAtMs) {
    Object.assign(state, { sequence: 0, missed: 0, letters: [], simulatedLetters: 0, pushes: [], calls: [] })
    Object.assign(state, { comings: [], checkpoints: [], announcement: 'The server was started again.' })
    Object.assign(state.requests, { rows: [], sequence: 0, details: new Map() })
  }
  state.server = server
  for (const { userId, displayName } of server.devices) keepName(state, userId, displayName)
  for (const { userId, displayName } of server.simulator?.people ?? []) keepName(state, userId, displayName)
  for (const { participants } of server.calls) {
    for (const { userId, displayName } of participants) keepName(state, userId, displayName)
  }
}

export function takeEvents(state: PageState, events: readonly ConsoleEvent[], next: number): void {
  const [first] = events
  if (first !== undefined && state.sequence > 0) state.missed += first.sequence - state.sequence - 1
  for (const event of events) takeEvent(state, event)
  state.sequence = Math.max(next, events.at(-1)?.sequence ?? 0)
}

/** `next` is the number of the newest. */
export function takeRequests({ requests }: PageState, rows: readonly RequestRow[], next: number): void {
  requests.rows = [...rows.toReversed(), ...requests.rows].slice(0, REQUESTS_MAX)
  requests.sequence = next
}

function takeEvent(state: PageState, event: ConsoleEvent): void {
  switch (event.type) {
    case 'letter':
      if (SIMULATED.test(event.to)) {
        state.simulatedLetters += 1
        return
      }
      state.letters = kept(state.letters, event, ROWS_MAX)
      state.announcement = event.otp === undefined ? `message to ${event.to}` : announced(event.otp, event.to)
      return
    case 'push':
      state.pushes = kept(state.pushes, event, ROWS_MAX)
      return
    case 'connection':
      state.comings = kept(state.comings, event, COMINGS_MAX)
      return
    case 'checkpoint':
      state.checkpoints = kept(state.checkpoints, event, COMINGS_MAX)
      return
    case 'call':
      state.calls = withMessage(state.calls, event)
      for (const { userId, displayName } of event.participants) keepName(state, userId, displayName)
  }
}

/** A call keeps its place in the list; a new one comes first. Calls that are over leave the page first. */
function withMessage(calls: readonly WatchedCall[], event: At<CallFact>): readonly WatchedCall[] {
  const { callId, status, participants } = event
  const at = calls.findIndex(call => call.callId === callId)
  const messages = [...(calls[at]?.messages ?? []), event].slice(-MESSAGES_MAX)
  const call = { callId, messages, status, participants }
  if (at >= 0) return calls.with(at, call)
  const all = [call, ...calls]
  if (all.length <= CALLS_MAX) return all
  const oldestOver = all.findLastIndex(({ status }) => isOver(status))
  return all.toSpliced(oldestOver > 0 ? oldestOver : all.length - 1, 1)
}

/** Whether a call of that status has ended, one way or another. */
export function isOver(status: string): boolean {
  return status !== 'ringing' && status !== 'active'
}

/** Whether a row is open: as the reader left it, else as it is `usually`. */
export function isOpen(state: PageState, key: string, usually = false): boolean {
  return state.opened.get(key) ?? usually
}

/** How people call a user: by its name, else by the end of its id. */
export function nameOf(state: PageState, userId: string): string {
  return state.names.get(userId) ?? `user …${userId.slice(-4)}`
}

function keepName(state: PageState, userId: string, name: string): void {
  state.names.set(userId, name)
  if (state.names.size > NAMES_MAX) state.names.delete(state.names.keys().next().value!)
}

/** Digit by digit, as a person would say it. */
function announced(otp: string, to: string): string {
  return `code ${[...otp].join(' ')} for ${to}`
}

function kept<Item>(list: readonly Item[], item: Item, max: number): readonly Item[] {
  return [item, ...list.slice(0, max - 1)]
}

/** The addresses under which the simulator's people sign in. */
const SIMULATED = /^simulator-[0-9a-f]{16}@example\.org$/
const ROWS_MAX = 100
const COMINGS_MAX = 30
const CALLS_MAX = 40
const MESSAGES_MAX = 60
/** As many as the server keeps. */
const REQUESTS_MAX = 300
const NAMES_MAX = 2_000
