/** One call within a crowd, played to its end: who does what, and what everybody has to hear. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../../src/app/app.ts'
import type { Figures } from './figures.ts'
import { Failure, type Member } from './member.ts'

/** The course of a call. */
export type Plot = 'talk' | 'group' | 'decline' | 'cancel' | 'rejoin' | 'unanswered'

export interface Stage {
  readonly figures: Figures
  /** Aborted when calls are to end. */
  readonly closing: AbortSignal
}

/** How many are called. */
export function calleesOf(plot: Plot): number {
  return plot === 'group' ? 3 : 1
}

/** A plot by chance, so that each second has some of each but the long ones. */
export function newPlot(): Plot {
  let chance = Math.random()
  for (const [plot, share] of SHARES) {
    chance -= share
    if (chance < 0) return plot
  }
  return 'talk'
}

/** Resolves when all members were told of the end. Rejects with a `Failure`, or as the app does. */
export async function playCall(
  stage: Stage,
  plot: Plot,
  caller: Member,
  callees: readonly Member[],
): Promise<void> {
  const { figures } = stage
  const connects = connectsOf(caller, ...callees)
  const { app } = caller.phone
  const call = await app.call(
    callees.map(({ phone }) => phone.userId),
    { video: Math.random() < 0.5 },
  )
  caller.take(call)
  figures.started += 1
  await Promise.all(callees.map(callee => callee.hearRinging(call.callId)))
  for (const { rangAtMs } of callees) {
    // After a broken connection it is the pause before the next one that is measured.
    if (connectsOf(caller, ...callees) === connects) figures.rang(rangAtMs - caller.phone.calledAtMs)
  }
  await PLOTS[plot](stage, { caller, call, callees, rung: callees.map(callee => callee.call!) })
  figures.ended += 1
}

interface Cast {
  readonly caller: Member
  /** The caller's. */
  readonly call: Call
  readonly callees: readonly Member[]
  /** The same call on the callees' devices. */
  readonly rung: readonly Call[]
}

const PLOTS: Readonly<Record<Plot, (stage: Stage, cast: Cast) => Promise<void>>> = {
  async talk(stage, cast) {
    await answer(stage, cast)
    await pause(stage, TALK_MS)
    await endByEither(cast)
  },

  async group(stage, cast) {
    await answer(stage, cast)
    const { call, callees, rung } = cast
    await call.renewKey()
    const hasNewKey = (each: Call) => each.keys[0]?.epoch === 2
    await Promise.all(
      callees.map((callee, at) => callee.until('a new key was not told', () => hasNewKey(rung[at]!))),
    )
    await pause(stage, TALK_MS)
    await rung[0]!.leave()
    await pause(stage, TALK_MS)
    await call.end()
    await Promise.all(callees.slice(1).map(callee => callee.hearEnd(call)))
  },

  async decline(stage, { caller, call, rung }) {
    await pause(stage, RING_MS)
    await rung[0]!.decline()
    await caller.hearEnd(call)
  },

  async cancel(stage, { call, callees }) {
    await pause(stage, RING_MS)
    await call.end()
    await callees[0]!.hearEnd(call)
  },

  async rejoin(stage, cast) {
    await answer(stage, cast)
    const [callee, before] = [cast.callees[0]!, cast.rung[0]!]
    await pause(stage, TALK_MS)
    callee.phone.drop()
    await pause(stage, TALK_MS)
    await callee.phone.connect()
    const isBack = () => callee.call !== before && callee.call?.state === 'active'
    await callee.until('nobody gave the key', isBack)
    await endByEither({ ...cast, rung: [callee.call!] })
  },

  /** The server ends it after 65 s; a crowd that is sent home does not wait for that. */
  async unanswered(stage, { caller, call, callees }) {
    const lateAtMs = performance.now() + RING_MS_MAX
    while (!stage.closing.aborted && performance.now() < lateAtMs && call.state === 'ringing')
      await sleep(LOOK_MS)
    if (stage.closing.aborted && call.state === 'ringing') await call.end()
    else await caller.hearEnd(call)
    await callees[0]!.until('the end of a call was not told', () => callees[0]!.call?.state === 'ended')
  },
}

async function answer(stage: Stage, { rung }: Cast): Promise<void> {
  await Promise.all(
    rung.map(async call => {
      await pause(stage, RING_MS)
      await call.answer()
      if (call.keys.length === 0) throw new Failure('has no key for the call', call.callId)
    }),
  )
  stage.figures.answered += 1
}

async function endByEither({ caller, call, callees, rung }: Cast): Promise<void> {
  const isByCaller = Math.random() < 0.5
  await (isByCaller ? call : rung[0]!).end()
  await (isByCaller ? callees[0]! : caller).hearEnd(call)
}

function connectsOf(...members: readonly Member[]): number {
  return members.reduce((sum, { phone }) => sum + phone.connects, 0)
}

/** Around `ms` long. */
async function pause({ closing }: Stage, ms: number): Promise<void> {
  if (closing.aborted) return
  await sleep(ms * (0.5 + Math.random()))
}

const SHARES: readonly (readonly [Plot, number])[] = [
  ['group', 0.15],
  ['decline', 0.12],
  ['cancel', 0.1],
  ['rejoin', 0.08],
  ['unanswered', 0.01],
]
const RING_MS = 500
const TALK_MS = 2_000
/** The server's 65 s, and some for a restart of it. */
const RING_MS_MAX = 90_000
const LOOK_MS = 500
