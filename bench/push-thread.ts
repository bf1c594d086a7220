/**
 * What a push of a call costs the server's main thread: a call to ten whose callees' devices have push tokens beside one to devices
 * without. Held against a message of that call. Each device gets two pushes, of the invitation and of the missed call, since it has
 * a socket that hears the end.
 */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallLoadFigures, CallLoadProtocol } from './support/call-load.ts'
import { type StreetPlan, settle, startLoad } from './support/call-street.ts'
import { mainThreadMs } from './support/machine.ts'
import { type PushProvider, prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import type { PushSinkProtocol } from './support/push-sink.ts'
import { interleaved } from './support/rounds.ts'
import { type RunningServer, startServer } from './support/server.ts'
import { rounded, sum } from './support/statistics.ts'
import { costOf, type Usage, withUsage } from './support/usage.ts'

const NAMES: Record<PushProvider, string> = { apns: 'APNs', fcm: 'FCM' }

const rowOf = (provider: PushProvider): Row => ({
  name: `push-thread-${provider}`,
  project: `a push by ${NAMES[provider]} of a call to ten that its caller gives up: processor time of the main thread`,
  limit: 'a message of the call to a device',
  unit: 'µs',
  goal: {
    of: 'ratio',
    is: 'at most',
    value: 1,
    because:
      'Each push is a row that is put, taken, worded and removed, though another thread sends it by node:http2.',
  },
  notShown:
    'The sink runs on the same machine and answers at once. The costs are those of a call, all threads, with pushes and (in brackets) without. Counted until the last push is answered.',
})

const PLAN: StreetPlan = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = [16, 1]

export const pushThread: Benchmark = { name: 'push-thread', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const plan = isSmoke ? PLAN_SMOKE : PLAN
  const silent = await Side.open(context, plan)
  for (const provider of Object.keys(NAMES) as PushProvider[]) {
    const pushed = await Side.open(context, plan, provider)
    for (const side of [silent, pushed]) await side.turn(IN_FLIGHT[0]!, warmUpSeconds)
    for (const calls of isSmoke ? IN_FLIGHT.slice(0, 1) : IN_FLIGHT) {
      for (const round of context.rounds()) {
        const { limit, project } = await interleaved(
          round,
          turns,
          () => silent.turn(calls, turnSeconds),
          () => pushed.turn(calls, turnSeconds),
        )
        const [silentCall, pushedCall] = [mainThreadMicroseconds(limit), mainThreadMicroseconds(project)]
        const pushesPerCall = sum(project.map(({ pushes }) => pushes)) / callsOf(project)
        const messagesPerCall = sum(limit.map(({ figure }) => figure.messages)) / callsOf(limit)
        context.record(rowOf(provider), round, {
          limit: silentCall / messagesPerCall,
          project: (pushedCall - silentCall) / pushesPerCall,
          costs: { limit: costOf(limit, callsOf(limit)), project: costOf(project, callsOf(project)) },
          parameters: { people: plan.calleesEach + 1, inFlight: calls },
          details: {
            pushesPerCall: rounded(pushesPerCall),
            callMicroseconds: rounded(silentCall),
            pushedCallMicroseconds: rounded(pushedCall),
          },
        })
      }
    }
    await pushed.end()
  }
}

interface Turn extends Usage {
  readonly figure: CallLoadFigures
  readonly mainMs: number
  readonly pushes: number
}

function callsOf(turns: readonly Turn[]): number {
  return sum(turns.map(({ figure }) => figure.calls))
}

function mainThreadMicroseconds(turns: readonly Turn[]): number {
  return (sum(turns.map(({ mainMs }) => mainMs)) * 1000) / callsOf(turns)
}

/** A server, those who call one another there, and perhaps where it pushes to. */
class Side {
  readonly #server: RunningServer
  readonly #load: Program<CallLoadProtocol>
  readonly #sink: Program<PushSinkProtocol> | undefined

  private constructor(
    server: RunningServer,
    load: Program<CallLoadProtocol>,
    sink: Program<PushSinkProtocol> | undefined,
  ) {
    this.#server = server
    this.#load = load
    this.#sink = sink
  }

  static async open(context: BenchmarkContext, plan: StreetPlan, provider?: PushProvider): Promise<Side> {
    const dataFolder = join(context.folder, provider ?? 'silent')
    const groups = await settle(dataFolder, plan, (folder, count, devices, contacts) =>
      prefillPeople(folder, count, devices, contacts, provider),
    )
    const sink = provider && (await Program.start<PushSinkProtocol>('push-sink', { provider }))
    context.after(() => sink?.end())
    const environment = (await sink?.ask({ kind: 'answer-all' }))?.environment ?? {}
    const { profilesFolder } = context
    const server = await startServer({ dataFolder, environment, profilesFolder })
    context.after(() => server.end())
    return new Side(server, await startLoad(context, server.http, 'project', groups), sink)
  }

  async turn(calls: number, seconds: number): Promise<Turn> {
    const { pid } = this.#server
    const [mainBefore, pushesBefore] = [mainThreadMs(pid), await this.#countPushes()]
    const { figure, ...usage } = await withUsage(pid, async () => {
      const figures = await this.#load.ask({ kind: 'in-flight', calls, seconds })
      await this.#idle()
      return figures
    })
    const mainMs = mainThreadMs(pid) - mainBefore
    return { ...usage, figure, mainMs, pushes: (await this.#countPushes()) - pushesBefore }
  }

  async end(): Promise<void> {
    await this.#load.end()
    await this.#server.end()
    await this.#sink?.end()
  }

  async #countPushes(): Promise<number> {
    return (await this.#sink?.ask({ kind: 'ask' }))?.answered ?? 0
  }

  /** Pushes leave after the reply: resolves when the server has nothing to do any more. */
  async #idle(): Promise<void> {
    const { pid } = this.#server
    let doneMs = mainThreadMs(pid)
    for (;;) {
      await sleep(LOOK_MS)
      const nowMs = mainThreadMs(pid)
      if (nowMs - doneMs < IDLE_SHARE_MAX * LOOK_MS) return
      doneMs = nowMs
    }
  }
}

const LOOK_MS = 100
/** An idle server's timers take less. */
const IDLE_SHARE_MAX = 0.03
