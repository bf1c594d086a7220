/** Counts what a server's main thread allocates, which is the garbage that it makes: nothing of a call stays. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rounded } from './statistics.ts'
import { whenWritten } from './when-written.ts'

export class GarbageCounter {
  /** For the start of the server. */
  readonly nodeArguments = ['--import', new URL('./garbage-on-signal.js', import.meta.url).href]
  readonly environment: Readonly<Record<string, string>>
  readonly #path: string

  /** `folder`: where the server may write its figure. */
  constructor(folder: string) {
    this.#path = join(folder, 'garbage')
    this.environment = { BENCH_GARBAGE_FILE: this.#path }
  }

  /** Bytes of V8's heap for each operation that `run` reports. */
  async each(pid: number, run: () => Promise<number>): Promise<number> {
    const before = await this.#allocated(pid)
    const operations = await run()
    return rounded(((await this.#allocated(pid)) - before) / operations)
  }

  async #allocated(pid: number): Promise<number> {
    const written = whenWritten(this.#path)
    process.kill(pid, 'SIGUSR2')
    await written
    return Number(readFileSync(this.#path, 'utf8'))
  }
}
