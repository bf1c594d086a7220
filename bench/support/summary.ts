/** The result of one row's rounds: medians, extremes, and whether the goal holds. */

import type { Cost, Goal, Result, Row } from './benchmark.ts'
import { median, uncertainty } from './statistics.ts'

/** Above it a round counts as disturbed. */
export const NEIGHBOUR_CORES_QUIET = 0.1
const ROUNDS_MIN = 3
/** With a figure this certain in two runs, one pair in twenty differs by more than a seventh. */
const UNCERTAINTY_MAX = 0.1

/** The rounds of one row under the same parameters. */
export interface Summary {
  /** The same in another run of the same row. */
  readonly key: string
  readonly row: Row
  /** The number of entries, users, connections or receivers, as words; empty for none. */
  readonly size: string
  readonly limitName: string
  readonly limit: number
  readonly project: number
  readonly ratio: number
  readonly ratioMin: number
  readonly ratioMax: number
  readonly cpuRatio: number | undefined
  readonly limitCost: Cost
  readonly projectCost: Cost
  /** The medians of other servers that were measured beside, by name, in the unit of the row. */
  readonly peers: ReadonlyMap<string, number>
}

/** A summary for each row and its parameters, in the order of the results. */
export function summarise(results: readonly Result[]): readonly Summary[] {
  return [...byRow(results)].map(([key, all]) => summaryOf(key, quietest(all)))
}

/** Whether another run would come to much the same, in the figures that goals are of. */
export function areSettled(results: readonly Result[]): boolean {
  return [...byRow(results).values()].every(all => {
    const { goal } = all[0]!.row
    if (goal === undefined) return true
    return uncertainty(quietest(all).flatMap(result => result[goal.of] ?? [])) <= UNCERTAINTY_MAX
  })
}

function byRow(results: readonly Result[]): ReadonlyMap<string, readonly Result[]> {
  const groups = new Map<string, Result[]>()
  for (const result of results) {
    const key = `${result.row.name} ${JSON.stringify(result.parameters)}`
    groups.set(key, [...(groups.get(key) ?? []), result])
  }
  return groups
}

/** Whether the goal of the row is reached; undefined where there is none. */
export function holds(summary: Summary): boolean | undefined {
  const { goal } = summary.row
  if (goal === undefined) return undefined
  const figure = summary[goal.of] ?? Number.NaN
  return goal.is === 'at least' ? figure >= goal.value : figure <= goal.value
}

export function formatGoal({ of, is, value }: Goal, unit: string): string {
  const sign = is === 'at least' ? '≥' : '≤'
  if (of === 'cpuRatio') return `by CPU ${sign} ${value}`
  return of === 'ratio' ? `ratio ${sign} ${value}` : `${sign} ${formatFigure(value, unit)}`
}

export function formatFigure(value: number, unit: string): string {
  return `${formatNumber(value)} ${unit}`
}

export function formatRatio(ratio: number): string {
  return ratio.toFixed(2)
}

function summaryOf(key: string, rounds: readonly Result[]): Summary {
  const { row, parameters } = rounds[0]!
  const ratios = rounds.map(({ ratio }) => ratio)
  const cpuRatios = rounds.flatMap(({ cpuRatio = [] }) => cpuRatio)
  const { than } = parameters
  return {
    key,
    row,
    size: sizeOf(rounds[0]!),
    limitName: than === undefined ? row.limit : `the same at ${formatNumber(Number(than))}`,
    limit: median(rounds.map(({ limit }) => limit)),
    project: median(rounds.map(({ project }) => project)),
    ratio: median(ratios),
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
    cpuRatio: cpuRatios.length === 0 ? undefined : median(cpuRatios),
    limitCost: medianCost(rounds.flatMap(({ costs }) => costs?.limit ?? [])),
    projectCost: medianCost(rounds.flatMap(({ costs }) => costs?.project ?? [])),
    peers: peersOf(rounds),
  }
}

function sizeOf({ parameters }: Result): string {
  const counted = SIZES.find(name => parameters[name] !== undefined)
  if (counted === undefined) return ''
  const { inFlight } = parameters
  const words = `${formatNumber(Number(parameters[counted]))} ${counted}`
  return inFlight === undefined ? words : `${words}, ${inFlight} in flight`
}

function peersOf(rounds: readonly Result[]): ReadonlyMap<string, number> {
  const names = new Set(rounds.flatMap(({ peers = {} }) => Object.keys(peers)))
  const figuresOf = (name: string) => rounds.flatMap(({ peers }) => peers?.[name] ?? [])
  return new Map([...names].map(name => [name, median(figuresOf(name))]))
}

function medianCost(costs: readonly Cost[]): Cost {
  const known = COST_FIGURES.map(name => [name, costs.flatMap(cost => cost[name] ?? [])] as const)
  return Object.fromEntries(
    known.filter(([, figures]) => figures.length > 0).map(([name, figures]) => [name, median(figures)]),
  )
}

/** The rounds that nothing disturbed; where these are too few, the least disturbed ones. */
function quietest(rounds: readonly Result[]): readonly Result[] {
  const sorted = [...rounds].sort((a, b) => a.neighbourCores - b.neighbourCores)
  const quiet = sorted.filter(({ neighbourCores }) => neighbourCores <= NEIGHBOUR_CORES_QUIET)
  return sorted.slice(0, Math.max(quiet.length, ROUNDS_MIN))
}

export function formatNumber(value: number): string {
  const text = value >= 100 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString()
  return text.replace(/\B(?=(\d{3})+$)/g, value >= 1000 ? ',' : '')
}

const COST_FIGURES = ['cpuMicroseconds', 'writtenBytes', 'diskBytes', 'fdatasyncs'] as const
/** Parameters that say of how much a row speaks. */
const SIZES = ['entries', 'actors', 'receivers', 'connections', 'users', 'people'] as const
