/**
 * How fast a third party audits a whole log from a server on the same machine, and in how much memory: the `audit`
 * command from its start to its exit, with no state, held against SHA-256 alone of the same bytes (one leaf and one
 * inner node per entry). The difference is fetching, the form of each entry, and comparing every hash of every tile.
 */

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { AppendLimitsProtocol, LimitFigures } from './support/append-limits.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { prefilledLog } from './support/prefill.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { profileArguments, startServer } from './support/server.ts'
import { mean, rounded } from './support/statistics.ts'
import type { UsageAtExit } from './support/usage-at-exit.ts'

const NOT_SHOWN =
  'The server has a core of its own and is one hop away; over a network the time is that of fetching 168 bytes per entry.'
const AUDIT: Row = {
  name: 'audit',
  project: 'audit of a whole log',
  limit: 'SHA-256 alone, same bytes',
  unit: 'entries/s',
  goal: { of: 'project', is: 'at least', value: 200_000 },
  notShown: NOT_SHOWN,
}
const MEMORY: Row = {
  name: 'audit-memory',
  project: 'audit of a whole log, most memory resident',
  limit: 'most that it may take',
  unit: 'MB',
  goal: { of: 'ratio', is: 'at most', value: 1 },
  notShown:
    'Keys have 32 bytes; entries of the largest size would make bundles of 16 MB, of which 16 can be under way.',
}
const MEGABYTES_MAX = 200
/** As long as an audit takes, so that both meet the same machine. */
const LIMIT_TIMES = 3

export const audit: Benchmark = { name: 'audit', run }

/** The cost of one run of the command. */
interface AuditFigures extends LimitFigures {
  readonly residentMegabytes: number
}

async function run(context: BenchmarkContext): Promise<void> {
  const { scale } = context
  const { entries, devices } = scale
  const log = await prefilledLog(context.storesFolder, { entries, devices })
  const server = await startServer({ dataFolder: log.dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const limits = await Program.start<AppendLimitsProtocol>('append-limits', { folder: context.folder })
  context.after(() => limits.end())
  const vkey = await publishedKey(server.http)
  for (const round of context.rounds()) {
    let residentMegabytes = 0
    const turns = await interleaved<LimitFigures>(
      round,
      scale.turns,
      () => limits.ask({ kind: 'sha256', entries: LIMIT_TIMES * entries }),
      async () => {
        const figures = await auditOnce(context, server.http, vkey)
        residentMegabytes = Math.max(residentMegabytes, figures.residentMegabytes)
        return figures
      },
    )
    const [limit, project] = [turns.limit, turns.project].map(figures => ({
      rate: mean(figures.map(({ entriesPerSecond }) => entriesPerSecond)),
      cpu: mean(figures.map(({ cpuMicrosecondsPerEntry }) => cpuMicrosecondsPerEntry)),
    }))
    context.record(AUDIT, round, {
      limit: limit!.rate,
      project: project!.rate,
      cpuRatio: limit!.cpu / project!.cpu,
      parameters: { entries },
      details: {
        cpuMicrosecondsPerEntry: rounded(project!.cpu),
        limitCpuMicrosecondsPerEntry: rounded(limit!.cpu),
      },
    })
    context.record(MEMORY, round, {
      limit: MEGABYTES_MAX,
      project: residentMegabytes,
      parameters: { entries },
    })
  }
}

/** Runs the command as anyone would, with a preload that prints what the process used. */
async function auditOnce(context: BenchmarkContext, url: string, vkey: string): Promise<AuditFigures> {
  const { scale, folder, profilesFolder } = context
  const stateFile = join(folder, 'audit.json')
  rmSync(stateFile, { force: true })
  const startedAt = performance.now()
  const { stderr } = await promisify(execFile)(process.execPath, [
    ...profileArguments(profilesFolder),
    '--import',
    USAGE_AT_EXIT,
    AUDIT_COMMAND,
    '--url',
    url,
    '--vkey',
    vkey,
    '--state',
    stateFile,
  ])
  const seconds = (performance.now() - startedAt) / 1000
  const { cpuMicroseconds, residentBytesMost }: UsageAtExit = JSON.parse(stderr)
  return {
    entriesPerSecond: scale.entries / seconds,
    cpuMicrosecondsPerEntry: cpuMicroseconds / scale.entries,
    residentMegabytes: (residentBytesMost ?? Number.NaN) / 1e6,
  }
}

async function publishedKey(url: string): Promise<string> {
  const answer = await fetch(`${url}/app/api/meta`)
  const { log } = (await answer.json()) as { log: { vkey: string } }
  return log.vkey
}

const AUDIT_COMMAND = fileURLToPath(new URL('../scripts/audit.js', import.meta.url))
const USAGE_AT_EXIT = new URL('./support/usage-at-exit.js', import.meta.url).href
