/**
 * A step of the build: the SDK for pages without a bundler. One file has all of it, for a script tag; another is for the script of a
 * service worker, which may not load modules in every browser. Each sets the global `callsign`.
 */

import { join } from 'node:path'
import { build } from 'esbuild'

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'dist', 'src')

for (const name of ['ui/browser', 'app/push/service-worker']) {
  await build({
    entryPoints: [join(FOLDER, `${name}.js`)],
    outfile: join(FOLDER, `${name}.bundle.js`),
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'callsign',
    target: 'es2022',
    legalComments: 'eof',
    // A page that has calls by LiveKit names its place in an import map.
    external: ['livekit-client', 'livekit-client/*'],
    logLevel: 'warning',
  })
}
