/**
 * The figures of several processes as one answer to Prometheus. In its text form a metric stands once, with all its
 * samples behind its HELP and TYPE: a label names the process.
 */

import assert from 'node:assert'

/** One process, and its figures as `Metrics.text` has them. */
export interface ProcessMetrics {
  readonly process: string
  readonly text: string
}

interface Family {
  /** The lines of HELP and TYPE, by these words. */
  readonly head: Map<string, string>
  readonly samples: string[]
}

/** Adds a label `process` to every sample. The figures of one process alone stay as they are. */
export function mergeMetrics(processes: readonly ProcessMetrics[]): string {
  const [first, ...others] = processes
  if (first !== undefined && others.length === 0) return first.text
  const families = new Map<string, Family>()
  for (const { process, text } of processes) addFamilies(families, text, `process="${escapeLabel(process)}"`)
  const texts = Array.from(families.values(), ({ head, samples }) =>
    [...head.values(), ...samples].join('\n'),
  )
  return `${texts.join('\n\n')}\n`
}

/** Samples belong to the HELP and TYPE above them. */
function addFamilies(families: Map<string, Family>, text: string, label: string): void {
  let family: Family | undefined
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, word, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
    if (word === undefined || name === undefined) {
      assert(family !== undefined, 'a sample stands below the type of its metric')
      family.samples.push(withLabel(line, label))
      continue
    }
    family = families.get(name) ?? { head: new Map(), samples: [] }
    families.set(name, family)
    if (!family.head.has(word)) family.head.set(word, line)
  }
}

/** Looks at the name alone: the values of labels may hold anything. */
function withLabel(sample: string, label: string): string {
  const [name = ''] = /^[\w:]+/.exec(sample) ?? []
  const rest = sample.slice(name.length)
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
