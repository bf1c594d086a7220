/** The Swift toolchain, in the root that `scripts/swift-root.sh` makes. */

import { join } from 'node:path'
import { type Outcome, runProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

/** Why there is no Swift here; false where there is. Makes the root where there is none yet. */
export async function swiftSkip(): Promise<string | false> {
  const { code, stderr } = await run('swift-root', [])
  return code !== 0 && `swift: skipped, ${stderr.trim().split('\n').at(-1)}`
}

/** Runs `swift` in the folder `swift`. The root sees nothing outside the project, which is `/callsign` there. */
export function runSwift(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return run('swift', args, environment)
}

function run(script: string, args: readonly string[], environment = {}): Promise<Outcome> {
  return runProgram(join(PROJECT_ROOT, `scripts/${script}.sh`), args, {
    environment: { ...OWN, ...environment },
  })
}

const OWN = Object.fromEntries(
  ['PATH', 'HOME', 'XDG_CACHE_HOME', 'CALLSIGN_SWIFT_ROOT', 'CALLSIGN_DEBIAN_MIRROR'].flatMap(name => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }),
)
