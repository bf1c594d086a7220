/** Changes of JSON values that are written down and made again by another program, and random ones. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json }
export type JsonPath = readonly (string | number)[]

/**
 * - `cut`: in the text at `at`, from a position on so many UTF-16 units are replaced
 * - `set`: the value is replaced, or added
 * - `unset`: it is taken out of its object or array
 */
export type Edit =
  | { readonly at: JsonPath; readonly cut: readonly [from: number, removed: number, inserted: string] }
  | { readonly at: JsonPath; readonly set: Json }
  | { readonly at: JsonPath; readonly unset: true }

/** The value with the edits, one after the other. */
export function edited(value: Json, edits: readonly Edit[]): Json {
  return edits.reduce(editedOnce, value)
}

function editedOnce(value: Json, edit: Edit): Json {
  const copy = structuredClone(value) as Json
  const last = edit.at.at(-1)!
  let parent = copy as Record<string | number, Json>
  for (const step of edit.at.slice(0, -1)) parent = parent[step] as Record<string | number, Json>
  if ('set' in edit) parent[last] = edit.set
  else if ('cut' in edit) {
    const [from, removed, inserted] = edit.cut
    const text = parent[last] as string
    parent[last] = text.slice(0, from) + inserted + text.slice(from + removed)
  } else if (Array.isArray(parent)) parent.splice(last as number, 1)
  else delete parent[last]
  return copy
}

/** The members of a kind of case, by the first step of their paths. */
export interface Shape {
  /** Not to be changed. */
  readonly fixed?: readonly string[]
  /** Texts of octets, which stay so. */
  readonly hex?: readonly string[]
  /** A stranger's JSON: any member may be missing or of another type. */
  readonly loose?: readonly string[]
}

/** Makes random edits of values of one shape. */
export class Mutator {
  readonly #random: () => number
  readonly #shape: Shape

  constructor(random: () => number, shape: Shape = {}) {
    this.#random = random
    this.#shape = shape
  }

  below(bound: number): number {
    return Math.floor(this.#random() * bound)
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)]!
  }

  /** One to three edits; `donor` is another value of the same shape, from which members may be taken. */
  edits(value: Json, donor: Json): Edit[] {
    const edits: Edit[] = []
    let now = value
    const count = this.below(10) < 8 ? 1 : 1 + this.below(3)
    for (let turn = 0; turn < count; turn++) {
      const edit = this.#edit(now, donor)
      if (edit === undefined) continue
      edits.push(edit)
      now = editedOnce(now, edit)
    }
    return edits
  }

  #edit(value: Json, donor: Json): Edit | undefined {
    const leaves = [...leavesOf(value, [])].filter(([path]) => !this.#is('fixed', path))
    if (leaves.length === 0) return undefined
    // Long texts are where the forms are.
    const weights = leaves.map(([, leaf]) =>
      typeof leaf === 'string' ? 20 + Math.min(leaf.length, 400) : 20,
    )
    let at = this.below(weights.reduce((sum, weight) => sum + weight, 0))
    let index = 0
    while (at >= weights[index]!) at -= weights[index++]!
    const [path, leaf] = leaves[index]!
    const way = this.below(40)
    if (way === 0 && this.#is('loose', path)) return { at: path, unset: true }
    if (way === 1 && this.#is('loose', path)) return { at: path, set: this.pick(STRANGERS) }
    if (way < 6) {
      const other = valueAt(donor, path)
      return typeof other !== typeof leaf || other === leaf ? undefined : { at: path, set: other! }
    }
    if (typeof leaf === 'number') return { at: path, set: this.#number(leaf) }
    if (typeof leaf !== 'string') return undefined
    return { at: path, cut: this.#is('hex', path) ? this.#cutOfHex(leaf) : this.#cut(leaf) }
  }

  #is(kind: keyof Shape, [member]: JsonPath): boolean {
    return this.#shape[kind]?.includes(member as string) ?? false
  }

  #number(value: number): number {
    const near = [value + 1, value - 1, 2 * value, Math.floor(value / 2)]
    return this.pick([...near, ...near, 0, 1, -1, 2 ** 32, Number.MAX_SAFE_INTEGER])
  }

  #cut(text: string): [number, number, string] {
    const way = this.below(12)
    if (way < 4) return this.#cutOfBase64(text) ?? this.#cutOfLine(text)
    if (way < 6) return this.#cutOfLine(text)
    if (way === 6) return this.#cutOfNumber(text) ?? this.#cutOfLine(text)
    const from = this.below(text.length + 1)
    const length = way < 10 ? 1 : 1 + this.below(12)
    if (way === 7) return [from, length, '']
    if (way === 8) return [from, 0, this.pick(CHARACTERS)]
    if (way === 9) return [from, 1, this.pick(CHARACTERS)]
    return [from, 0, text.slice(from, from + length)]
  }

  /** Another value in place of a token of base64, which stays canonical. */
  #cutOfBase64(text: string): [number, number, string] | undefined {
    const tokens = [...text.matchAll(/[A-Za-z0-9+/]{8,}={0,2}/g)].filter(([token]) => token.length % 4 === 0)
    if (tokens.length === 0) return undefined
    const { 0: token, index } = this.pick(tokens)
    const bytes = Buffer.from(token, 'base64')
    const way = this.below(12)
    if (way === 0) return [index, token.length, bytes.subarray(1).toString('base64')]
    if (way === 1)
      return [index, token.length, Buffer.concat([bytes, bytes.subarray(0, 1)]).toString('base64')]
    const bit = this.below(8 * bytes.length)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    return [index, token.length, bytes.toString('base64')]
  }

  #cutOfNumber(text: string): [number, number, string] | undefined {
    const numbers = [...text.matchAll(/\b\d{1,15}\b/g)]
    if (numbers.length === 0) return undefined
    const { 0: digits, index } = this.pick(numbers)
    const value = Number(digits)
    const other = this.pick([
      `${value + 1}`,
      `${value - 1}`,
      `0${digits}`,
      `+${digits}`,
      `${2 ** 53}`,
      `${value}0`,
    ])
    return [index, digits.length, other]
  }

  /** A line left out, doubled, or moved before the one above it. */
  #cutOfLine(text: string): [number, number, string] {
    const lines = text.split('\n')
    const at = this.below(lines.length)
    const from = lines.slice(0, at).join('\n').length + (at > 0 ? 1 : 0)
    const line = lines[at]!
    const way = this.below(3)
    if (way === 0) return [from, line.length + 1, '']
    if (way === 1) return [from, 0, `${line}\n`]
    const before = lines[at - 1]
    if (before === undefined) return [from, line.length, line.toUpperCase()]
    return [from - before.length - 1, before.length + 1 + line.length, `${line}\n${before}`]
  }

  #cutOfHex(hex: string): [number, number, string] {
    const from = 2 * this.below(hex.length / 2)
    const octet = this.below(256).toString(16).padStart(2, '0')
    const way = this.below(10)
    if (way === 0) return [from, 2, '']
    if (way === 1) return [from, 0, octet]
    if (way === 2) return [from, 0, hex.slice(from, from + 2 * this.below(120))]
    if (way === 3) return [from, 2 * this.below(120), '']
    return [from, 2, octet]
  }
}

function valueAt(value: Json, path: JsonPath): Json | undefined {
  let at: Json | undefined = value
  for (const step of path) at = (at as Record<string | number, Json> | null | undefined)?.[step]
  return at
}

function* leavesOf(value: Json, path: JsonPath): Generator<[JsonPath, Json]> {
  if (typeof value !== 'object' || value === null) return yield [path, value]
  for (const [member, child] of Object.entries(value))
    yield* leavesOf(child, [...path, Array.isArray(value) ? Number(member) : member])
}

const STRANGERS: readonly Json[] = [null, true, 7, '', [], {}, 'AAAA', ['AAAA'], { proof: 'AAAA' }]
const CHARACTERS: readonly string[] = [
  ...'ABCDxyz0129+/=-_ .,:"\\\n\t\r\0',
  '\n\n',
  '\u2014',
  '\u2014 ',
  '\u00a0',
  '\u0085',
  '\u2003',
  '\ufeff',
  '\u00fc',
  '\u20ac',
  '\ud800',
  '\udc00',
  '\u{1f600}',
  '\u0663',
  '\uff11',
]
