/** A node that lags behind the ledger: its clients never read anything older than they have written. */

import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { signInAgain, signInPerson } from '../support/call-people.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres as skip } from '../support/postgres.ts'
import { SocketClient } from '../support/socket-client.ts'

/** One person who changes their name at one node and reads it at another, again and again. */
class Rename {
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
    const { app } = await signInPerson(at.server.http, 0)
    const reader = await signInAgain(readAt.server.http, 0)
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

t.test('a node that hears nothing from PostgreSQL', { skip }, async t => {
  const { one, two, toDatabase } = await startCluster(t)
  const { app } = await signInPerson(two.server.http, 1)
  const { socket } = await SocketClient.connect('websocket', two.server.http, app.accessToken!)
  const closed = once(socket, 'close')
  const rename = await Rename.begin(t, one, two)
  await rename.more(5)
  toDatabase.cut()
  await closed
  await until(async () => !(await two.isReady()))
  await rename.more(20)
  toDatabase.mend()
  await until(() => two.isReady())
  await rename.more(5)
  await rename.end()
  t.same(rename.stale, [])
})

t.test('a front that stands still', { skip }, async t => {
  const { one, two, toDatabase } = await startCluster(t)
  // A write that did not wait for the node's only front is answered long before the copy has it.
  toDatabase.slow(150)
  const rename = await Rename.begin(t, one, two)
  await rename.more(5)
  let front = 0
  // On a busy machine one may have ended, and the next not be there yet.
  await until(async () => {
    front = two.frontPids.at(-1)!
    return sendSignal(front, 'SIGSTOP')
  })
  await rename.during(10_000)
  // The server may have ended it.
  sendSignal(front, 'SIGCONT')
  await rename.more(20)
  await rename.end()
  t.same(rename.stale, [])
})

t.test('a new checkpoint is shown when the front of the other node knows of it', { skip }, async t => {
  const { one, two } = await startCluster(t)
  for (const [stopped, asked] of [
    [two, one],
    [one, two],
  ] as const) {
    const sizeNow = async () => {
      const answer = await fetch(`${asked.server.http}/checkpoint`)
      return Number((await answer.text()).split('\n')[1])
    }
    await register(one)
    const before = await sizeNow()
    const front = stopped.frontPids.at(-1)!
    process.kill(front, 'SIGSTOP')
    const registered = register(one)
    const seen: number[] = []
    let isOver = false
    const looking = (async () => {
      while (!isOver) seen.push(await sizeNow())
    })()
    await setTimeout(LOOKING_MS)
    const newer = seen.filter(size => size > before)
    t.same(newer, [], 'the other front would still show an older one')
    process.kill(front, 'SIGCONT')
    await registered
    await until(async () => (await sizeNow()) > before)
    isOver = true
    await looking
  }
})

/** False for a process that has ended. */
function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** Two nodes, and the second one's way to PostgreSQL. */
async function startCluster(t: Test) {
  let toDatabase: DroppingProxy | undefined
  const cluster = await Cluster.start(t, {
    async databasePort({ port }, node) {
      if (node === 'one') return port
      toDatabase = await DroppingProxy.open(t, port)
      return toDatabase.port
    },
  })
  return { one: cluster.one, two: cluster.two, toDatabase: toDatabase! }
}

const READERS = 8
/** Shorter than the writer waits for a front. */
const LOOKING_MS = 500
