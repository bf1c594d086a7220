/**
 * A step of the build: bundles packages of many modules beside the built ones, which find them before the packages.
 * Loading typebox's 540 modules would take a quarter of the server's start. Node also parses and compiles a lexer for
 * each CommonJS package that a module imports, and a bundle needs none. Without this step, as in what npm packs, the
 * packages themselves are used.
 */

import { copyFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const BUNDLED = join(ROOT, 'dist', 'node_modules')
/** The imports from each package: files of the bundle by the subpath that they serve. */
const PACKAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  typebox: { '.': 'index', './schema': 'schema' },
  '@grpc/grpc-js': { '.': 'index' },
  pino: { '.': 'index' },
  'prom-client': {
    './lib/counter.js': 'counter',
    './lib/gauge.js': 'gauge',
    './lib/histogram.js': 'histogram',
    './lib/registry.js': 'registry',
    './lib/defaultMetrics.js': 'defaultMetrics',
  },
}

rmSync(BUNDLED, { recursive: true, force: true })
for (const [name, files] of Object.entries(PACKAGES)) {
  const folder = join(BUNDLED, name)
  await build({
    absWorkingDir: ROOT,
    entryPoints: Object.entries(files).map(([path, out]) => ({ in: join(name, path), out })),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'warning',
    // Loaded by grpc-js for a service that the server does not have.
    external: ['@grpc/proto-loader'],
    // CommonJS requires Node's own modules by it.
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
    },
  })
  const exports = Object.fromEntries(Object.entries(files).map(([path, out]) => [path, `./${out}.js`]))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, type: 'module', exports }))
  const licence = readdirSync(join(ROOT, 'node_modules', name)).find(file => /^licen[cs]e/i.test(file))!
  copyFileSync(join(ROOT, 'node_modules', name, licence), join(folder, licence))
}
