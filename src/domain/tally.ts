/**
 * How many codes were sent or tried lately and how many were confirmed, by slots of ten minutes: exact enough for budgets
 * of an hour or a day, and bounded however many there are.
 */

/** Number of the slot since 1970, codes in it, confirmed ones in it. */
export type TallySlot = readonly [slot: number, made: number, confirmed: number]
/** Oldest first. */
export type Tally = readonly TallySlot[]

export interface TallySum {
  readonly made: number
  readonly confirmed: number
}

/** How many unconfirmed codes there may be within a window. */
export interface TallyRule {
  readonly perMs: number
  /** So many are allowed in any case. */
  readonly floor: number
  /** Beyond that, so many for each code that was confirmed within `confirmedPerMs`. */
  readonly perConfirmed: number
  readonly confirmedPerMs: number
}

export const NO_TALLY: Tally = []

export function tallyMade(tally: Tally, nowMs: number, count = 1): Tally {
  return added(tally, nowMs, count, 0)
}

export function tallyConfirmed(tally: Tally, nowMs: number, count = 1): Tally {
  return added(tally, nowMs, 0, count)
}

/** Without one code of then. */
export function tallyTakenBack(tally: Tally, madeAtMs: number): Tally {
  const slot = Math.floor(madeAtMs / SLOT_MS)
  return tally.map(each => (each[0] === slot ? [slot, Math.max(0, each[1] - 1), each[2]] : each))
}

/** Slots further ahead than the window is wide were written by a clock that has been set back since: they don't count. */
export function sumWithin(tally: Tally, perMs: number, nowMs: number): TallySum {
  let [made, confirmed] = [0, 0]
  for (const [slot, slotMade, slotConfirmed] of tally) {
    const startsAtMs = slot * SLOT_MS
    if (startsAtMs + SLOT_MS + perMs <= nowMs || startsAtMs > nowMs + perMs) continue
    made += slotMade
    confirmed += slotConfirmed
  }
  return { made, confirmed }
}

/** Milliseconds until the rule allows another code; 0 when it does now. */
export function missingForTally(tally: Tally, rule: TallyRule, nowMs: number): number {
  if (isAllowed(tally, rule, nowMs)) return 0
  const leavingMs = tally.map(([slot]) => (slot + 1) * SLOT_MS + rule.perMs)
  const untilMs = leavingMs.find(atMs => atMs > nowMs && isAllowed(tally, rule, atMs))
  return (untilMs ?? nowMs + rule.perMs) - nowMs
}

/** When nothing in the tally matters any more, milliseconds since 1970. */
export function tallyEndMs(tally: Tally): number {
  const last = tally.at(-1)
  return last === undefined ? 0 : (last[0] + 1 + SLOTS_KEPT) * SLOT_MS
}

function isAllowed(tally: Tally, rule: TallyRule, nowMs: number): boolean {
  const { made, confirmed } = sumWithin(tally, rule.perMs, nowMs)
  const allowed = rule.perConfirmed * sumWithin(tally, rule.confirmedPerMs, nowMs).confirmed
  return made - confirmed < Math.max(rule.floor, allowed)
}

function added(tally: Tally, nowMs: number, made: number, confirmed: number): Tally {
  const slot = Math.floor(nowMs / SLOT_MS)
  const [, madeBefore, confirmedBefore] = tally.find(([at]) => at === slot) ?? [slot, 0, 0]
  const others = tally.filter(([at]) => at !== slot && Math.abs(at - slot) <= SLOTS_KEPT)
  return [...others, [slot, madeBefore + made, confirmedBefore + confirmed] as const].sort(
    ([left], [right]) => left - right,
  )
}

const SLOT_MS = 600_000
/** A day. */
const SLOTS_KEPT = 144
