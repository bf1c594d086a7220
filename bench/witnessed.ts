/** The cost of witnesses: Register with a quorum of two on the same machine, held against the same server without. */

import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { Program } from './support/program.ts'
import type { RegisterLoadProtocol } from './support/register-load.ts'
import { interleaved } from './support/rounds.ts'
import { type RunningServer, startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { costOf, withUsage } from './support/usage.ts'

const ROW: Row = {
  name: 'register-witnessed',
  project: 'Register with a quorum of two witnesses',
  limit: 'the same without witnesses',
  unit: 'calls/s',
  goal: { of: 'ratio', is: 'at least', value: 0.8 },
  notShown:
    'The witnesses share the cores and the disk with the server, and are as near as can be: elsewhere a round takes a network’s way longer, and rounds hold more calls.',
}

const IN_FLIGHT = 64
const WITNESS = new URL('../scripts/witness.js', import.meta.url).pathname

export const witnessed: Benchmark = { name: 'witnessed', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { scale, folder } = context
  const alone = await startServer({ dataFolder: join(folder, 'alone') })
  context.after(() => alone.end())
  const cosigned = await startWitnessed(context)
  const client = await Program.start<RegisterLoadProtocol>('register-load', {})
  context.after(() => client.end())
  const measure = ({ grpc: address, pid }: RunningServer, seconds: number) =>
    withUsage(pid, () => client.ask({ address, inFlight: IN_FLIGHT, seconds }))
  for (const server of [alone, cosigned]) await measure(server, scale.warmUpSeconds)
  for (const round of context.rounds()) {
    const turns = await interleaved(
      round,
      scale.turns,
      () => measure(alone, scale.turnSeconds),
      () => measure(cosigned, scale.turnSeconds),
    )
    const [limit, project] = [summarise(turns.limit), summarise(turns.project)]
    context.record(ROW, round, {
      limit: limit.callsPerSecond,
      project: project.callsPerSecond,
      cpuRatio: limit.cpu / project.cpu,
      costs: { limit: limit.cost, project: project.cost },
      parameters: { inFlight: IN_FLIGHT, witnesses: 2 },
      details: { limitP50Ms: limit.p50, projectP50Ms: project.p50, projectP99Ms: project.p99 },
    })
  }
}

function summarise(turns: readonly Awaited<ReturnType<typeof withUsage<LoadFigures>>>[]) {
  const calls = sum(turns.map(({ figure }) => figure.calls))
  return {
    callsPerSecond: mean(turns.map(({ figure }) => figure.callsPerSecond)),
    p50: rounded(mean(turns.map(({ figure }) => figure.latency.p50))),
    p99: rounded(mean(turns.map(({ figure }) => figure.latency.p99))),
    cpu: sum(turns.map(({ cpu }) => cpu)) / calls,
    cost: costOf(turns, calls),
  }
}

/** A server whose policy has the two witnesses; its keys come to be with its first start. */
async function startWitnessed(context: BenchmarkContext): Promise<RunningServer> {
  const dataFolder = join(context.folder, 'cosigned')
  const first = await startServer({ dataFolder })
  const answer = await fetch(`${first.http}/app/api/meta`)
  const { log } = (await answer.json()) as { readonly log: { readonly vkey: string } }
  await first.end()
  const names = ['near', 'far']
  const lines = await Promise.all(names.map(name => startWitness(context, name, log.vkey)))
  const policy = join(context.folder, 'policy')
  writeFileSync(policy, `log ${log.vkey}\n${lines.join('')}group both all ${names.join(' ')}\nquorum both\n`)
  const environment = { CALLSIGN_WITNESS_POLICY: policy }
  const server = await startServer({ dataFolder, environment, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  return server
}

/** Returns its line in a policy. */
async function startWitness(context: BenchmarkContext, name: string, vkey: string): Promise<string> {
  const folder = join(context.folder, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'logs'), `log ${vkey}\nquorum none\n`)
  const flags = ['--key', join(folder, 'key'), '--name', `${name}.example`, '--logs', join(folder, 'logs')]
  const place = ['--data-dir', join(folder, 'data'), '--port', '0']
  const child = spawn(process.execPath, [WITNESS, ...flags, ...place], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  context.after(async () => void child.kill())
  const line = await new Promise<string>(resolve =>
    createInterface({ input: child.stdout! }).once('line', resolve),
  )
  const started: { http: string; vkey: string } = JSON.parse(line)
  return `witness ${name} ${started.vkey} ${started.http}\n`
}

type LoadFigures = RegisterLoadProtocol['answer']
