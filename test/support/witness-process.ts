/** The witness program, started as an operator would. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { spawnBound, startedProgram } from './programs.ts'

export interface WitnessFolder {
  readonly folder: string
  readonly name: string
  /** Verifier keys of the logs that it cosigns for. */
  readonly logs: readonly string[]
  /** In place of `logs`: the whole file. */
  readonly list?: string
  /** Whether it rebuilds the indexes of the list. */
  readonly isRebuilding?: boolean
  /** The port it had before, to come back at. */
  readonly port?: number
}

export interface RunningWitness {
  readonly name: string
  readonly http: string
  readonly port: number
  readonly vkey: string
  /** Its line in a policy. */
  readonly policyLine: string
  end(signal?: NodeJS.Signals): Promise<void>
}

/** Starts it in a folder that has its key and what it cosigned last, and ends it with the test. */
export async function startWitness(
  t: Test,
  { folder, name, logs, list, isRebuilding = false, port = 0 }: WitnessFolder,
): Promise<RunningWitness> {
  const listFile = join(folder, 'logs')
  writeFileSync(listFile, list ?? `${logs.map(vkey => `log ${vkey}\n`).join('')}quorum none\n`)
  const key = join(folder, 'key')
  const flags = ['--key', key, '--name', name, '--logs', listFile, '--data-dir', join(folder, 'data')]
  if (isRebuilding) flags.push('--index')
  const program = [startedProgram('scripts/witness'), ...flags, '--port', `${port}`]
  const child = spawnBound(process.execPath, program, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stderr!.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    await ended
  }
  t.teardown(() => end())
  const { http, vkey } = await new Promise<{ http: string; vkey: string }>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', line => resolve(JSON.parse(line)))
    void ended.then(() => reject(new Error(`the witness ended: ${text}`)))
  })
  const policyLine = `witness ${name} ${vkey} ${http}\n`
  return { name, http, port: Number(new URL(http).port), vkey, policyLine, end }
}

/** The secret key in the folder of a witness. */
export function witnessKeyText(folder: string): string {
  return readFileSync(join(folder, 'key'), 'utf8').trim()
}
