/**
 * What an endpoint of webhooks adds to the cost of a call to ten: each event is kept until the endpoint has taken it. Held
 * against the same call where there is no endpoint.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallLoadProtocol } from './support/call-load.ts'
import { type CallTurn, openCalled, type StreetPlan, startLoad, workOf } from './support/call-street.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { type RunningServer, readMetric } from './support/server.ts'
import { rounded } from './support/statistics.ts'
import { StoreWatch } from './support/store-watch.ts'
import { costFigures, withUsage } from './support/usage.ts'
import type { WebhookSinkProtocol } from './support/webhook-sink.ts'

const COST: Row = {
  name: 'webhooks-cost',
  project: 'a call to ten that its caller gives up, told to an endpoint of webhooks: processor time',
  limit: 'the same call without an endpoint',
  unit: 'µs',
  notShown:
    'The endpoint runs on the same machine and answers at once. Counted until it has taken every event.',
}
const PUTS: Row = {
  ...COST,
  name: 'webhooks-puts',
  project: 'rows put for the webhooks of a call to ten that its caller gives up',
  limit: 'rows put for the call itself',
  unit: 'rows',
  goal: { of: 'project', is: 'at most', value: 3 },
}

const PLAN: StreetPlan = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = 16

export const webhooks: Benchmark = { name: 'webhooks', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const plan = isSmoke ? PLAN_SMOKE : PLAN
  const sink = await Program.start<WebhookSinkProtocol>('webhook-sink', {})
  context.after(() => sink.end())
  const { url } = await sink.ask('ask')
  const silent = await Side.open(context, plan, 'silent', {})
  const told = await Side.open(context, plan, 'told', {
    CALLSIGN_WEBHOOK_URL: url,
    CALLSIGN_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  })
  for (const side of [silent, told]) await side.turn(warmUpSeconds)
  for (const round of context.rounds()) {
    const before = (await sink.ask('ask')).taken
    const [silentStore, toldStore] = [new StoreWatch(silent.admin), new StoreWatch(told.admin)]
    const { limit, project } = await interleaved(
      round,
      turns,
      () => silentStore.during(() => silent.turn(turnSeconds)),
      () => toldStore.during(() => told.turn(turnSeconds)),
    )
    const [limitWork, projectWork] = [workOf(limit, 'calls'), workOf(project, 'calls')]
    const parameters = { people: plan.calleesEach + 1, inFlight: IN_FLIGHT }
    const events = (await sink.ask('ask')).taken - before
    context.record(COST, round, {
      ...costFigures(limitWork, projectWork),
      parameters,
      details: {
        eventsPerCall: rounded(events / projectWork.operations),
        ...toldStore.details(projectWork.operations),
      },
    })
    const ofCall = silentStore.each('put', limitWork.operations)
    const all = toldStore.each('put', projectWork.operations)
    context.record(PUTS, round, { limit: ofCall, project: all - ofCall, parameters })
  }
}

/** A server, and those who call one another there. */
class Side {
  readonly #server: RunningServer
  readonly #load: Program<CallLoadProtocol>

  private constructor(server: RunningServer, load: Program<CallLoadProtocol>) {
    this.#server = server
    this.#load = load
  }

  static async open(
    context: BenchmarkContext,
    plan: StreetPlan,
    folder: string,
    environment: Readonly<Record<string, string>>,
  ): Promise<Side> {
    const { server, groups } = await openCalled(context, plan, { folder, environment })
    return new Side(server, await startLoad(context, server.http, 'project', groups))
  }

  get admin(): string {
    return this.#server.admin
  }

  /** Calls, until no event waits for the endpoint. */
  turn(seconds: number): Promise<CallTurn> {
    return withUsage(this.#server.pid, async () => {
      const figures = await this.#load.ask({ kind: 'in-flight', calls: IN_FLIGHT, seconds })
      while ((await this.#waiting()) > 0) await sleep(LOOK_MS)
      return figures
    })
  }

  async #waiting(): Promise<number> {
    const text = await (await fetch(`${this.#server.admin}/metrics`)).text()
    return readMetric(text, 'callsign_webhooks_waiting')
  }
}

const LOOK_MS = 50
