/** Files of stories in `test/vectors`, which every language plays: values, situations, stories, and pairs that never meet. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export interface StoryFile<Story> {
  readonly stories: readonly Story[]
  readonly situations: ReadonlyMap<string, Story>
  readonly impossible: readonly Impossible[]
  /** The lines that have this member. */
  readonly all: <Line>(member: string) => Line[]
}

/** Pairs of state and input that never meet. */
interface Impossible {
  readonly impossible: readonly string[]
  readonly inputs: readonly string[]
}

export function readStoryFile<Story>(name: string): StoryFile<Story> {
  const path = join(PROJECT_ROOT, `test/vectors/${name}.jsonl`)
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  const values = new Map<string, object>()
  const read = lines.map(line => {
    const said = expand(JSON.parse(line), values) as Record<string, unknown>
    if (typeof said.value === 'string') values.set(said.value, said.is as object)
    return said
  })
  const all = <Line>(member: string) => read.filter(one => member in one) as Line[]
  const situations = all<Story & { readonly situation: string }>('situation')
  return {
    stories: all<Story>('name'),
    situations: new Map(situations.map(one => [one.situation, one])),
    impossible: all<Impossible>('impossible'),
    all,
  }
}

/** Compares the pairs that the stories met with those that they should. */
export function comparePairs(
  file: StoryFile<unknown>,
  met: ReadonlySet<string>,
  states: readonly string[],
  inputs: readonly string[],
) {
  const pairsOf = (states: readonly string[], inputs: readonly string[]) =>
    states.flatMap(state => inputs.map(input => `${state} / ${input}`))
  const all = pairsOf(states, inputs)
  const impossible = file.impossible.flatMap(({ impossible, inputs }) => pairsOf(impossible, inputs))
  return {
    unmet: all.filter(pair => !met.has(pair) && !impossible.includes(pair)),
    metAfterAll: impossible.filter(pair => met.has(pair) || !all.includes(pair)),
    unknown: [...met].filter(pair => !all.includes(pair)),
  }
}

/** `like` names a value, and the members beside it take the place of its own. */
function expand(said: unknown, values: ReadonlyMap<string, object>): unknown {
  if (Array.isArray(said)) return said.map(one => expand(one, values))
  if (typeof said !== 'object' || said === null) return said
  const { like, ...own } = said as Record<string, unknown>
  const members = Object.entries(own).map(([name, value]) => [name, expand(value, values)])
  if (like !== undefined && !values.has(String(like))) throw new Error(`no value ${like}`)
  return { ...(like !== undefined && values.get(String(like))), ...Object.fromEntries(members) }
}
