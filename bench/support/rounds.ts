/** Limit and project side by side: measured in short turns, one after the other, in the other order each time. */

import { median } from './statistics.ts'

/** The figures of both sides, one for each turn. */
export interface Turns<Limit, Project = Limit> {
  readonly limit: readonly Limit[]
  readonly project: readonly Project[]
}

/**
 * Measures both so many times. Whatever else the machine does, and however both warm up, then meets them alike.
 */
export async function interleaved<Limit, Project = Limit>(
  round: number,
  turns: number,
  measureLimit: () => Promise<Limit>,
  measureProject: () => Promise<Project>,
): Promise<Turns<Limit, Project>> {
  const limit: Limit[] = []
  const project: Project[] = []
  await inTurns(round, turns, [
    async () => void limit.push(await measureLimit()),
    async () => void project.push(await measureProject()),
  ])
  return { limit, project }
}

/** The same with more sides beside the two, each by its name. */
export async function interleavedWith<Figure>(
  round: number,
  turns: number,
  measures: { readonly limit: Measure<Figure>; readonly project: Measure<Figure> },
  others: ReadonlyMap<string, Measure<Figure>>,
): Promise<Turns<Figure> & { readonly others: ReadonlyMap<string, readonly Figure[]> }> {
  const limit: Figure[] = []
  const project: Figure[] = []
  const figures = new Map<string, Figure[]>([...others.keys()].map(name => [name, []]))
  await inTurns(round, turns, [
    async () => void limit.push(await measures.limit()),
    async () => void project.push(await measures.project()),
    ...[...others].map(
      ([name, measure]) =>
        async () =>
          void figures.get(name)?.push(await measure()),
    ),
  ])
  return { limit, project, others: figures }
}

export type Measure<Figure> = () => Promise<Figure>

async function inTurns(
  round: number,
  turns: number,
  measures: readonly (() => Promise<void>)[],
): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    const ordered = (round + turn) % 2 === 1 ? measures : [...measures].reverse()
    for (const measure of ordered) await measure()
  }
}

/**
 * The median of what `measure` comes to, again and again for a quarter of a second. For work of milliseconds: measured
 * once, that is what else the machine did just then.
 */
export async function medianOfMany(measure: () => number | Promise<number>): Promise<number> {
  const figures: number[] = []
  const endMs = performance.now() + MANY_MS
  do figures.push(await measure())
  while (performance.now() < endMs)
  return median(figures)
}

const MANY_MS = 250
