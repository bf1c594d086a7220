/** Reads the published test vectors that are carried in `test/vectors` (compiled tests run from `dist/`). */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

function projectRoot(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'test/vectors')) || !existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error(`no test/vectors above ${import.meta.dirname}`)
    folder = parent
  }
  return folder
}

/** The folder that holds `package.json` and the test data. */
export const PROJECT_ROOT = projectRoot()

/** The parsed JSON of one vector file, typed by the caller who knows its shape. */
export function readVectors<Shape>(name: string): Shape {
  return JSON.parse(readFileSync(join(PROJECT_ROOT, 'test/vectors', `${name}.json`), 'utf8')) as Shape
}
