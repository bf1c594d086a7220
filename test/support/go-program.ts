/** Go programs whose modules come from the Go proxy, such as those of `test/strangers`. */

import { existsSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'
import { type Outcome, runProgram } from './programs.ts'

export interface GoBuild {
  /** Why tests that need it must be skipped, or false. */
  readonly skip: string | false
  readonly run: (input: string) => Promise<Outcome>
}

/**
 * Builds the program in `source` to `folder/stranger`, and `tools` of its modules beside it, by what its go.sum names. A
 * `toolchain` other than the installed one comes from the Go proxy, too.
 */
export async function buildGo(
  source: string,
  folder: string,
  { tools = [], toolchain }: { tools?: readonly string[]; toolchain?: string } = {},
): Promise<GoBuild> {
  const needed = toolchain ?? 'Go 1.25 or newer'
  const unbuilt = (skip: string): GoBuild => ({ skip, run: () => Promise.reject(new Error(skip)) })
  const go = findGo()
  if (go === undefined) return unbuilt(`needs ${needed}: no go in PATH`)
  const environment = goEnvironment(toolchain)
  const fetched = await runProgram(go, ['-C', source, 'mod', 'download'], { environment })
  if (fetched.code !== 0)
    return unbuilt(`needs ${needed}, and its modules from the Go proxy: ${fetched.stderr.trim()}`)
  const program = join(folder, 'stranger')
  const built = await runProgram(go, ['-C', source, 'build', '-buildvcs=false', '-o', program, '.'], {
    environment,
  })
  if (built.code !== 0) throw new Error(`go build: ${built.stderr}`)
  for (const tool of tools) {
    const made = await runProgram(go, ['-C', source, 'build', '-o', join(folder, basename(tool)), tool], {
      environment,
    })
    if (made.code !== 0) throw new Error(`go build ${tool}: ${made.stderr}`)
  }
  return { skip: false, run: input => runProgram(program, [], { input }) }
}

/** Go's program, where it is in PATH. */
export function findGo(): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map(each => join(each, 'go'))
    .find(existsSync)
}

/** The folder of a module that the program in `source` names; undefined where it can't be had. */
export async function goModuleFolder(
  source: string,
  module: string,
  toolchain: string,
): Promise<string | undefined> {
  const go = findGo()
  if (go === undefined) return undefined
  const environment = goEnvironment(toolchain)
  const { code, stdout } = await runProgram(go, ['-C', source, 'mod', 'download', '-json', module], {
    environment,
  })
  return code === 0 ? (JSON.parse(stdout) as { Dir: string }).Dir : undefined
}

/** The variables that Go needs to fetch and build. */
export function goEnvironment(toolchain?: string): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => /^(?:GO|HOME$|https?_proxy$)/i.test(name))
  const chosen = toolchain === undefined ? [] : [['GOTOOLCHAIN', toolchain]]
  return Object.fromEntries([...entries, ...chosen]) as Record<string, string>
}
