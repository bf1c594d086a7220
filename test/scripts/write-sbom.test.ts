/** The list of packages that goes with `npm run pack-server`: what a server is made of, and nothing of where it was made. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PACKAGE } from '../support/package-name.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

interface Component {
  readonly name: string
  readonly version: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

t.test('each package of a server is listed with its version and hash, none of the tools', async t => {
  const path = join(t.testdir(), 'sbom.cdx.json')
  const environment = { PATH: process.env.PATH!, HOME: process.env.HOME! }
  const written = await runProgram(process.execPath, [builtProgram('scripts/support/write-sbom'), path], {
    environment,
  })
  t.equal(written.code, 0, written.stderr)
  const text = readFileSync(path, 'utf8')
  const document = JSON.parse(text)
  t.match(document, { bomFormat: 'CycloneDX', metadata: { component: { name: PACKAGE } } })
  const components: readonly Component[] = document.components
  const listed = new Map(components.map(({ name, version }) => [name, version]))
  const project = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  for (const [name, version] of Object.entries<string>(project.dependencies)) {
    const [, alias = name, pinned = version] = /^npm:(.+)@(.+)$/.exec(version) ?? []
    t.equal(listed.get(alias) ?? listed.get(name), pinned, name)
  }
  for (const name of ['tap', 'typescript', 'playwright-core']) t.notOk(listed.has(name), name)
  t.ok(components.every(({ hashes = [] }) => hashes.some(({ alg }) => alg === 'SHA-512')))
  t.notMatch(text, /timestamp|serialNumber|"distribution"/)
  t.ok(project.files.includes('sbom.cdx.json'))
})
