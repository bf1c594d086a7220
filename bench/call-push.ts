/**
 * What push tokens add to a call to ten: each device of a callee is pushed that it rings and that a call was missed.
 * Processor time of the server per call, held against the same calls to devices without tokens.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallLoadProtocol } from './support/call-load.ts'
import { openCalled, type StreetPlan, startLoad } from './support/call-street.ts'
import type { PushProvider } from './support/people.ts'
import { Program } from './support/program.ts'
import type { PushProvidersProtocol } from './support/push-providers.ts'
import { interleaved } from './support/rounds.ts'
import { rounded } from './support/statistics.ts'
import { costFigures, type Usage, withUsage } from './support/usage.ts'

const PUSHED: Row = {
  name: 'call-push',
  project: 'processor time of an unanswered call, all devices with push tokens',
  limit: 'the same call to devices without push tokens',
  unit: 'ms',
  goal: { of: 'ratio', is: 'at most', value: 1.3 },
  notShown: 'The stand-in for APNs speaks TLS, the one for FCM does not.',
}

interface Scale {
  readonly plan: StreetPlan
  readonly callsPerTurn: number
}

const SCALE: Scale = {
  plan: { groups: 20, callersEach: 10, calleesEach: 10, devices: 1 },
  callsPerTurn: 40,
}
const SCALE_SMOKE: Scale = {
  plan: { groups: 1, callersEach: 4, calleesEach: 2, devices: 1 },
  callsPerTurn: 2,
}
const NAMES: Record<PushProvider, string> = { apns: 'APNs', fcm: 'FCM' }
/** One that it rings, one that a call was missed. */
const PUSHES_PER_DEVICE = 2
/** V8 compiles what calls need for ten seconds and more. */
const WARM_UPS = 3
const PUSHED_WITHIN_MS = 30_000

export const callPush: Benchmark = { name: 'call-push', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns } = context.scale
  const { plan, callsPerTurn } = isSmoke ? SCALE_SMOKE : SCALE
  const street = await Street.open(context, plan)
  const measure = (provider?: PushProvider) => street.callAll(provider, callsPerTurn)
  for (let warmUps = isSmoke ? 0 : WARM_UPS; warmUps > 0; warmUps--) {
    for (const provider of [undefined, ...PROVIDERS]) await measure(provider)
  }
  for (const round of context.rounds()) {
    for (const provider of PROVIDERS) {
      const all = await interleaved(
        round,
        turns,
        () => measure(),
        () => measure(provider),
      )
      const operations = turns * callsPerTurn
      const { limit, project, costs } = costFigures(
        { turns: all.limit, operations },
        { turns: all.project, operations },
      )
      const pushes = plan.calleesEach * plan.devices * PUSHES_PER_DEVICE
      context.record(PUSHED, round, {
        limit: limit / 1000,
        project: project / 1000,
        costs,
        parameters: { callees: plan.calleesEach, provider: NAMES[provider] },
        details: { cpuMicrosecondsPerPush: rounded((project - limit) / pushes) },
      })
    }
  }
}

const PROVIDERS = Object.keys(NAMES) as PushProvider[]

interface LoadedServer {
  readonly pid: number
  readonly load: Program<CallLoadProtocol>
}

/** A server without push tokens and one with those of each provider, which are stand-ins. */
class Street {
  readonly #plan: StreetPlan
  readonly #providers: Program<PushProvidersProtocol>
  readonly #servers: ReadonlyMap<PushProvider | undefined, LoadedServer>

  private constructor(
    plan: StreetPlan,
    providers: Program<PushProvidersProtocol>,
    servers: ReadonlyMap<PushProvider | undefined, LoadedServer>,
  ) {
    this.#plan = plan
    this.#providers = providers
    this.#servers = servers
  }

  static async open(context: BenchmarkContext, plan: StreetPlan): Promise<Street> {
    const providers = await Program.start<PushProvidersProtocol>('push-providers', {})
    context.after(() => providers.end())
    const environment = await providers.ask({ kind: 'environment' })
    const servers = new Map<PushProvider | undefined, LoadedServer>()
    for (const provider of [undefined, ...PROVIDERS]) {
      const options = { folder: `data-${provider ?? 'without'}`, provider, environment }
      const { server, groups } = await openCalled(context, plan, options)
      const load = await startLoad(context, server.http, 'project', groups)
      servers.set(provider, { pid: server.pid, load })
    }
    return new Street(plan, providers, servers)
  }

  /** Each push of the calls has been taken before they end, and after. */
  async callAll(provider: PushProvider | undefined, calls: number): Promise<Usage> {
    const { pid, load } = this.#servers.get(provider)!
    const pushed = await this.#taken(provider, 0)
    const { calleesEach, devices } = this.#plan
    const pushes = calls * calleesEach * devices
    return withUsage(pid, async () => {
      await load.ask({ kind: 'start', calls })
      await this.#taken(provider, pushed + pushes)
      await load.ask({ kind: 'end' })
      await this.#taken(provider, pushed + PUSHES_PER_DEVICE * pushes)
    })
  }

  /** Resolves when the provider has taken so many pushes. */
  async #taken(provider: PushProvider | undefined, countMin: number): Promise<number> {
    if (provider === undefined) return 0
    const late = new Promise<never>((_, reject) => {
      const refuse = () => reject(new Error(`${provider} has not taken ${countMin} pushes`))
      setTimeout(refuse, PUSHED_WITHIN_MS).unref()
    })
    const asked = this.#providers.ask({ kind: 'taken', provider, countMin })
    return Number((await Promise.race([asked, late])).taken)
  }
}
