/** Makes a package's tarball of a folder, for the programs that put one together. */

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Packs `folder` into `target`, and prints where the tarball is. */
export function packFolder(folder: string, target: string): void {
  const packed = execFileSync('npm', ['pack', folder, '--pack-destination', target, '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [{ filename }] = JSON.parse(packed)
  process.stdout.write(`${join(target, filename)}\n`)
}
