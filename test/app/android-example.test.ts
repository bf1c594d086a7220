/**
 * `examples/android`, its page, and `kotlin/callsign-android`: the page shows code of the example, the manifest names its classes,
 * channels and words are those of the server's pushes, and Android's own tool takes resources and manifests. The Kotlin is
 * compiled and run by Maven (`.ci/run`).
 */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { CHANNELS, PUSH_WORDS } from '../../src/delivery/push-words.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const MAIN = join(PROJECT_ROOT, 'examples/android/app/src/main')
const SOURCES = join(MAIN, 'kotlin/org/example/calls')
const manifest = readFileSync(join(MAIN, 'AndroidManifest.xml'), 'utf8')
const sound = readFileSync(join(PROJECT_ROOT, 'examples/android/livekit/Sound.kt'), 'utf8')
const sources = readdirSync(SOURCES).map(name => readFileSync(join(SOURCES, name), 'utf8'))
const build = readFileSync(join(PROJECT_ROOT, 'examples/android/app/build.gradle.kts'), 'utf8')

const MODULE = join(PROJECT_ROOT, 'kotlin/callsign-android/src/main')
const shows = readFileSync(join(MODULE, 'kotlin/callsign/android/CallNotifications.kt'), 'utf8')
const channels = readFileSync(join(MODULE, 'kotlin/callsign/android/CallsignChannels.kt'), 'utf8')
const strings = readFileSync(join(MODULE, 'res/values/strings.xml'), 'utf8')
const words = [...strings.matchAll(/<string name="(\w+)"/g)].map(([, name]) => name!)

/** Without indentation, for the page has excerpts. */
const flat = (text: string) => text.replaceAll(/^ +/gm, '').trim()

t.test('the page shows code of the example', async t => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/build/android.md'), 'utf8')
  const blocks = [...page.matchAll(/^ *```(kotlin|xml)\n(.*?)^ *```$/gms)].map(([, , code]) => flat(code!))
  const files = [...sources, sound, manifest, build].map(flat)
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
  for (const named of [build, read('docs/build/android.md'), read('kotlin/README.md')])
    t.match(named, coordinates)
  t.match(
    flat(read('docs/build/android.md')),
    `<groupId>${group}</groupId>\n<artifactId>callsign-app</artifactId>`,
  )
})

t.test('the classes that the manifest names are there', async t => {
  const named = [...manifest.matchAll(/android:name="\.(\w+)"/g)].map(([, name]) => name!)
  t.ok(named.length >= 6)
  for (const name of named)
    t.ok(
      sources.some(source => source.includes(`class ${name} : `)),
      name,
    )
})

t.test('the app takes links of the server that it is for', async t => {
  const [, host] = /const val SERVER = "https:\/\/([^"/]+)"/.exec(sources.join('\n')) ?? []
  const filters = [...manifest.matchAll(/<intent-filter( android:autoVerify="true")?>.*?<\/intent-filter>/gs)]
  const verified = filters.filter(([, isVerified]) => isVerified).map(([filter]) => filter)
  t.equal(verified.length, 1)
  t.match(verified[0], `<data android:scheme="https" android:host="${host}" android:pathPrefix="/c/" />`)
  t.match(manifest, '<data android:scheme="callsign" android:host="c" />')
})

t.test('the phone has the channels that pushes name', async t => {
  const ids = [...channels.matchAll(/const val \w+: String = "(\w+)"/g)].map(([, id]) => id!)
  t.same(ids.sort(), Object.values(CHANNELS).sort())
})

t.test('the words that it shows are there, and each push has some', async t => {
  const named = [...(shows + channels).matchAll(/R\.string\.(\w+)/g)].map(([, name]) => name!)
  t.same(
    named.filter(name => !words.includes(name)),
    [],
  )
  // The words of a ring are its name alone, and sealed pushes are opened before they are shown.
  const ofSystem = ['call_invitation', 'call_invitation_stranger', 'sealed_call', 'sealed_notice']
  t.same(
    Object.keys(PUSH_WORDS).filter(key => !named.includes(key)),
    ofSystem,
  )
})

t.test('aapt2 takes the resources and both manifests', { skip: skipWithoutAapt2() }, async t => {
  const folder = t.testdir()
  const [compiled, symbols, app] = ['compiled.zip', 'R.txt', 'app.apk'].map(name => join(folder, name))
  const run = (...args: string[]) => {
    const { status, stderr } = spawnSync('aapt2', args, { encoding: 'utf8' })
    t.equal(status, 0, `${args[0]}: ${stderr}`)
  }
  run('compile', '--dir', join(MODULE, 'res'), '-o', compiled!)
  // The app's build gives the package, from its own file. Debian's aapt2 is older than the API, and falls over Android's own icons.
  const ofApp = manifest
    .replace('<manifest ', '<manifest package="org.example.calls" ')
    .replace(/ *android:icon="@android:.*"\n/, '')
  for (const text of [readFileSync(join(MODULE, 'android/AndroidManifest.xml'), 'utf8'), ofApp]) {
    const path = join(folder, 'AndroidManifest.xml')
    writeFileSync(path, text)
    run(
      'link',
      '-I',
      frameworkJar()!,
      '--manifest',
      path,
      '-o',
      app!,
      '--output-text-symbols',
      symbols!,
      compiled!,
    )
    const found = [...readFileSync(symbols!, 'utf8').matchAll(/^int string (\w+) /gm)].map(
      ([, name]) => name!,
    )
    t.same(found.sort(), [...words].sort())
  }
})

function skipWithoutAapt2(): string | false {
  if (spawnSync('aapt2', ['version']).status !== 0) return 'without aapt2 (Debian: aapt)'
  return frameworkJar() === undefined && "without Android's API in Maven's repository, where .ci/run puts it"
}

/** Android's API with its resources, as Maven keeps it. */
function frameworkJar(): string | undefined {
  const pom = readFileSync(join(PROJECT_ROOT, 'kotlin/pom.xml'), 'utf8')
  const version = /<android-all\.version>(.*?)</.exec(pom)?.[1] ?? ''
  const path = `.m2/repository/org/robolectric/android-all/${version}/android-all-${version}.jar`
  return existsSync(join(homedir(), path)) ? join(homedir(), path) : undefined
}
