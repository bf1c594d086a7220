/** Runs programs: built ones of this project, and installed foreign ones. */

import { execFile, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export interface Outcome {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

/** The path of a built program or module, such as `scripts/doctor` or `test/support/store-holder`. */
export function builtProgram(name: string): string {
  return join(PROJECT_ROOT, 'dist', `${name}.js`)
}

/** The path of a program to start: of `joined-programs.ts` where the suite has made it, else as it was built. */
export function startedProgram(name: string): string {
  const joined = join(process.env.CALLSIGN_JOINED_PROGRAMS ?? '', `${name}.js`)
  return isAbsolute(joined) && existsSync(joined) ? joined : builtProgram(name)
}

/** Starts a program that ends with the test process, however that ends: at its time limit tap kills it outright. */
export const spawnBound = ((file: string, args: readonly string[], options: SpawnOptions) =>
  existsSync(SETPRIV)
    ? spawn(SETPRIV, ['--pdeathsig', 'KILL', file, ...args], options)
    : spawn(file, args, options)) as typeof spawn

/** Why a test that needs these files must be skipped, or false when all are there. */
export function skipWithout(paths: readonly string[], packages: string): string | false {
  const missing = paths.filter(path => !existsSync(path))
  return missing.length > 0 && `needs the Debian packages ${packages}: ${missing.join(', ')} not found`
}

/** Runs a program to its end, with `input` on its standard input and nothing but `environment` around it. */
export function runProgram(
  file: string,
  args: readonly string[],
  { input = '', environment = {} }: { input?: string; environment?: Readonly<Record<string, string>> } = {},
): Promise<Outcome> {
  return new Promise(resolve => {
    const env = { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', ...environment }
    const child = execFile(file, args, { env, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? 'unknown'), stdout, stderr }),
    )
    // A program that ends without reading its input says why by itself.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  })
}

const SETPRIV = '/usr/bin/setpriv'
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
