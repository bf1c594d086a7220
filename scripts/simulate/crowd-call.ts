/** One call within a crowd, played to its end: who does what, and what everybody has to hear. */

import { setTimeout as sleep } from 'node:timers/promises'
import { CallPart } from './call-part.ts'
import type { Figures } from './figures.ts'
import { Failure, type KeyLedger, type Member } from './member.ts'

/** The course of a call. */
export type Plot = 'talk' | 'group' | 'decline' | 'cancel' | 'rejoin' | 'unanswered'

export interface Stage {
  readonly figures: Figures
  readonly ledger: KeyLedger
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

/** Resolves when everybody has heard the end. Throws a `Failure` or a `Refusal`. */
export async function playCall(
  stage: Stage,
  plot: Plot,
  caller: Member,
  callees: readonly Member[],
): Promise<void> {
  const { figures, ledger } = stage
  const connects = connectsOf(caller, ...callees)
  const startMs = performance.now()
  const part = await CallPart.start(
    caller.phone,
    caller,
    callees.map(({ phone }) => phone.holder),
    Math.random() < 0.5,
  )
  caller.part = part
  figures.started += 1
  try {
    const calls = await Promise.all(callees.map(callee => answerRing(callee, part.callId, startMs)))
    for (const { atMs } of calls) {
      // After a broken connection it is the pause before the next one that is measured.
      if (connectsOf(caller, ...callees) === connects) figures.rang(atMs - startMs)
    }
    await PLOTS[plot](stage, { caller, part, callees, parts: calls.map(call => call.part) })
    figures.ended += 1
  } finally {
    ledger.forget(part.callId, EPOCHS_MAX)
  }
}

interface Cast {
  readonly caller: Member
  /** The caller's. */
  readonly part: CallPart
  readonly callees: readonly Member[]
  readonly parts: readonly CallPart[]
}

/** The invitation comes, and the device says that it rings. */
async function answerRing(callee: Member, callId: string, startMs: number) {
  const { told, atMs } = await callee.hear('call_invitation', callId)
  const part = CallPart.ringing(callee.phone, callee, told)
  callee.part = part
  await part.ring(told.eventId)
  return { part, atMs: Math.max(atMs, startMs) }
}

const PLOTS: Readonly<Record<Plot, (stage: Stage, cast: Cast) => Promise<void>>> = {
  async talk(stage, cast) {
    await join(stage, cast)
    await pause(stage, TALK_MS)
    await endByEither(cast)
  },

  async group(stage, cast) {
    await join(stage, cast)
    const { caller, part, callees, parts } = cast
    await part.rotate('rotation')
    await Promise.all(callees.map((callee, at) => callee.hearKey(parts[at]!, 2)))
    await pause(stage, TALK_MS)
    await parts[0]!.leave()
    await pause(stage, TALK_MS)
    await part.end()
    await Promise.all(callees.map((callee, at) => callee.hearEnd(parts[at]!)))
    await caller.hearEnd(part)
  },

  async decline(stage, { caller, part, parts }) {
    await pause(stage, RING_MS)
    await parts[0]!.decline('declined')
    await caller.hearEnd(part)
  },

  async cancel(stage, { part, callees, parts }) {
    await pause(stage, RING_MS)
    await part.end()
    await callees[0]!.hearEnd(parts[0]!)
  },

  async rejoin(stage, cast) {
    await join(stage, cast)
    const [callee, part] = [cast.callees[0]!, cast.parts[0]!]
    await pause(stage, TALK_MS)
    part.forget()
    callee.phone.drop()
    await pause(stage, TALK_MS)
    await callee.phone.connect()
    if (!(await part.comeBack())) throw new Failure('nobody gave the key', part.callId)
    await endByEither(cast)
  },

  /** The server ends it after 65 s; a crowd that is sent home does not wait for that. */
  async unanswered(stage, { caller, part, callees, parts }) {
    const lateAtMs = performance.now() + RING_MS_MAX
    while (!stage.closing.aborted && performance.now() < lateAtMs && (await part.lasts(LOOK_MS))) {}
    if (stage.closing.aborted && !part.isOver) await part.end()
    await callees[0]!.hearEnd(parts[0]!)
    await caller.hearEnd(part)
  },
}

async function join(stage: Stage, { parts }: Cast): Promise<void> {
  await Promise.all(
    parts.map(async part => {
      await pause(stage, RING_MS)
      await part.join()
    }),
  )
  stage.figures.answered += 1
}

async function endByEither({ caller, part, callees, parts }: Cast): Promise<void> {
  await (Math.random() < 0.5 ? part : parts[0]!).end()
  await caller.hearEnd(part)
  await callees[0]!.hearEnd(parts[0]!)
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
/** For a call in a crowd. */
const EPOCHS_MAX = 8
