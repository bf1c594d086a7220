/**
 * A step of the build: the pages. Each is a module and a style sheet; the pages of one surface share chunks, and nothing with the
 * other's. The built server needs no package for them: Swagger UI lies beside them too.
 */

import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { SWAGGER_UI_FILES, SWAGGER_UI_FOLDER } from '../../src/operations/console/api-page.ts'
import { BUILT, PAGES_FOLDER } from '../../src/operations/page-files.ts'
import { LICENCES, licencesOf } from './joined-programs.ts'

/** By surface: modules of `web/`. */
const PAGES = {
  dev: ['console/main', 'client/main', 'client/service-worker', 'events/main', 'docs/main', 'api/main'],
  operator: ['operator/main'],
} as const

const sources = join(BUILT, '..', 'web')
for (const [surface, modules] of Object.entries(PAGES)) {
  const folder = join(PAGES_FOLDER, surface)
  rmSync(folder, { recursive: true, force: true })
  const { metafile } = await build({
    absWorkingDir: join(BUILT, '..'),
    entryPoints: modules.map(name => join(BUILT, 'web', `${name}.js`)),
    outbase: join(BUILT, 'web'),
    outdir: folder,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    legalComments: 'eof',
    metafile: true,
    logLevel: 'warning',
  })
  writeFileSync(join(folder, LICENCES), licencesOf(Object.keys(metafile.inputs)))
  const styles = modules.filter(name => name.endsWith('/main')).map(name => `${dirname(name)}/style.css`)
  copy(['base.css', 'icon.svg', ...styles], sources, folder)
}
const worker = join(PAGES_FOLDER, 'dev', 'client', 'media-worker.js')
copyFileSync(join(BUILT, 'src', 'app', 'media', 'worker.bundle.js'), worker)

const swaggerUi = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))
copy(Object.keys(SWAGGER_UI_FILES), swaggerUi, SWAGGER_UI_FOLDER)

function copy(names: readonly string[], from: string, to: string): void {
  for (const name of names) {
    mkdirSync(dirname(join(to, name)), { recursive: true })
    copyFileSync(join(from, name), join(to, name))
  }
}
