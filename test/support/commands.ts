/** Runs an operator's command as a process of its own and reads the JSON lines it prints. */

import { runProgram, startedProgram } from './programs.ts'

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
  const script = startedProgram(`scripts/${name}`)
  const { code, stdout, stderr } = await runProgram(process.execPath, [script, ...args], { environment })
  const lines = stdout.split('\n').filter(line => line.startsWith('{'))
  return { code, lines: lines.map(line => JSON.parse(line)), stderr }
}
