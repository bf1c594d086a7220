/** The linter of OpenAPI documents. */

import { join } from 'node:path'
import { type Outcome, runProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

/** `redocly lint` without anything of it on the network. */
export function lintOpenApi(file: string): Promise<Outcome> {
  const redocly = join(PROJECT_ROOT, 'node_modules/@redocly/cli/bin/cli.js')
  const config = join(PROJECT_ROOT, 'test/support/redocly.yaml')
  const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const args = [redocly, 'lint', file, '--config', config, '--format', 'stylish']
  return runProgram(process.execPath, args, { environment })
}
