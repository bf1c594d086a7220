/**
 * Turns the JSON lines of a run into what `bench/README.md` shows: the occasion, the table, and what each figure does
 * not show.
 *
 *     node dist/bench/report.js FILE [SECOND-FILE] [--readme bench/README.md]
 *
 * With a second file the last column has the medians of that run, to see how well they agree. `--readme` puts the
 * text between the two marks in that file instead of printing it.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Goal, Result } from './support/benchmark.ts'
import { median } from './support/statistics.ts'

/** Above it a round counts as disturbed. */
export const NEIGHBOUR_CORES_QUIET = 0.1
const ROUNDS_MIN = 3

/** The rounds of one row under the same parameters. */
interface Summary {
  readonly key: string
  readonly name: string
  readonly limitName: string
  readonly unit: string
  readonly goal: Goal | undefined
  readonly limit: number
  readonly project: number
  readonly ratio: number
  readonly ratioMin: number
  readonly ratioMax: number
  readonly cpuRatio: number | undefined
}

/** A Markdown table with a line for each row, in the order of the results. Empty for no results. */
export function formatTable(results: readonly Result[], second: readonly Result[] = []): string {
  if (results.length === 0) return ''
  const again = new Map(summarise(second).map(summary => [summary.key, summary]))
  const hasSecond = second.length > 0
  const heads = [
    'What',
    'Limit',
    'Limit figure',
    'Project',
    'Ratio, median [min–max]',
    'By CPU',
    'Goal',
    'Holds',
  ]
  if (hasSecond) heads.push('Second run')
  const lines = summarise(results).map(summary => {
    const cells = formatSummary(summary)
    return hasSecond ? [...cells, formatAgain(summary, again.get(summary.key))] : cells
  })
  return [heads, heads.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |\n`).join('')
}

/** Where, when and on what a run was made, in one sentence. */
export function formatOccasion([first]: readonly Result[]): string {
  if (first === undefined) return ''
  const { cpu, cores, node, commit } = first.machine
  return `${first.at.slice(0, 10)}, ${cores} cores of ${cpu}, Node ${node}, commit ${commit}.\n`
}

/** A list of sentences, each with the rows it is about. */
export function formatNotShown(results: readonly Result[]): string {
  const rows = new Map<string, Set<string>>()
  for (const { row } of results) {
    const names = rows.get(row.notShown) ?? new Set()
    rows.set(row.notShown, names.add(row.project))
  }
  const lines = [...rows].map(([sentence, names]) => `- ${[...names].join('; ')}: ${sentence}\n`)
  return `What the figures do not show:\n\n${lines.join('')}`
}

function summarise(results: readonly Result[]): readonly Summary[] {
  const groups = new Map<string, Result[]>()
  for (const result of results) {
    const key = `${result.row.name} ${JSON.stringify(result.parameters)}`
    groups.set(key, [...(groups.get(key) ?? []), result])
  }
  return [...groups].map(([key, all]) => {
    const rounds = quietest(all)
    const { row, parameters } = rounds[0]!
    const ratios = rounds.map(({ ratio }) => ratio)
    const cpuRatios = rounds.flatMap(({ cpuRatio = [] }) => cpuRatio)
    const { entries, actors, receivers, inFlight, than } = parameters
    const size =
      entries !== undefined
        ? `, ${formatNumber(Number(entries))} entries`
        : actors !== undefined
          ? `, ${formatNumber(Number(actors))} actors`
          : receivers !== undefined
            ? `, ${formatNumber(Number(receivers))} receivers, ${inFlight} in flight`
            : ''
    return {
      key,
      name: row.project + size,
      limitName: than === undefined ? row.limit : `the same at ${formatNumber(Number(than))}`,
      unit: row.unit,
      goal: row.goal,
      limit: median(rounds.map(({ limit }) => limit)),
      project: median(rounds.map(({ project }) => project)),
      ratio: median(ratios),
      ratioMin: Math.min(...ratios),
      ratioMax: Math.max(...ratios),
      cpuRatio: cpuRatios.length === 0 ? undefined : median(cpuRatios),
    }
  })
}

/** The rounds that nothing disturbed; where these are too few, the least disturbed ones. */
function quietest(rounds: readonly Result[]): readonly Result[] {
  const sorted = [...rounds].sort((a, b) => a.neighbourCores - b.neighbourCores)
  const quiet = sorted.filter(({ neighbourCores }) => neighbourCores <= NEIGHBOUR_CORES_QUIET)
  return sorted.slice(0, Math.max(quiet.length, ROUNDS_MIN))
}

function formatSummary(summary: Summary): string[] {
  const { name, limitName, unit, goal, limit, project, ratio, ratioMin, ratioMax, cpuRatio } = summary
  return [
    name,
    limitName,
    formatFigure(limit, unit),
    formatFigure(project, unit),
    `${formatRatio(ratio)} [${formatRatio(ratioMin)}–${formatRatio(ratioMax)}]`,
    cpuRatio === undefined ? '' : formatRatio(cpuRatio),
    goal === undefined ? '' : formatGoal(goal, unit),
    goal === undefined ? '' : holds(goal, summary) ? 'yes' : '**no**',
  ]
}

function formatAgain(first: Summary, again: Summary | undefined): string {
  if (again === undefined) return ''
  const change = Math.round((again.ratio / first.ratio - 1) * 100)
  return `${formatRatio(again.ratio)} (${change < 0 ? '−' : '+'}${Math.abs(change)} %)`
}

function holds({ of, is, value }: Goal, summary: Summary): boolean {
  return is === 'at least' ? summary[of] >= value : summary[of] <= value
}

function formatGoal({ of, is, value }: Goal, unit: string): string {
  const sign = is === 'at least' ? '≥' : '≤'
  return of === 'ratio' ? `ratio ${sign} ${value}` : `${sign} ${formatFigure(value, unit)}`
}

function formatFigure(value: number, unit: string): string {
  return `${formatNumber(value)} ${unit}`
}

function formatNumber(value: number): string {
  const text = value >= 100 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString()
  return text.replace(/\B(?=(\d{3})+$)/g, value >= 1000 ? ',' : '')
}

function formatRatio(ratio: number): string {
  return ratio.toFixed(2)
}

function readResults(path: string | undefined): readonly Result[] {
  if (path === undefined) return []
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line !== '')
  return lines.map(line => JSON.parse(line) as Result)
}

/** The text between the marks, replaced. Throws when they are not there. */
function replaceMarked(document: string, text: string): string {
  const start = document.indexOf(START_MARK)
  const end = document.indexOf(END_MARK)
  if (start < 0 || end < start) throw new Error(`no ${START_MARK} and ${END_MARK} to put the results between`)
  return `${document.slice(0, start + START_MARK.length)}\n${text}${document.slice(end)}`
}

function main(): void {
  const { values, positionals } = parseArgs({
    options: { readme: { type: 'string' } },
    allowPositionals: true,
  })
  const [path, secondPath] = positionals
  if (path === undefined) {
    process.stderr.write('usage: node dist/bench/report.js FILE [SECOND-FILE] [--readme PATH]\n')
    process.exitCode = 2
    return
  }
  const results = readResults(path)
  const table = formatTable(results, readResults(secondPath))
  const text = `${formatOccasion(results)}\n${table}\n${formatNotShown(results)}`
  if (values.readme === undefined) process.stdout.write(text)
  else writeFileSync(values.readme, replaceMarked(readFileSync(values.readme, 'utf8'), text))
}

const START_MARK = '<!-- results -->'
const END_MARK = '<!-- end of results -->'

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
