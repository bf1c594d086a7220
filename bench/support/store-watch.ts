/** Counts the work of turns on a server's store: commits, and rows put, removed and read. */

import type { Parameters } from './benchmark.ts'
import { rounded } from './statistics.ts'

export class StoreWatch {
  readonly #admin: string
  readonly #counts = new Map<string, number>()

  /** `admin`: the server's address for operators. */
  constructor(admin: string) {
    this.#admin = admin
  }

  async during<Figure>(run: () => Promise<Figure>): Promise<Figure> {
    const before = await this.#read()
    const figure = await run()
    for (const [name, count] of await this.#read()) {
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + count - (before.get(name) ?? 0))
    }
    return figure
  }

  /** One of the counts, for each of so many operations. */
  each(name: 'put' | 'remove' | 'read', operations: number): number {
    return (this.#counts.get(name) ?? 0) / operations
  }

  /** Details of a round with so many operations. */
  details(operations: number): Parameters {
    return Object.fromEntries(
      [...this.#counts].map(([name, count]) => [`${name}PerOperation`, rounded(count / operations)]),
    )
  }

  async #read(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.#admin}/metrics`)).text()
    return new Map([...text.matchAll(STORE_FIGURE)].map(([, name, count]) => [name!, Number(count)]))
  }
}

const STORE_FIGURE =
  /^callsign_store_(?:accesses_total\{kind=")?(commits|put|remove|read)(?:_total|"\}) (\d+)$/gm
