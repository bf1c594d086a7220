/**
 * Reads a file of alarm rules or a manifest: as much of YAML as such a file needs (maps, lists, plain and quoted texts, `|`
 * and `|-` blocks), and a refusal of everything else, so that the check sees what the file's real reader will see.
 */

/** A text, or the values below a name. */
export type RuleValue = string | readonly RuleValue[] | { readonly [name: string]: RuleValue }

interface Line {
  readonly number: number
  readonly indent: number
  readonly text: string
}

export function parseRuleFile(text: string): RuleValue {
  const lines = text.split('\n').map((line, at) => ({
    number: at + 1,
    indent: line.length - line.trimStart().length,
    text: line.trim(),
  }))
  const reader = new Reader(lines.filter(({ text }) => !text.startsWith('#')))
  const value = reader.block(0)
  reader.assertEnd()
  return value
}

class Reader {
  readonly #lines: Line[]

  constructor(lines: Line[]) {
    this.#lines = lines
  }

  block(indent: number): RuleValue {
    const first = this.#peek()
    if (first === undefined || first.indent < indent) throw new Error(`line ${first?.number}: nothing below`)
    return first.text.startsWith('- ') ? this.#list(first.indent) : this.#map(first.indent)
  }

  assertEnd(): void {
    const left = this.#peek()
    if (left !== undefined) throw new Error(`line ${left.number}: not understood: ${left.text}`)
  }

  #list(indent: number): RuleValue[] {
    const items: RuleValue[] = []
    for (
      let line = this.#peek();
      line?.indent === indent && line.text.startsWith('- ');
      line = this.#peek()
    ) {
      if (!MEMBER.test(line.text.slice(2))) {
        this.#lines.shift()
        items.push(plain(line.text.slice(2), line.number))
        continue
      }
      // The item's first member stands behind the dash, as far in as those below it.
      this.#lines[0] = { ...line, indent: indent + 2, text: line.text.slice(2) }
      items.push(this.#map(indent + 2))
    }
    return items
  }

  #map(indent: number): RuleValue {
    const members: Record<string, RuleValue> = {}
    for (
      let line = this.#peek();
      line?.indent === indent && !line.text.startsWith('- ');
      line = this.#peek()
    ) {
      const [, name, value] = MEMBER.exec(line.text) ?? []
      if (name === undefined) throw new Error(`line ${line.number}: not a member: ${line.text}`)
      if (name in members) throw new Error(`line ${line.number}: ${name} is there already`)
      this.#lines.shift()
      if (value === undefined) members[name] = this.#below(indent)
      else members[name] = /^\|-?$/.test(value) ? this.#literal(indent) : plain(value, line.number)
    }
    return members
  }

  /** What stands below a member's name: a list may begin as far left as the name. */
  #below(indent: number): RuleValue {
    const next = this.#peek()
    return next?.indent === indent && next.text.startsWith('- ') ? this.#list(indent) : this.block(indent + 1)
  }

  #literal(indent: number): string {
    const texts: string[] = []
    while (this.#lines[0] !== undefined && (this.#lines[0].text === '' || this.#lines[0].indent > indent)) {
      texts.push(this.#lines.shift()!.text)
    }
    return texts.join('\n').trim()
  }

  #peek(): Line | undefined {
    while (this.#lines[0]?.text === '') this.#lines.shift()
    return this.#lines[0]
  }
}

const MEMBER = /^([A-Za-z_][\w./-]*):(?: (.+))?$/

function plain(text: string, line: number): string {
  if (text.startsWith('"')) return JSON.parse(text)
  if (/^['[{&*!|>%@`]|: | #/.test(text)) throw new Error(`line ${line}: a text that needs quotes: ${text}`)
  return text
}
