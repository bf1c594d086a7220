/** The server with people who call one another, its limit, and a load client for each. */

import { randomBytes } from 'node:crypto'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { newId } from '../../src/domain/ids.ts'
import type { BenchmarkContext } from './benchmark.ts'
import type { CallLimitProtocol } from './call-limit.ts'
import type { CallGroup, CallLoadFigures, CallLoadProtocol, CallServer } from './call-load.ts'
import type { DeliveryServerProtocol } from './delivery-server.ts'
import { type Person, prefillPeople } from './people.ts'
import { Program } from './program.ts'
import { profileArguments, type RunningServer, type ServerOptions, startServer } from './server.ts'
import { sum } from './statistics.ts'
import { type Usage, type Work, withUsage } from './usage.ts'

export interface StreetPlan {
  readonly groups: number
  readonly callersEach: number
  readonly calleesEach: number
  /** Devices of each callee. */
  readonly devices: number
}

export type CallSide = (request: CallLoadProtocol['request']) => Promise<CallTurn>

export interface CallTurn extends Usage {
  readonly figure: CallLoadFigures
}

/** Limit and project of calls, each asked through a load client of its own. */
export interface Sides {
  readonly bare: CallSide
  readonly ours: CallSide
}

/** A server, and people in its store who call one another. */
interface CalledServer {
  readonly server: RunningServer
  readonly groups: readonly CallGroup[]
}

interface CalledOptions extends Pick<ServerOptions, 'nodeArguments' | 'environment'> {
  /** The data folder, below the benchmark's. */
  readonly folder: string
  /** Another checkout, whose code also fills the store. */
  readonly checkout?: string | undefined
}

export async function openCalled(
  context: BenchmarkContext,
  plan: StreetPlan,
  { folder, ...options }: CalledOptions,
): Promise<CalledServer> {
  const dataFolder = join(context.folder, folder)
  const groups = await settle(dataFolder, plan, await prefillOf(options.checkout))
  const server = await startServer({ dataFolder, ...options, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  return { server, groups }
}

async function prefillOf(checkout: string | undefined): Promise<typeof prefillPeople> {
  if (checkout === undefined) return prefillPeople
  const path = join(resolve(checkout), 'dist/bench/support/people.js')
  const people: typeof import('./people.ts') = await import(pathToFileURL(path).href)
  return people.prefillPeople
}

/** The server alone, of this checkout or another. */
export async function openAlone(
  context: BenchmarkContext,
  plan: StreetPlan,
  options: CalledOptions,
): Promise<CallSide> {
  const { server, groups } = await openCalled(context, plan, options)
  const load = await startLoad(context, server.http, 'project', groups)
  return request => withUsage(server.pid, () => load.ask(request))
}

export async function openStreet(
  context: BenchmarkContext,
  plan: StreetPlan,
  options: Pick<ServerOptions, 'nodeArguments' | 'environment'> = {},
): Promise<Sides & { readonly server: RunningServer }> {
  const folder = `data-${plan.calleesEach}-${plan.devices}`
  const { server, groups } = await openCalled(context, plan, { folder, ...options })
  const opened = { plan, groups, server: 'project', url: server.http, pid: server.pid } as const
  return { ...(await openSides(context, opened)), server }
}

/** As `openStreet`, but for the project's sessions alone, over inboxes in memory. */
export async function openDeliveries(context: BenchmarkContext, plan: StreetPlan): Promise<Sides> {
  const groups = Array.from({ length: plan.groups }, () => ({
    callers: strangers(plan.callersEach, 1),
    callees: strangers(plan.calleesEach, plan.devices),
  }))
  const profile = profileArguments(context.profilesFolder)
  const server = await Program.start<DeliveryServerProtocol>('delivery-server', { groups }, profile)
  context.after(() => server.end())
  const url = `http://127.0.0.1:${await server.ask('port')}`
  return openSides(context, { plan, groups, server: 'sessions', url, pid: server.pid })
}

interface Opened {
  readonly plan: StreetPlan
  readonly groups: readonly CallGroup[]
  readonly server: CallServer
  readonly url: string
  readonly pid: number
}

async function openSides(context: BenchmarkContext, { plan, groups, ...opened }: Opened): Promise<Sides> {
  const ours = await startLoad(context, opened.url, opened.server, groups)
  const { recorded } = await ours.ask({ kind: 'record' })
  const devices = plan.calleesEach * plan.devices
  const bareServer = await Program.start<CallLimitProtocol>('call-limit', { ...recorded, devices })
  context.after(() => bareServer.end())
  const bareUrl = `http://127.0.0.1:${await bareServer.ask('port')}`
  const bare = await startLoad(context, bareUrl, 'bare', groups)
  return {
    bare: request => withUsage(bareServer.pid, () => bare.ask(request)),
    ours: request => withUsage(opened.pid, () => ours.ask(request)),
  }
}

export async function startLoad(
  context: BenchmarkContext,
  url: string,
  server: CallServer,
  groups: readonly CallGroup[],
  devicesUrl = url,
): Promise<Program<CallLoadProtocol>> {
  const load = await Program.start<CallLoadProtocol>('call-load', { url, devicesUrl, server, groups })
  context.after(() => load.end())
  return load
}

/** People whom no store knows. */
function strangers(count: number, devices: number): Person[] {
  const newText = () => String(newId(randomBytes))
  return Array.from({ length: count }, () => ({
    userId: newText(),
    devices: Array.from({ length: devices }, () => ({ deviceId: newText(), token: newText() })),
  }))
}

/** The cost of one call or message, over several turns. */
export function workOf(turns: readonly CallTurn[], operation: 'calls' | 'messages'): Work {
  return { turns, operations: sum(turns.map(({ figure }) => figure[operation])) }
}

/** Makes a data folder with groups; in each, every caller has every callee for a contact. */
export async function settle(
  dataFolder: string,
  { groups, callersEach, calleesEach, devices }: StreetPlan,
  prefill = prefillPeople,
): Promise<CallGroup[]> {
  const each = callersEach + calleesEach
  const contacts = Array.from({ length: groups * each }, (_, at) => {
    const isCaller = at % each < callersEach
    const firstCallee = at - (at % each) + callersEach
    return isCaller ? Array.from({ length: calleesEach }, (_, callee) => firstCallee + callee) : []
  })
  const people = await prefill(dataFolder, groups * each, devices, contacts)
  return Array.from({ length: groups }, (_, group) => {
    const members: Person[] = people.slice(group * each, (group + 1) * each)
    return { callers: members.slice(0, callersEach), callees: members.slice(callersEach) }
  })
}
