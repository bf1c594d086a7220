/**
 * Packs the auditor alone, as `callsign-audit`: one module with the code of this project and of the packages that it needs, so that npm
 * installs it without a network and without anything to compile. Takes the folder to put it into, `dist` unless named;
 * prints the file's path.
 */

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { packFolder } from './pack-folder.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const PROGRAM = 'callsign-audit.js'

const { name, version, license, type } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'callsign-audit-'))
try {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['dist/scripts/audit.js'],
    outfile: join(folder, PROGRAM),
    bundle: true,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  })
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  for (const name of packagesIn(Object.keys(metafile.inputs))) {
    const licence = `LICENSE-${name.replace('@', '').replace('/', '-')}`
    copyFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), join(folder, licence))
  }
  writeFileSync(join(folder, 'README.md'), readMe())
  const manifest = {
    // Under the scope of the whole package.
    name: name.replace(/[^/]+$/, 'audit'),
    version,
    description: 'Audits a key transparency log from outside: crawls, verifies, remembers, compares',
    license,
    type,
    engines: { node: '>=20.19' },
    bin: { 'callsign-audit': PROGRAM },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest, null, 2))
  packFolder(folder, process.argv[2] ?? join(ROOT, 'dist'))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** The names of packages with modules in the bundle. */
function packagesIn(inputs: readonly string[]): ReadonlySet<string> {
  const names = inputs.map(path => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
  return new Set(names.filter(name => name !== undefined))
}

/** The page for auditors, with the command as the package has it. */
function readMe(): string {
  const page = readFileSync(join(ROOT, 'docs', 'check', 'auditor.md'), 'utf8')
  return page.replaceAll(/node (?:\/opt\/callsign\/)?dist\/scripts\/audit\.js/g, 'callsign-audit')
}
