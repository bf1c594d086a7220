/** Everything that a served page loads: modules with their imports, and style sheets. */

/** The paths that a page and its modules load, each absolute. */
class Loads {
  readonly #url: string
  readonly paths = new Set<string>()
  readonly failures: string[] = []

  constructor(url: string) {
    this.#url = url
  }

  async load(path: string): Promise<void> {
    if (this.paths.has(path)) return
    this.paths.add(path)
    const answer = await fetch(this.#url + path)
    const text = await answer.text()
    const type = answer.headers.get('content-type') ?? ''
    const expected = path.endsWith('.js')
      ? 'text/javascript'
      : path.endsWith('.css')
        ? 'text/css'
        : 'image/svg'
    if (answer.status !== 200 || !type.startsWith(expected))
      this.failures.push(`${path}: ${answer.status} ${type}`)
    if (!path.endsWith('.js')) return
    for (const name of importsIn(text)) await this.load(new URL(name, this.#url + path).pathname)
  }
}

/** Of a bundle, whose imports are all of its own chunks. */
function importsIn(module: string): string[] {
  return [...module.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+\.js)["']/g)].map(
    ([, name]) => name!,
  )
}

/** Loads a page as a browser does. */
export async function loadsOf(url: string, path: string): Promise<Loads> {
  const page = await (await fetch(url + path)).text()
  const loads = new Loads(url)
  for (const [, loaded] of page.matchAll(/(?:src|href)="([^"]+)"/g)) await loads.load(loaded!)
  return loads
}
