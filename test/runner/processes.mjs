/** Starts test processes, each in a process group that ends with it, and reads what they cost. */

import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { killProcess, ProcessorTime } from './processor-time.mjs'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
export const FILE_TIMEOUT_S = Number(process.env.TAP_TIMEOUT ?? 600)
/** After its time limit a test says where it was. */
const GRACE_S = 5

/**
 * Runs a test process to its end. Resolves with its exit code, its lines, and the seconds it took: `wallS`, and `cpuS` of
 * processor time with all that it started.
 */
export async function runTestProcess(args, environment) {
  const startedAtMs = performance.now()
  const time = new ProcessorTime()
  const [shell, command] = time.command(process.execPath, args)
  const child = spawn(shell, command, {
    cwd: ROOT,
    env: { ...process.env, ...environment, TAP_TIMEOUT: String(FILE_TIMEOUT_S) },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  })
  running.add(child)
  const timer = setTimeout(() => killGroup(child), (FILE_TIMEOUT_S + GRACE_S) * 1000)
  const closed = new Promise(resolve => child.once('close', resolve))
  const times = text(child.stdio[3])
  const lines = []
  for await (const line of createInterface({ input: child.stdout })) lines.push(line)
  const code = await closed
  running.delete(child)
  clearTimeout(timer)
  killGroup(child)
  return { code, lines, cpuS: time.end(await times), wallS: (performance.now() - startedAtMs) / 1000 }
}

const running = new Set()
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    for (const child of running) killGroup(child)
    process.exit(1)
  })

function killGroup(child) {
  killProcess(-child.pid)
}

/** Whether the command ended with 0. It prints to this process's output. */
export async function succeeds(command, args) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  return (await new Promise(resolve => child.once('close', resolve))) === 0
}
