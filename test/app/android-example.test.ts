/**
 * `examples/android` and its page: the page shows code of the example, and the manifest names its classes. The Kotlin is
 * compiled by Maven (`.ci/run`).
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_ROOT } from '../support/vectors.ts'

const MAIN = join(PROJECT_ROOT, 'examples/android/app/src/main')
const SOURCES = join(MAIN, 'kotlin/org/example/calls')
const manifest = readFileSync(join(MAIN, 'AndroidManifest.xml'), 'utf8')
const sources = readdirSync(SOURCES).map(name => readFileSync(join(SOURCES, name), 'utf8'))
const build = readFileSync(join(PROJECT_ROOT, 'examples/android/app/build.gradle.kts'), 'utf8')

/** Without indentation, for the page has excerpts. */
const flat = (text: string) => text.replaceAll(/^ +/gm, '').trim()

t.test('the page shows code of the example', async t => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/android.md'), 'utf8')
  const blocks = [...page.matchAll(/^ *```(kotlin|xml)\n(.*?)^ *```$/gms)].map(([, , code]) => flat(code!))
  const files = [...sources, manifest, build].map(flat)
  const strange = blocks.filter(code => !files.some(file => file.includes(code)))
  t.ok(blocks.length > 8)
  t.equal(strange.length, 1, 'the line for Maven alone')
  t.match(strange[0], /^<dependency>/)
})

t.test('app, page and README name the package as Maven builds it', async t => {
  const read = (path: string) => readFileSync(join(PROJECT_ROOT, path), 'utf8')
  const [, group, version] =
    /<groupId>(.*?)<.*?<version>(.*?)</s.exec(read('kotlin/callsign-app/pom.xml')) ?? []
  t.equal(group, 'dev.callsign')
  const coordinates = `${group}:callsign-app:${version}`
  for (const named of [build, read('docs/android.md'), read('kotlin/README.md')]) t.match(named, coordinates)
  t.match(flat(read('docs/android.md')), `<groupId>${group}</groupId>\n<artifactId>callsign-app</artifactId>`)
})

t.test('the classes that the manifest names are there', async t => {
  const named = [...manifest.matchAll(/android:name="\.(\w+)"/g)].map(([, name]) => name!)
  t.ok(named.length >= 7)
  for (const name of named)
    t.ok(
      sources.some(source => source.includes(`class ${name} : `)),
      name,
    )
})
