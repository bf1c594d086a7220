/**
 * A step of the build: makes one file of the worker that seals and opens frames, and puts its code into the module that starts
 * it. So `@callsign/sdk/app/media` works with any bundler, and from any origin: a worker of a Blob URL needs no file. Pages whose
 * policy forbids such workers load the one file, `@callsign/sdk/app/media-worker`.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'dist', 'src', 'app', 'media')

const { outputFiles } = await build({
  entryPoints: [join(FOLDER, 'worker.js')],
  bundle: true,
  minify: true,
  platform: 'browser',
  // A classic worker, which a module worker's options load too.
  format: 'iife',
  target: 'es2022',
  write: false,
  logLevel: 'warning',
})
const code = outputFiles[0]!.text.trim()
writeFileSync(join(FOLDER, 'worker.bundle.js'), `${code}\n`)
writeFileSync(
  join(FOLDER, 'new-worker.js'),
  `/** Starts the worker of a call, whose code is here. scripts/support/inline-worker.ts made this module. */
const code = ${JSON.stringify(code)}
/** One for all calls of the page: Blob URLs that are revoked at once fail in some browsers. */
let url
export function newWorker() {
  url ??= URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))
  return new Worker(url)
}
`,
)
