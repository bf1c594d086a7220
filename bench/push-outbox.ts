/**
 * How many pushes a second leave the outbox, where 20,000 wait: the server reads, words, sends and removes them. Held against
 * bare node:http2 that sends the same requests to the same sink. A turn starts a server, which is warm before it counts.
 */

import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { type Person, type PushProvider, prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import type { PushLimitProtocol } from './support/push-limit.ts'
import type { PushSinkProtocol } from './support/push-sink.ts'
import { interleaved } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean } from './support/statistics.ts'
import { comparedCosts, type Usage, withUsage } from './support/usage.ts'
import { addWaitingPushes, countWaitingRows } from './support/waiting-pushes.ts'

const NAMES: Record<PushProvider, string> = { apns: 'APNs', fcm: 'FCM' }
const PROVIDERS = Object.keys(NAMES) as PushProvider[]

const rowOf = (provider: PushProvider): Row => ({
  name: `push-outbox-${provider}`,
  project: `pushes that waited in the outbox leave by ${NAMES[provider]}`,
  limit: 'bare node:http2, the same requests to the same sink',
  unit: 'pushes/s',
  notShown:
    'The sink runs on the same machine and answers at once, so it takes a part of the cores. APNs over TLS, FCM without; one session each. Written each has what goes to the socket, too.',
})

/** As many as the outbox has under way. */
const IN_FLIGHT = 128
const SCALE = { people: 2_000, pushesEach: 10, warmUpPushes: 8_000 }
const SCALE_SMOKE = { people: 100, pushesEach: 2, warmUpPushes: 50 }

export const pushOutbox: Benchmark = { name: 'push-outbox', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { people, pushesEach, warmUpPushes } = context.scale.isSmoke ? SCALE_SMOKE : SCALE
  const counted = people * pushesEach - warmUpPushes
  const sides = new Map<PushProvider, Side>()
  for (const provider of PROVIDERS) {
    const template = join(context.folder, provider)
    const addressees: Person[] = await prefillPeople(template, people, 1, [], provider)
    await addWaitingPushes(template, provider, addressees, pushesEach)
    const side = await Side.open(context, provider, template)
    sides.set(provider, side)
    // The limit sends what the server has sent.
    await side.project(warmUpPushes, counted)
    await side.limit(warmUpPushes)
  }
  const { turns } = context.scale
  for (const round of context.rounds()) {
    for (const [provider, side] of sides) {
      const { limit, project } = await interleaved(
        round,
        turns,
        () => side.limit(counted),
        () => side.project(warmUpPushes, counted),
      )
      const rate = (figures: readonly Turn[]) => mean(figures.map(({ seconds }) => counted / seconds))
      const operations = turns * counted
      context.record(rowOf(provider), round, {
        limit: rate(limit),
        project: rate(project),
        ...comparedCosts({ turns: limit, operations }, { turns: project, operations }),
        parameters: { pushes: counted, inFlight: IN_FLIGHT },
      })
    }
  }
}

type Turn = Usage & { readonly seconds: number }

/** A provider's sink, and both that send to it. */
class Side {
  readonly #context: BenchmarkContext
  readonly #template: string
  readonly #sink: Program<PushSinkProtocol>
  readonly #bare: Program<PushLimitProtocol>

  private constructor(
    context: BenchmarkContext,
    template: string,
    sink: Program<PushSinkProtocol>,
    bare: Program<PushLimitProtocol>,
  ) {
    this.#context = context
    this.#template = template
    this.#sink = sink
    this.#bare = bare
  }

  /** `template` is a data folder with pushes to be copied for each turn. */
  static async open(context: BenchmarkContext, provider: PushProvider, template: string): Promise<Side> {
    const sink = await Program.start<PushSinkProtocol>('push-sink', { provider })
    context.after(() => sink.end())
    const { origin } = await sink.ask({ kind: 'ask' })
    const bare = await Program.start<PushLimitProtocol>('push-limit', { origin, inFlight: IN_FLIGHT })
    context.after(() => bare.end())
    return new Side(context, template, sink, bare)
  }

  async limit(count: number): Promise<Turn> {
    const { samples } = await this.#sink.ask({ kind: 'ask' })
    return withUsage(this.#bare.pid, async () => {
      await Promise.all([this.#sink.ask({ kind: 'answer', count }), this.#bare.ask({ count, samples })])
    })
  }

  /** Counts from when the server is warm until its last push is answered. */
  async project(warmUpPushes: number, counted: number): Promise<Turn> {
    const dataFolder = `${this.#template}-turn`
    cpSync(this.#template, dataFolder, { recursive: true })
    const { environment } = await this.#sink.ask({ kind: 'ask' })
    const { profilesFolder } = this.#context
    const server = await startServer({ dataFolder, environment, profilesFolder })
    this.#context.after(() => server.end())
    await this.#sink.ask({ kind: 'answer', count: warmUpPushes })
    const turn = await withUsage(server.pid, () => this.#sink.ask({ kind: 'answer', count: counted }))
    await server.end()
    const left = await countWaitingRows(dataFolder)
    if (left > 0) throw new Error(`${left} rows of pushes are still in the outbox`)
    rmSync(dataFolder, { recursive: true })
    return turn
  }
}
