/** One name that is written at one node and read at another, for tests of stale reads. */

import type { Test } from 'tap'
import { signInAgain, signInPerson } from './call-people.ts'
import { eventually, type TestNode, until } from './nodes.ts'

/** One person who changes their name at one node and reads it at another, again and again. */
export class Rename {
  /** The last name that was answered for. */
  acknowledged = 0
  readonly stale: string[] = []
  #isOver = false
  readonly #work: Promise<void>[]

  private constructor(write: (number: number) => Promise<boolean>, read: () => Promise<number | undefined>) {
    let next = 0
    const writing = this.#repeat(async () => {
      next += 1
      if (await write(next)) this.acknowledged = next
    })
    const reading = () =>
      this.#repeat(async () => {
        const before = this.acknowledged
        const seen = await read()
        if (seen !== undefined && seen < before) this.stale.push(`${seen} after ${before}`)
      })
    this.#work = [writing, ...Array.from({ length: READERS }, reading)]
  }

  /** Ends with the test, however that ends. */
  static async begin(t: Test, at: TestNode, readAt: TestNode): Promise<Rename> {
    // A link may break on a busy machine, and the answer with it.
    const { app } = await eventually(() => signInPerson(at.server.http, 0))
    const reader = await eventually(() => signInAgain(readAt.server.http, 0))
    const rename = new Rename(
      async number => (await app.send('PUT /app/api/user', { displayName: `Ann ${number}` })).status === 200,
      async () => {
        const { status, body } = await reader.send('GET /app/api/user')
        return status === 200 ? Number(/\d+$/.exec(body.displayName)?.[0] ?? 0) : undefined
      },
    )
    t.teardown(() => {
      rename.#isOver = true
    })
    return rename
  }

  /** Resolves when so many more changes were answered for. */
  async more(count: number): Promise<void> {
    const enough = this.acknowledged + count
    await until(async () => this.acknowledged >= enough)
  }

  /** Resolves when it has gone on for so long. */
  async during(ms: number): Promise<void> {
    const endMs = performance.now() + ms
    await until(async () => performance.now() >= endMs)
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#work)
  }

  async #repeat(act: () => Promise<void>): Promise<void> {
    while (!this.#isOver)
      await eventually(async () => {
        if (!this.#isOver) await act()
      })
  }
}

const READERS = 8
