/** Lets the operator's commands carry out a failure, or asks the operator for it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A command that failed, or an act that did not come. */
export class NotDone extends Error {}

/**
 * Runs a command in a shell, in a process group of its own. Its output goes to standard error. Throws `NotDone` when it
 * fails, or is not done in time.
 */
export async function runCommandOf(command: string, node: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', command.replaceAll('{node}', node)], {
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
    env: environmentFor(node),
    detached: true,
  })
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), COMMAND_MS_MAX)
  try {
    // Not its streams' end: a server that it starts keeps them.
    const [code, signal] = await once(child, 'exit')
    if (code !== 0) throw new NotDone(`the command ended with ${code ?? signal}: ${command}`)
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves when the operator presses Enter. Throws `NotDone` without a terminal. */
export async function askForEnter(sentence: string): Promise<void> {
  if (!process.stdin.isTTY) throw new NotDone('there is no terminal to ask at: give the command')
  const lines = createInterface({ input: process.stdin })
  process.stderr.write(`drill: ${sentence}, then press Enter\n`)
  const given = new AbortController()
  const timer = setTimeout(() => given.abort(), HAND_MS_MAX)
  try {
    await once(lines, 'line', { signal: given.signal })
  } catch {
    throw new NotDone(`it was not done in ${HAND_MS_MAX / 1_000} s`)
  } finally {
    clearTimeout(timer)
    lines.close()
  }
}

/** Codes, tokens and keys stay here. */
function environmentFor(node: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(?:CALLSIGN|KT|VRF)_/.test(name))
  return { ...Object.fromEntries(own), DRILL_NODE: node }
}

const COMMAND_MS_MAX = 120_000
/** An act by hand. */
export const HAND_MS_MAX = 600_000
