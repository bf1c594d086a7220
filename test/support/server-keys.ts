/** Server keys of a running server, made as its operator makes them. */

import type { Scope } from '../../src/domain/operators/server-key.ts'
import { builtProgram, runProgram } from './programs.ts'

/** The output of `callsign server-key` for these arguments. Rejects with its error message. */
export async function serverKeyCommand(
  dataFolder: string,
  { serverApi }: { readonly serverApi: string },
  ...args: readonly string[]
): Promise<string> {
  const program = [builtProgram('scripts/server-key'), ...args, '--dev', '--url', serverApi]
  const environment = { CALLSIGN_DATA_DIR: dataFolder }
  const { code, stdout, stderr } = await runProgram(process.execPath, program, { environment })
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

export function newServerKey(
  dataFolder: string,
  server: { readonly serverApi: string },
  scopes: readonly Scope[],
): Promise<string> {
  return serverKeyCommand(dataFolder, server, 'create', '--name', 'test', '--scopes', scopes.join(','))
}
