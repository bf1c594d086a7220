#!/usr/bin/env node

/** Audits a log as a third party that knows its public keys and nothing else: see `docs/check/auditor.md`. */

import { once } from 'node:events'
import { basename } from 'node:path'
import { formatVerifierKey } from '../src/log/note.ts'
import { AuditServer, readOwnKey } from './audit/audit-server.ts'
import { Auditor } from './audit/auditor.ts'
import type { Verdict } from './audit/checks.ts'
import { explain } from './audit/explain.ts'
import { AuditFailure } from './audit/finding.ts'
import { jsonReport, terminalReport } from './audit/report.ts'
import { readSettings, type Settings, USAGE } from './audit/settings.ts'
import { endWithReader } from './support/broken-pipe.ts'
import { UsageError } from './support/command.ts'

async function main(): Promise<Verdict> {
  const argv = process.argv.slice(2)
  let settings: Settings | undefined
  try {
    if (argv[0] === 'explain') return explain(argv.slice(1), text => process.stdout.write(text))
    settings = readSettings(argv, process.env)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`audit: ${error.message}\n\n${usage()}`)
    return 2
  }
  if (settings === undefined) {
    process.stdout.write(usage())
    return 0
  }
  return audit(settings)
}

/** As the package of its own has another name for the command. */
function usage(): string {
  const isPackage = basename(process.argv[1] ?? '').startsWith('callsign-audit')
  return isPackage ? USAGE.replaceAll('callsign audit', 'callsign-audit') : USAGE
}

async function audit({ followMs, serve, ...settings }: Settings): Promise<Verdict> {
  const write = (text: string) => process.stdout.write(text)
  const report = process.stdout.isTTY ? terminalReport(write) : jsonReport(write)
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
  let auditor: Auditor | undefined
  let server: AuditServer | undefined
  try {
    auditor = new Auditor({ ...settings, keepsHashes: serve !== undefined, report, stop: stop.signal })
    if (followMs === undefined) return await auditor.run()
    if (serve !== undefined) {
      const key = readOwnKey(`${settings.stateFile}.key`, serve.name)
      server = await AuditServer.listen({ ...serve, key, view: auditor, nowMs: Date.now })
      report.finding({ check: 'serve', ok: true, detail: `as ${formatVerifierKey(key)}`, url: server.url })
    }
    const verdict = await auditor.follow(followMs)
    // People are to see that it is red.
    if (verdict === 1 && server !== undefined && !stop.signal.aborted) await once(stop.signal, 'abort')
    return verdict
  } catch (error) {
    // Following a log can be stopped in good order; a stopped single audit has not checked the log.
    if (stop.signal.aborted) return followMs === undefined ? 2 : 0
    if (!(error instanceof AuditFailure)) throw error
    report.finding(error.finding)
    return 2
  } finally {
    server?.close()
    auditor?.close()
  }
}

endWithReader()
try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`audit: ${error instanceof Error ? error.stack : error}\n`)
  process.exitCode = 2
}
