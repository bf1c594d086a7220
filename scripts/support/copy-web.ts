/**
 * A step of the build: puts what pages load beside the modules that they are made of, so that the built server needs no
 * package for its pages: Swagger UI, the modules of packages that pages import with their licences, and style sheets.
 */

import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SWAGGER_UI_FILES, SWAGGER_UI_FOLDER } from '../../src/operations/console/api-page.ts'
import { PACKAGES_FOLDER, WEB_FOLDER } from '../../src/operations/page-files.ts'

/** The pages' imports of each package: one module, and the files that go along. */
const PACKAGES: Readonly<Record<string, { readonly module: string; readonly files: RegExp }>> = {
  '@noble/curves': { module: '@noble/curves/ed25519.js', files: /^(abstract\/)?[\w-]+\.js$/ },
  '@noble/hashes': { module: '@noble/hashes/sha2.js', files: /^[\w-]+\.js$/ },
  lit: {
    module: 'lit',
    files: /^(index|directives\/(?:repeat|class-map|style-map|live|ref|guard|keyed))\.js$/,
  },
  'lit-element': { module: 'lit-element/lit-element.js', files: /^lit-element\.js$/ },
  '@lit/reactive-element': { module: '@lit/reactive-element', files: /^(reactive-element|css-tag)\.js$/ },
  'lit-html': {
    module: 'lit-html',
    files:
      /^(lit-html|is-server|directive|directive-helpers|async-directive|directives\/(?:repeat|class-map|style-map|live|ref|guard|keyed))\.js$/,
  },
  qr: { module: 'qr', files: /^(index|decode)\.js$/ },
}

function copy(names: readonly string[], from: string, to: string): void {
  for (const name of names) {
    mkdirSync(dirname(join(to, name)), { recursive: true })
    copyFileSync(join(from, name), join(to, name))
  }
}

function namesIn(folder: string, pattern: RegExp): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => pattern.test(name))
}

const swaggerUi = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))
copy(Object.keys(SWAGGER_UI_FILES), swaggerUi, SWAGGER_UI_FOLDER)

for (const [name, { module, files }] of Object.entries(PACKAGES)) {
  const path = fileURLToPath(import.meta.resolve(module))
  const folder = path.slice(0, path.lastIndexOf(`/${name}/`) + 1 + name.length)
  copy([...namesIn(folder, files), 'LICENSE'], folder, join(PACKAGES_FOLDER, name))
}

const sources = join(import.meta.dirname, '..', '..', '..', 'web')
copy(namesIn(sources, /\.(?:css|svg)$/), sources, WEB_FOLDER)
