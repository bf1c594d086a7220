/** Loaded before a command: when it ends, what it used goes to standard error as JSON. */

import { readFileSync } from 'node:fs'

export interface UsageAtExit {
  readonly cpuMicroseconds: number
  /** The most memory it had resident at a time; `null` where the system does not say. */
  readonly residentBytesMost: number | null
}

process.on('exit', () => {
  const { user, system } = process.cpuUsage()
  const usage: UsageAtExit = { cpuMicroseconds: user + system, residentBytesMost: residentBytesMost() }
  process.stderr.write(JSON.stringify(usage))
})

/** Not `maxRSS` of the resource usage: before its own, Linux counts there what the process that started it has. */
function residentBytesMost(): number | null {
  try {
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1])
  } catch {
    return null
  }
}
