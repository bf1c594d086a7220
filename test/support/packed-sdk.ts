/** An app with the package from `npm run pack-sdk` installed; the packages that it names are those of this project. */

import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PACKAGE } from './package-name.ts'
import { builtProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

const run = promisify(execFile)

/** `folder` is where the SDK is installed, in the app that is given. */
export async function installPackedSdk(app: string) {
  const { stdout } = await run(process.execPath, [builtProgram('scripts/support/pack-sdk'), app])
  const tarball = stdout.trim()
  const folder = join(app, 'node_modules', PACKAGE)
  mkdirSync(folder, { recursive: true })
  await run('tar', ['xzf', tarball, '-C', folder, '--strip-components=1'])
  mkdirSync(join(app, 'node_modules', '@types'), { recursive: true })
  for (const name of ['@noble', 'react', '@types/react', 'csstype']) {
    symlinkSync(join(PROJECT_ROOT, 'node_modules', name), join(app, 'node_modules', name))
  }
  return { folder, tarball }
}
