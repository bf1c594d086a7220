/** Runs programs of other languages, where they are installed. */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'

export interface Outcome {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

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

const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
