/**
 * Program: reads and sign-ins at fixed rates, whatever becomes of those before. Each kind of request is timed from when it is
 * sent; a sign-in is asking for a code and giving it.
 */

import { HttpConnection } from './http-connection.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export type RateKind = 'user' | 'lookup' | 'sign-in'

export interface RateLoadProtocol {
  readonly setup: {
    /** Without a path. */
    readonly url: string
    /** Access tokens of those who read themselves in turn. */
    readonly tokens: readonly string[]
    readonly lookup: { readonly path: string; readonly bodies: readonly string[] }
    /** Newcomers; each signs in once. */
    readonly codes: Readonly<Record<string, string>>
  }
  readonly request: { readonly perSecond: Readonly<Record<RateKind, number>>; readonly seconds: number }
  readonly answer: {
    readonly latency: Readonly<Record<RateKind, ReturnType<typeof latencyFigures>>>
    /** Milliseconds by which requests were sent late. */
    readonly lateness: ReturnType<typeof latencyFigures>
    /** Processor time of this client. */
    readonly clientCores: number
  }
}

serveParent<RateLoadProtocol>(async setup => {
  const client = new Client(setup)
  return async ({ perSecond, seconds }) => {
    const latencies: Record<RateKind, number[]> = { user: [], lookup: [], 'sign-in': [] }
    const lateness: number[] = []
    const all: Promise<void>[] = []
    const [cpuBefore, startMs] = [process.cpuUsage(), performance.now()]
    const sendOne = async (kind: RateKind) => {
      const sentMs = performance.now()
      await client.send(kind)
      latencies[kind].push(performance.now() - sentMs)
    }
    const kinds = Object.keys(latencies) as RateKind[]
    const sent = new Map(kinds.map(kind => [kind, 0]))
    for (let now = startMs; now < startMs + seconds * 1000; now = performance.now()) {
      for (const kind of kinds) {
        for (;;) {
          const dueMs = startMs + (sent.get(kind)! * 1000) / perSecond[kind]
          if (dueMs > now) break
          lateness.push(performance.now() - dueMs)
          sent.set(kind, sent.get(kind)! + 1)
          all.push(sendOne(kind))
        }
      }
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    await Promise.all(all)
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    client.forgetIdle()
    return {
      latency: {
        user: latencyFigures(latencies.user),
        lookup: latencyFigures(latencies.lookup),
        'sign-in': latencyFigures(latencies['sign-in']),
      },
      lateness: latencyFigures(lateness),
      clientCores: (user + system) / 1000 / ms,
    }
  }
})

class Client {
  readonly #setup: RateLoadProtocol['setup']
  readonly #newcomers: (readonly [email: string, otp: string])[]
  readonly #idle: HttpConnection[] = []
  #reads = 0
  #lookups = 0

  constructor(setup: RateLoadProtocol['setup']) {
    this.#setup = setup
    this.#newcomers = Object.entries(setup.codes)
  }

  async send(kind: RateKind): Promise<void> {
    const connection = this.#idle.pop() ?? (await HttpConnection.open(this.#setup.url))
    await this.#exchange(connection, kind)
    this.#idle.push(connection)
  }

  /** A server ends connections that are not used for a while. */
  forgetIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.close()
  }

  async #exchange(connection: HttpConnection, kind: RateKind): Promise<void> {
    const { tokens, lookup } = this.#setup
    if (kind === 'user') {
      await connection.get('/app/api/user', tokens[this.#reads++ % tokens.length]!, 200)
    } else if (kind === 'lookup') {
      const { path, bodies } = lookup
      await connection.post({ path, body: bodies[this.#lookups++ % bodies.length]! }, 200)
    } else {
      await this.#signIn(connection)
    }
  }

  async #signIn(connection: HttpConnection): Promise<void> {
    const newcomer = this.#newcomers.pop()
    if (newcomer === undefined) throw new Error('everybody has signed in')
    const [email, otp] = newcomer
    const asked = await connection.post({ path: '/app/api/login', body: JSON.stringify({ email }) }, 200)
    const { challengeId } = JSON.parse(asked) as { challengeId: string }
    const body = JSON.stringify({ challengeId, otp })
    await connection.post({ path: '/app/api/verify-login', body }, 200)
  }
}
