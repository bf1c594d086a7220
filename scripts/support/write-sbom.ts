/**
 * A step of `npm run pack-server`: writes the list of what a server is made of, a CycloneDX document with the version, licence and hash of
 * each package. npm makes it from the lock file. The same lock file gives the same bytes: what npm adds of the moment and
 * of the place is left out.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Component {
  name: string
  readonly 'bom-ref': string
  externalReferences?: readonly { readonly type: string }[]
}

interface Document {
  serialNumber?: string
  readonly metadata: { timestamp?: string; readonly component: Component }
  components: readonly Component[]
  dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

interface Locked {
  /** Where the folder has another. */
  readonly name?: string
  readonly version: string
  readonly dev?: true
  readonly devOptional?: true
}

const root = join(import.meta.dirname, '..', '..', '..')
const [, , path = join(root, 'sbom.cdx.json')] = process.argv
// Not `--omit=dev`: npm then leaves out what a server and the tools both need.
const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']
const printed = execFileSync('npm', args, { cwd: root })
const document: Document = JSON.parse(printed.toString('utf8'))
delete document.serialNumber
delete document.metadata.timestamp
const isOfServer = (ref: string) => ref === document.metadata.component['bom-ref'] || ofServer.has(ref)
const ofServer = refsOfServer(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')))
document.components = document.components.filter(component => isOfServer(component['bom-ref']))
document.dependencies = document.dependencies
  .filter(({ ref }) => isOfServer(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isOfServer) }))
const { name }: { readonly name: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
// npm says the name of the folder.
document.metadata.component.name = name
for (const component of document.components) {
  // From which registry it came here; the hash says what it is.
  component.externalReferences =
    component.externalReferences?.filter(({ type }) => type !== 'distribution') ?? []
}
writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`)

/** `name@version` of each package that a server may need, on whichever platform. */
function refsOfServer({ packages }: { packages: Readonly<Record<string, Locked>> }): ReadonlySet<string> {
  const needed = Object.entries(packages).filter(
    ([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional,
  )
  return new Set(
    needed.map(([path, { name, version }]) => `${name ?? path.split('node_modules/').at(-1)}@${version}`),
  )
}
