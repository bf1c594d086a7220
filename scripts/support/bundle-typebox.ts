/**
 * A step of the build: bundles the imported parts of typebox beside the built modules, which find it before the
 * package. The package has 540 modules; loading them would take a quarter of the server's start. Without this step,
 * as in what npm packs, the package itself is used.
 */

import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const FOLDER = join(ROOT, 'dist', 'node_modules', 'typebox')
/** By the name of its file. */
const MODULES = { index: 'typebox', schema: 'typebox/schema' }

rmSync(FOLDER, { recursive: true, force: true })
await build({
  absWorkingDir: ROOT,
  entryPoints: MODULES,
  outdir: FOLDER,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  logLevel: 'warning',
})
const exports = { '.': './index.js', './schema': './schema.js' }
writeFileSync(join(FOLDER, 'package.json'), JSON.stringify({ name: 'typebox', type: 'module', exports }))
copyFileSync(join(ROOT, 'node_modules', 'typebox', 'license'), join(FOLDER, 'license'))
