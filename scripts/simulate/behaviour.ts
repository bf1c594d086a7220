/** How a fake user treats a call: one who is called, and the same one when they call. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Behaviour } from '../../src/operations/console/events.ts'
import type { CallPart, Person } from './person.ts'

/** Milliseconds; all of them are as many times longer as `--pace` says. */
export interface Pauses {
  /** It rings before it is answered or declined. */
  readonly ringing: number
  /** It rings before a silent callee counts as away; see docs/protocol/calls.md. */
  readonly patience: number
  /** In the call before the connection is lost. */
  readonly beforeDrop: number
  /** Without a connection: who comes back, and who is to be taken for lost. */
  readonly away: number
  readonly gone: number
  /** In the call before they hang up. */
  readonly talk: number
}

export function pausesAt(pace: number): Pauses {
  const pause = (seconds: number) => seconds * 1_000 * pace
  return {
    ringing: pause(3),
    patience: pause(60),
    beforeDrop: pause(10),
    away: pause(5),
    gone: pause(120),
    talk: pause(60),
  }
}

/** A call that rings, from the invitation to its end for this person. */
export async function beCalled(person: Person, behaviour: Behaviour, part: CallPart): Promise<void> {
  const { ringing, patience } = person.pauses
  if (!(await part.lasts(behaviour === 'time-out' ? patience : ringing))) return
  if (behaviour === 'decline') return person.decline(part, 'declined')
  if (behaviour === 'time-out') return person.decline(part, 'timeout')
  await person.answer(part)
  await beInCall(person, behaviour, part)
}

/** Their own call, once answered. */
export async function beInCall(person: Person, behaviour: Behaviour, part: CallPart): Promise<void> {
  const { beforeDrop, away, gone, talk } = person.pauses
  if (behaviour === 'drop' || behaviour === 'drop-and-rejoin') {
    if (!(await part.lasts(beforeDrop))) return
    person.drop()
    await sleep(behaviour === 'drop' ? gone : away)
    await person.reconnect()
    if (behaviour === 'drop') return person.lose(part)
    await person.rejoin(part)
  }
  if (await part.lasts(talk)) await person.hangUp(part)
}

/** Their own call, unanswered yet: a decliner gives up soon, the rest let it ring. */
export async function awaitAnswer(person: Person, behaviour: Behaviour, part: CallPart): Promise<void> {
  if (behaviour === 'decline' && (await part.lasts(2 * person.pauses.ringing))) await person.giveUp(part)
}

/** For people to read. */
export const BEHAVIOURS: Readonly<Record<Behaviour, { readonly name: string; readonly does: string }>> = {
  answer: { name: 'Anna Answers', does: 'answers, and hangs up after a minute' },
  decline: { name: 'Dan Declines', does: 'declines; calls and gives up' },
  'time-out': { name: 'Tina Timeout', does: 'never answers' },
  drop: { name: 'Drew Drops', does: 'answers, then loses the connection for two minutes' },
  'drop-and-rejoin': { name: 'Remy Rejoins', does: 'answers, loses connection and key, and comes back' },
}
