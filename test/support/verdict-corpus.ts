/**
 * Makes a corpus of cases with the verdict of `@callsign/sdk/client` on each, for implementations in other languages: JSON lines.
 *
 *     node dist/test/support/verdict-corpus.js > corpus.jsonl
 *
 * `CALLSIGN_CORPUS_CASES` says how many, `CALLSIGN_SEED` from which seed. The first line has the keys of the logs. A case is
 * a base of its kind with edits, as `verdict-edits.ts` makes them. `test/vectors/client-verdicts.jsonl` is the corpus of
 * `FROZEN`. The tests in `kotlin/` read that one, and the one that `CALLSIGN_CORPUS` names.
 */
import { pathToFileURL } from 'node:url'
import { parseLogKeys } from '../../src/client/client.ts'
import { randomFrom, seedOf } from './seed.ts'
import { allBases, NAMED_KEYS } from './verdict-bases.ts'
import { type Edit, edited, type Json, Mutator } from './verdict-edits.ts'
import { JUDGES } from './verdict-judges.ts'

/** The corpus that is kept as vectors. */
export const FROZEN = { seed: 1, cases: 2_000 } as const

export interface VerdictCase {
  readonly kind: string
  readonly base: string
  readonly edits: readonly Edit[]
  readonly verdict: string
}

/** The lines of a corpus, each without its newline. */
export async function* corpusLines({ seed, cases }: { seed: number; cases: number }): AsyncGenerator<string> {
  const bases = await allBases()
  yield JSON.stringify({ seed, keys: NAMED_KEYS })
  for (const [kind, { values }] of Object.entries(bases)) {
    for (const [name, value] of Object.entries(values)) yield JSON.stringify({ kind, name, value })
  }
  for (const [kind, { values }] of Object.entries(bases)) {
    for (const base of Object.keys(values)) yield JSON.stringify(await judged(kind, base, values[base]!, []))
  }
  const random = randomFrom(seed)
  const kinds = Object.entries(bases).flatMap(([kind, { share }]) => Array<string>(share).fill(kind))
  for (let made = 0; made < cases; ) {
    const kind = kinds[Math.floor(random() * kinds.length)]!
    const { shape, values } = bases[kind]!
    const mutator = new Mutator(random, shape)
    const [base, donor] = [mutator.pick(Object.keys(values)), mutator.pick(Object.values(values))]
    const edits = mutator.edits(values[base]!, donor)
    if (edits.length === 0) continue
    yield JSON.stringify(await judged(kind, base, values[base]!, edits))
    made++
  }
}

const keys = Object.fromEntries(Object.entries(NAMED_KEYS).map(([name, each]) => [name, parseLogKeys(each)]))

async function judged(kind: string, base: string, value: Json, edits: readonly Edit[]): Promise<VerdictCase> {
  const members = edited(value, edits) as { readonly [member: string]: Json }
  return { kind, base, edits, verdict: await JUDGES[kind]!(members, name => keys[name]!) }
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  const cases = Number(process.env.CALLSIGN_CORPUS_CASES ?? FROZEN.cases)
  const isFrozen = process.env.CALLSIGN_CORPUS_CASES === undefined && process.env.CALLSIGN_SEED === undefined
  for await (const line of corpusLines({ seed: isFrozen ? FROZEN.seed : seedOf(), cases })) {
    if (!process.stdout.write(`${line}\n`))
      await new Promise(resolve => process.stdout.once('drain', resolve))
  }
}
