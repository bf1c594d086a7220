/** Everything that a served page loads: modules with their imports, and style sheets. */

/** The paths that a page and its modules load, each absolute. */
class Loads {
  readonly #url: string
  readonly #imports: Readonly<Record<string, string>>
  readonly paths = new Set<string>()
  readonly failures: string[] = []

  constructor(url: string, imports: Readonly<Record<string, string>>) {
    this.#url = url
    this.#imports = imports
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
    if (path.endsWith('.js')) for (const name of importsIn(text)) await this.load(this.#resolve(name, path))
  }

  /** By the import map of the page (HTML standard, "resolve a module specifier"). */
  #resolve(name: string, from: string): string {
    if (/^\.{0,2}\//.test(name)) return new URL(name, this.#url + from).pathname
    const [key, target] =
      Object.entries(this.#imports).find(
        ([key]) => key === name || (key.endsWith('/') && name.startsWith(key)),
      ) ?? []
    if (key === undefined || target === undefined) return `/${name} is not in the import map of ${from}`
    return target + name.slice(key.length)
  }
}

/** Imports and exports at the start of a line, and imports at run time. */
function importsIn(module: string): string[] {
  const form =
    /^(?:import|export)\b(?:[^'"`;()=]*?\bfrom)?\s*["']([^"'\n]+)["']|\bimport\(["']([^"'\n]+)["']\)/gm
  return [...module.matchAll(form)].map(([, fixed, dynamic]) => fixed ?? dynamic!)
}

/** Loads a page as a browser does. */
export async function loadsOf(url: string, path: string): Promise<Loads> {
  const page = await (await fetch(url + path)).text()
  const map = JSON.parse(/<script type="importmap">(.*)<\/script>/.exec(page)?.[1] ?? '')
  const loads = new Loads(url, map.imports)
  for (const [, loaded] of page.matchAll(/(?:src|href)="([^"]+)"/g)) await loads.load(loaded!)
  return loads
}
