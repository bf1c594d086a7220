/** Runs an operator's command as a process of its own and reads the JSON lines it prints. */

import { join } from 'node:path'
import { runProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

export interface CommandOutcome {
  readonly code: number | string
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly stderr: string
}

/** Runs `dist/scripts/<name>.js` with nothing but `environment` around it. */
export async function runScript(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandOutcome> {
  const script = join(PROJECT_ROOT, 'dist/scripts', `${name}.js`)
  const { code, stdout, stderr } = await runProgram(process.execPath, [script, ...args], { environment })
  const lines = stdout.split('\n').filter(line => line.startsWith('{'))
  return { code, lines: lines.map(line => JSON.parse(line)), stderr }
}
