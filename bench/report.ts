/**
 * Turns the JSON lines of runs into the table and the sentences of `bench/README.md`.
 *
 *     node dist/bench/report.js FILE [SECOND-FILE] [--publish]
 *
 * With a second file the last column has the medians of that run, to see how well they agree. `--publish` writes the
 * text between the marks instead of printing them.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Cost, Result, Row } from './support/benchmark.ts'
import {
  formatFigure,
  formatGoal,
  formatNumber,
  formatRatio,
  holds,
  type Summary,
  summarise,
} from './support/summary.ts'

/** A Markdown table with a line for each row, in the order of the results. Empty for no results. */
export function formatTable(results: readonly Result[], second: readonly Result[] = []): string {
  if (results.length === 0) return ''
  const again = new Map(summarise(second).map(summary => [summary.key, summary]))
  const summaries = summarise(results)
  const heads = ['What', 'Limit', 'Limit figure', 'Project', 'Ratio, median [min–max]', 'By CPU']
  heads.push(...COST_HEADS)
  heads.push('Goal', 'Holds', ...(second.length > 0 ? ['Second run'] : []))
  return tableOf(
    heads,
    summaries.map(summary => [
      ...cellsOf(summary),
      ...costCells(summary),
      ...goalCells(summary),
      ...(second.length > 0 ? [formatAgain(summary, again.get(summary.key))] : []),
    ]),
  )
}

/** Where, when and on what a run was made, in one sentence. */
function formatOccasion([first]: readonly Result[]): string {
  if (first === undefined) return ''
  const { cpu, cores, node, commit } = first.machine
  return `${first.at.slice(0, 10)}, ${cores} cores of ${cpu}, Node ${node}, commit ${commit}.\n`
}

/** Other servers that were measured in the same turns; empty where none were. */
export function formatPeers(results: readonly Result[]): string {
  const lines = summarise(results).flatMap(summary => {
    const { row, project, peers } = summary
    if (peers.size === 0) return []
    const figures = [['this server', project] as const, ...peers]
    return figures.map(([name, figure], at) => [
      at === 0 ? nameOf(summary) : '',
      name,
      formatFigure(figure, row.unit),
      formatRatio(figure / project),
    ])
  })
  if (lines.length === 0) return ''
  return `Peers:\n\n${tableOf(['What', 'Server', 'Figure', 'Beside this server'], lines)}\n`
}

/** Why some goals are no higher, each with the rows it is about. */
function formatReasons(results: readonly Result[]): string {
  const lines = groupedBy(results, ({ goal }) => goal?.because)
  return lines === '' ? '' : `Goals that something else bounds:\n\n${lines}\n`
}

/** The limits of the figures, likewise. */
function formatNotShown(results: readonly Result[]): string {
  return `What the figures do not show:\n\n${groupedBy(results, ({ notShown }) => notShown)}`
}

/** A line for each sentence that rows have, with the names of these rows. */
function groupedBy(results: readonly Result[], sentenceOf: (row: Row) => string | undefined): string {
  const names = new Map<string, Set<string>>()
  for (const { row } of results) {
    const sentence = sentenceOf(row)
    if (sentence !== undefined) names.set(sentence, (names.get(sentence) ?? new Set()).add(row.project))
  }
  return [...names].map(([sentence, rows]) => `- ${[...rows].join('; ')}: ${sentence}\n`).join('')
}

function tableOf(heads: readonly string[], lines: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |\n`).join('')
}

function nameOf({ row, size }: Summary): string {
  return size === '' ? row.project : `${row.project}, ${size}`
}

function cellsOf(summary: Summary): string[] {
  const { row, limitName, limit, project, ratio, ratioMin, ratioMax, cpuRatio } = summary
  return [
    nameOf(summary),
    limitName,
    formatFigure(limit, row.unit),
    formatFigure(project, row.unit),
    `${formatRatio(ratio)} [${formatRatio(ratioMin)}–${formatRatio(ratioMax)}]`,
    cpuRatio === undefined ? '' : formatRatio(cpuRatio),
  ]
}

/** The project's, and in brackets the limit's. */
function costCells({ limitCost, projectCost }: Summary): string[] {
  const cell = (figure: keyof Cost, format: (value: number) => string) => {
    const [limit, project] = [limitCost[figure], projectCost[figure]]
    if (project === undefined || format(project) === '') return ''
    return `${format(project)}${limit === undefined || format(limit) === '' ? '' : ` (${format(limit)})`}`
  }
  return [
    cell('cpuMicroseconds', value => `${formatNumber(value)} µs`),
    cell('writtenBytes', value => (value < KB_MIN ? '' : `${formatNumber(value / 1000)} kB`)),
    cell('fdatasyncs', value => (value < SYNCS_MIN ? '' : formatNumber(value))),
  ]
}

function goalCells(summary: Summary): string[] {
  const { goal, unit } = summary.row
  if (goal === undefined) return ['', '']
  return [formatGoal(goal, unit), holds(summary) ? 'yes' : '**no**, see below']
}

function formatAgain(first: Summary, again: Summary | undefined): string {
  if (again === undefined) return ''
  const change = Math.round((again.ratio / first.ratio - 1) * 100)
  return `${formatRatio(again.ratio)} (${change < 0 ? '−' : '+'}${Math.abs(change)} %)`
}

function readResults(path: string | undefined): readonly Result[] {
  if (path === undefined) return []
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line !== '')
  return lines.map(line => JSON.parse(line) as Result)
}

/** Replaces the text between the marks of a file. Throws when they are not there. */
function writeMarked(path: string, text: string): void {
  const document = readFileSync(path, 'utf8')
  const start = document.indexOf(START_MARK)
  const end = document.indexOf(END_MARK)
  if (start < 0 || end < start) throw new Error(`${path} has no ${START_MARK} and ${END_MARK}`)
  writeFileSync(path, `${document.slice(0, start + START_MARK.length)}\n${text}${document.slice(end)}`)
}

function main(): void {
  const { values, positionals } = parseArgs({
    options: { publish: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [path, secondPath] = positionals
  if (path === undefined) {
    process.stderr.write('usage: node dist/bench/report.js FILE [SECOND-FILE] [--publish]\n')
    process.exitCode = 2
    return
  }
  const results = readResults(path)
  const occasion = formatOccasion(results)
  const table = formatTable(results, readResults(secondPath))
  const whole = `${occasion}\n${table}\n${formatPeers(results)}${formatReasons(results)}${formatNotShown(results)}`
  if (values.publish) writeMarked('bench/README.md', whole)
  else process.stdout.write(whole)
}

const COST_HEADS = ['Processor time each', 'Written each', 'fdatasyncs each']
/** Below it, an operation writes nothing but a line of the log now and then. */
const KB_MIN = 20
const SYNCS_MIN = 0.0005
const START_MARK = '<!-- results -->'
const END_MARK = '<!-- end of results -->'

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
