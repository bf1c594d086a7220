/** Tables of Markdown, and pages that hold printed parts between two comments. */

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('')
}

/** The page with each part as it is printed now. Throws for a part that the page has no place for, or the other way round. */
export function withParts(page: string, parts: Readonly<Record<string, string>>): string {
  const found = new Set<string>()
  const filled = page.replaceAll(/^<!-- printed: (\w+) -->\n[\s\S]*?^<!-- end -->\n/gm, (_, name: string) => {
    const part = parts[name]
    if (part === undefined) throw new Error(`nothing prints ${name}`)
    found.add(name)
    return `<!-- printed: ${name} -->\n\n${part.trimEnd()}\n\n<!-- end -->\n`
  })
  const missing = Object.keys(parts).filter(name => !found.has(name))
  if (missing.length > 0) throw new Error(`the page has no place for ${missing.join(', ')}`)
  return filled
}
