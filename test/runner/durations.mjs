/**
 * What each test file cost when it ran last, kept beside the build: the dearest begin first, and a run says what has become
 * dearer.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './processes.mjs'

const FILE = join(ROOT, '.tap', 'durations.json')
const DEAREST = 20

/** `{ [name]: { cpuS, wallS } }`; empty before the first run. */
export function readDurations() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'))
  } catch {
    return {}
  }
}

/** Keeps those of the runs, and of files that did not run. Files elsewhere than in `test` are passed over. */
export function writeDurations(before, ended) {
  const ours = ended.filter(({ name }) => name.startsWith('test/'))
  const now = Object.fromEntries(ours.map(({ name, cpuS, wallS }) => [name, { cpuS, wallS }]))
  mkdirSync(dirname(FILE), { recursive: true })
  writeFileSync(FILE, JSON.stringify({ ...before, ...now }, undefined, 1))
}

/** The lines of a table: the dearest by processor time, and how much that is more than the last time. */
export function dearest(before, ended) {
  const rows = ended.toSorted((a, b) => b.cpuS - a.cpuS).slice(0, DEAREST)
  return [
    `${rows.length === ended.length ? 'All' : `The ${DEAREST} dearest`}, in seconds: processor time, since the last run, wall time`,
    ...rows.map(({ name, cpuS, wallS }) => {
      const last = before[name]
      const more = last === undefined ? 'new' : signed(cpuS - last.cpuS)
      return `${cpuS.toFixed(1).padStart(8)} ${more.padStart(8)} ${wallS.toFixed(1).padStart(8)}  ${name}`
    }),
  ]
}

/** What the files of this run cost more than when each ran last, with those that are new; undefined for a first run. */
export function addedSince(before, ended) {
  const isKnown = ({ name }) => before[name] !== undefined
  if (!ended.some(isKnown)) return undefined
  const sum = runs => runs.reduce((all, { name, cpuS }) => all + cpuS - (before[name]?.cpuS ?? 0), 0)
  const fresh = ended.filter(run => !isKnown(run))
  const known = `${signed(sum(ended.filter(isKnown)))} s in known files`
  return fresh.length === 0 ? known : `${known}, ${signed(sum(fresh))} s in new files`
}

function signed(seconds) {
  return `${seconds < 0 ? '-' : '+'}${Math.abs(seconds).toFixed(1)}`
}
