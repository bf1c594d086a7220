/** The server with people who call one another, its limit, and a load client for each. */

import { join } from 'node:path'
import type { BenchmarkContext } from './benchmark.ts'
import type { CallLimitProtocol } from './call-limit.ts'
import type { CallLoadFigures, CallLoadProtocol } from './call-load.ts'
import { type Person, prefillPeople } from './people.ts'
import { Program } from './program.ts'
import { withCpu } from './rounds.ts'
import { startServer } from './server.ts'
import { rounded, sum } from './statistics.ts'

export interface StreetPlan {
  readonly groups: number
  readonly callersEach: number
  readonly calleesEach: number
  /** Of each callee. */
  readonly devices: number
}

export type CallSide = (request: CallLoadProtocol['request']) => Promise<CallTurn>

export interface CallTurn {
  readonly figure: CallLoadFigures
  readonly cpu: number
}

/** Limit and project of calls, each asked through a load client of its own. */
export async function openStreet(
  context: BenchmarkContext,
  plan: StreetPlan,
): Promise<{ readonly bare: CallSide; readonly ours: CallSide }> {
  const dataFolder = join(context.folder, `data-${plan.calleesEach}-${plan.devices}`)
  const groups = await settle(dataFolder, plan)
  const server = await startServer({ dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const open = async (url: string, isBare: boolean) => {
    const load = await Program.start<CallLoadProtocol>('call-load', { url, isBare, groups })
    context.after(() => load.end())
    return load
  }
  const ours = await open(server.http, false)
  const { recorded } = await ours.ask({ kind: 'record' })
  const devices = plan.calleesEach * plan.devices
  const bareServer = await Program.start<CallLimitProtocol>('call-limit', { ...recorded, devices })
  context.after(() => bareServer.end())
  const bare = await open(`http://127.0.0.1:${await bareServer.ask('port')}`, true)
  return {
    bare: request => withCpu(bareServer.pid, () => bare.ask(request)),
    ours: request => withCpu(server.pid, () => ours.ask(request)),
  }
}

/** Processor time of the server per message. */
export function cpuPerMessage(turns: readonly CallTurn[]): number {
  return rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / sum(turns.map(({ figure }) => figure.messages)))
}

async function settle(dataFolder: string, { groups, callersEach, calleesEach, devices }: StreetPlan) {
  const each = callersEach + calleesEach
  const contacts = Array.from({ length: groups * each }, (_, at) => {
    const isCaller = at % each < callersEach
    const firstCallee = at - (at % each) + callersEach
    return isCaller ? Array.from({ length: calleesEach }, (_, callee) => firstCallee + callee) : []
  })
  const people = await prefillPeople(dataFolder, groups * each, devices, contacts)
  return Array.from({ length: groups }, (_, group) => {
    const members: Person[] = people.slice(group * each, (group + 1) * each)
    return { callers: members.slice(0, callersEach), callees: members.slice(callersEach) }
  })
}
