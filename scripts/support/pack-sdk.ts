/**
 * Packs the SDK, `@callsign/sdk/app` and `@callsign/sdk/client` for apps and `@callsign/sdk/server` for backends: under the same name as the whole package, so that imports
 * are the same, with the modules, types and sources that they are made of and the packages they need. Takes the
 * folder to put it into, `dist` unless named; prints the file's path.
 */

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { packFolder } from './pack-folder.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
interface Entry {
  readonly types: string
  readonly default: string
}

const DEPENDENCIES = ['@noble/curves', '@noble/hashes', 'jose', 'lit', 'qr']

/** The module and all that it imports within the project, for its types as well; paths from the root. */
function modulesBehind(entries: readonly string[]): ReadonlySet<string> {
  const found = new Set(entries)
  for (const path of found) {
    for (const file of [path, path.replace(/\.js$/, '.d.ts')]) {
      const text = readFileSync(join(ROOT, file), 'utf8')
      for (const [, name] of text.matchAll(/\b(?:from|import) ?\(?["'](\.[^"']+)["']/g)) {
        // Types name the sources they were made of.
        found.add(normalize(join(dirname(path), name!.replace(/\.ts$/, '.js'))))
      }
    }
  }
  return found
}

function filesOf(module: string): readonly string[] {
  const stem = module.replace(/\.js$/, '')
  const source = stem.replace(/^dist\//, '')
  return [`${stem}.js`, `${stem}.js.map`, `${stem}.d.ts`, `${source}.ts`]
}

const {
  name,
  version,
  license,
  type,
  exports,
  imports,
  dependencies,
  peerDependencies,
  peerDependenciesMeta,
} = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
// The condition that tests run sources by is no app's.
delete imports['#primitives']['callsign-source']
const entries = [
  ...Object.values<Entry | string>(exports).flatMap(entry =>
    typeof entry === 'string' ? [] : [entry.types.replace(/\.d\.ts$/, '.js')],
  ),
  ...Object.values<string>(imports['#primitives']),
]
/** Programs of one file each, which apps may copy to their server as they are. */
const programs = ['./app/media-worker', './browser', './browser/service-worker'].map(
  name => exports[name].default,
)
const folder = mkdtempSync(join(tmpdir(), 'callsign-sdk-'))
try {
  const files = [...modulesBehind(entries.map(normalize))].flatMap(filesOf)
  for (const file of [...files, ...programs, 'LICENSE']) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    copyFileSync(join(ROOT, file), join(folder, file))
  }
  const needed = Object.fromEntries(DEPENDENCIES.map(dependency => [dependency, dependencies[dependency]]))
  const description = 'Sign-in, contacts and end-to-end encrypted calls with a Callsign server'
  const engines = { node: '>=20.19' }
  const manifest = {
    name,
    version,
    description,
    license,
    type,
    engines,
    // Elements are defined by their modules.
    sideEffects: [...programs, './dist/src/ui/**'],
    exports,
    imports,
    peerDependencies,
    peerDependenciesMeta,
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies: needed }, null, 2))
  copyFileSync(join(ROOT, 'docs', 'build', 'web.md'), join(folder, 'README.md'))
  packFolder(folder, process.argv[2] ?? join(ROOT, 'dist'), `callsign-sdk-${version}.tgz`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
