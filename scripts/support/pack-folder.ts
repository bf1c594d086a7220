/** Makes a package's tarball of a folder, for the programs that put one together. */

import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'

/** Packs `folder` into `target`, and prints where the tarball is; under the package's name unless one is given. */
export function packFolder(folder: string, target: string, name?: string): void {
  const packed = execFileSync('npm', ['pack', folder, '--pack-destination', target, '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [{ filename }] = JSON.parse(packed)
  const path = join(target, name ?? filename)
  renameSync(join(target, filename), path)
  process.stdout.write(`${path}\n`)
}
