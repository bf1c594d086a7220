/**
 * The house rules in code: which folder may import which, who alone touches a library, a clock or a socket, and that what is
 * exported is used.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Import, importsOf, sourceFiles } from './support/imports.ts'
import { PROJECT_ROOT } from './support/vectors.ts'

/**
 * Besides itself and `EVERYBODYS`. `X:types` allows type-only imports, and X may be one file. `src/server` may import
 * all.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  'src/main.ts': ['src/server', 'src/operations', 'src/transport/platform.ts'],
  'src/front.ts': ['src/server', 'src/transport/platform.ts'],
  'src/stomp': [],
  'src/domain': [],
  'src/log': [],
  'src/runtime': [],
  'src/schema': ['src/domain:types', 'src/domain/operators/report.ts', 'src/domain/operators/server-key.ts'],
  'src/delivery': ['src/domain:types', 'src/domain/devices/web-push.ts'],
  'src/identity': [],
  'src/media': ['src/domain'],
  'src/transport': ['src/stomp'],
  'src/store/engine': [],
  'src/store': ['src/store/engine', 'src/domain', 'src/log:types'],
  'src/store/postgres': ['src/store/engine:types', 'src/store/engine/store-form.ts'],
  'src/fronts': [
    'src/runtime',
    'src/stomp',
    'src/store/engine:types',
    'src/log:types',
    'src/transport/route.ts:types',
  ],
  'src/keyserver': ['src/log', 'src/store/engine', 'src/schema', 'src/transport/route.ts:types'],
  'src/check': ['src/store', 'src/store/engine', 'src/keyserver', 'src/domain', 'src/log'],
  'src/client': ['src/log'],
  'src/app': ['src/client', 'src/log'],
  'src/ui': ['src/app', 'src/client:types', 'src/log'],
  'src/backend': [],
  'src/api': [
    'src/schema',
    'src/domain',
    'src/log',
    'src/runtime',
    'src/store',
    'src/store/engine',
    'src/keyserver',
    'src/transport/route.ts:types',
  ],
  'src/operations': [
    'src/domain:types',
    'src/delivery:types',
    'src/keyserver:types',
    'src/runtime:types',
    'src/transport:types',
  ],
  web: ['src/app', 'src/ui', 'src/backend', 'src/client', 'src/log', 'src/operations:types'],
  actors: [
    'src/transport/connection.ts:types',
    'src/transport/route.ts:types',
    'src/transport/http-deps.ts:types',
    'src/domain',
    'src/log',
    'src/runtime',
    'src/schema',
    'src/stomp',
    'src/store',
    'src/store/engine',
    'src/keyserver',
    'src/delivery',
    'src/media',
  ],
}

/** Uses the build of the tests without importing it. */
const RUNNER = 'test/runner/run.mjs'
const EVERYBODYS = new Set([
  'src/back-off.ts',
  'src/errors.ts',
  'src/last-of.ts',
  'src/limits.ts',
  'src/recent.ts',
  'src/source-maps.ts',
  'src/watermark.ts',
])

/** Joins the parts, and alone may name any of them. */
const JOINERS = new Set(['src/server'])

/** Imports that the table does not allow yet, each with its reason. One that is no longer made has to go. */
const EXCEPTIONS: Record<string, string> = {
  'src/store/engine/keys.ts imports src/domain': 'the branded ids are declared there',
  'src/store/engine/store.ts imports src/domain':
    'a change carries what happened in it, a type of src/domain',
  'src/store/engine/lmdb-change.ts imports src/domain':
    'a change carries what happened in it, a type of src/domain',
}

/** The only users of each library, by whichever of its files. */
const USERS: Record<string, readonly string[]> = {
  lmdb: ['src/store/engine'],
  pg: ['src/store/postgres'],
  msgpackr: ['src/store/engine', 'src/store', 'src/check', 'src/keyserver', 'src/fronts'],
  'uWebSockets.js': ['src/transport'],
  '@grpc/grpc-js': ['src/transport'],
  'libsodium-wrappers-sumo': ['src/log'],
  'prom-client': ['src/operations'],
  pino: ['src/operations'],
  nodemailer: ['src/delivery'],
  '@parse/node-apn': ['src/delivery'],
  'web-push': ['src/delivery'],
  '@simplewebauthn/server': ['src/identity'],
  jose: ['src/backend', 'src/delivery', 'src/identity'],
  'libphonenumber-js': ['src/domain'],
  typebox: ['src/schema', 'src/api', 'src/keyserver'],
  qr: ['src/api', 'src/operations', 'src/ui', 'web'],
  lit: ['src/ui'],
  'lit-html': ['web'],
  '@stomp/stompjs': [],
  ws: [],
}

/** Large, and used by some servers, or not before a first request: with them the start would take twice as long. */
const NOT_AT_START = new Set([
  'pg',
  '@parse/node-apn',
  'web-push',
  'nodemailer',
  '@bufbuild/protobuf',
  'libphonenumber-js/max',
  'prom-client',
  'jose',
  '@simplewebauthn/server',
  '@simplewebauthn/server/helpers',
])

const IS_GENERATED = /_pb\.ts$|^src\/(?:app|backend)\/wire\.ts$/
const FILE_LINES_MAX = 450
/** Lower it with each that goes. There were 129. */
const BAGS_MAX = 90

/** What makes a run differ from the last one comes in from outside, so that a seeded run can be replayed. */
const NOT_IN_ACTORS = /\b(Date\.now|Math\.random|setTimeout|setInterval|setImmediate|performance\.now)\b/

function houseOf(file: string): string {
  const wing = /^src\/store\/(?:engine|postgres)\b/.exec(file)
  if (wing !== null) return wing[0]
  const parts = file.split('/')
  if (parts[0] !== 'src') return parts[0]!
  return parts.length > 2 ? parts.slice(0, 2).join('/') : file
}

function libraryOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function isAllowed({ from, to, isType }: Import): boolean {
  if (!to.startsWith('src/') && !to.startsWith('actors/')) return true
  const [house, target] = [houseOf(from), houseOf(to)]
  if (target === house || EVERYBODYS.has(target)) return true
  const allowed = MAY_IMPORT[house] ?? []
  return [target, to].some(name => allowed.includes(name) || (isType && allowed.includes(`${name}:types`)))
}

const files = ['src', 'actors', 'web'].flatMap(sourceFiles)
const imports = files.flatMap(importsOf)

t.test('each folder imports only what its job allows', async t => {
  const broken = imports.filter(edge => !JOINERS.has(houseOf(edge.from)) && !isAllowed(edge))
  const told = new Set(broken.map(({ from, to }) => `${from} imports ${houseOf(to)}`))
  t.same([...told].sort(), Object.keys(EXCEPTIONS).sort())
  t.ok(imports.length > 50, 'the imports were found')
})

t.test('no file is reached from itself by imports, but in the runtime', async t => {
  const targets = new Map(files.map(file => [file, importsOf(file).map(({ to }) => to)]))
  const inCircles = files.filter(file => {
    const reached = new Set(targets.get(file))
    for (const each of reached) for (const next of targets.get(each) ?? []) reached.add(next)
    return reached.has(file)
  })
  t.same(new Set(inCircles.map(houseOf)), new Set(['src/runtime']))
})

t.test('nothing but src/server imports an actor', async t => {
  const outside = imports.filter(({ from, to }) => to.startsWith('actors/') && houseOf(from) !== 'actors')
  const importers = new Set(outside.map(({ from }) => houseOf(from)))
  t.same([...importers], ['src/server'])
})

t.test('a file that people write has one idea: at most 450 lines', async t => {
  const long = files
    .filter(file => !file.startsWith('web/') && !IS_GENERATED.test(file))
    .filter(file => readFileSync(join(PROJECT_ROOT, file), 'utf8').split('\n').length - 1 > FILE_LINES_MAX)
  t.same(long, [])
})

t.test(
  'bags of parameters stay few: a part is given what it needs by position, or another part whole',
  async t => {
    const bags = files
      .filter(file => !file.startsWith('web/'))
      .flatMap(file => [
        ...readFileSync(join(PROJECT_ROOT, file), 'utf8').matchAll(
          /^(?:export )?interface \w+(?:Deps|Options)\b/gm,
        ),
      ])
    t.ok(bags.length <= BAGS_MAX, `${bags.length} interfaces end in Deps or Options, at most ${BAGS_MAX}`)
  },
)

t.test('only the entry points and what is open to all lie at the root of src', async t => {
  const atRoot = files.filter(file => /^src\/[^/]+$/.test(file))
  t.same(atRoot.sort(), ['src/front.ts', 'src/main.ts', ...EVERYBODYS].sort())
})

t.test('each library has its users and no others', async t => {
  const broken = imports.filter(({ from, to }) => !(USERS[libraryOf(to)]?.includes(houseOf(from)) ?? true))
  t.same(broken, [])
})

t.test('the server starts without the libraries that it may never use', async t => {
  const loaded = new Set(['src/main.ts', 'src/server/start.ts'])
  for (const file of loaded) {
    const edges = imports.filter(({ from, isType, isLater }) => from === file && !isType && !isLater)
    for (const { to } of edges) loaded.add(to)
  }
  t.ok(loaded.has('src/store/engine/lmdb-store.ts'), 'the files of the server were found')
  t.same(
    [...loaded].filter(file => NOT_AT_START.has(file)),
    [],
  )
})

t.test('actors and the runtime read no clock, timer or random number of their own', async t => {
  const runtimeAndActors = files.filter(file => file.startsWith('actors/') || file.startsWith('src/runtime/'))
  const broken = runtimeAndActors.filter(
    file =>
      file !== 'src/runtime/clock.ts' && NOT_IN_ACTORS.test(readFileSync(join(PROJECT_ROOT, file), 'utf8')),
  )
  t.same(broken, [])
})

t.test('rules, stores and operations are handed the time and random numbers', async t => {
  const folders = /^src\/(?:domain|api|schema|stomp|store|keyserver(?!\/vrf))\//
  const broken = files.filter(
    file =>
      folders.test(file) &&
      // The store's clock, unless the process gives it another: the instant of changes.
      file !== 'src/store/engine/lmdb-store.ts' &&
      /\b(Date\.now|Math\.random)\b/.test(readFileSync(join(PROJECT_ROOT, file), 'utf8')),
  )
  t.same(broken, [])
})

t.test('the portable part of the log core imports no Node built-in', async t => {
  const nodeOnly = /^src\/log\/(primitives-node|vrf-fast)/
  const broken = imports.filter(
    ({ from, to }) => from.startsWith('src/log/') && to.startsWith('node:') && !nodeOnly.test(from),
  )
  t.same(broken, [])
})

t.test('the SDK for apps imports no Node built-in, but for its storage of files', async t => {
  const broken = imports.filter(
    ({ from, to }) =>
      from.startsWith('src/app/') && to.startsWith('node:') && from !== 'src/app/storage/file-storage.ts',
  )
  t.same(broken, [])
})

t.test('functions and constants that are exported have a user in another file', async t => {
  const users = new Map<string, Set<string>>()
  const texts = ['src', 'actors', 'web', 'scripts', 'test', 'bench'].flatMap(sourceFiles).map(file => {
    const text = readFileSync(join(PROJECT_ROOT, file), 'utf8')
    for (const [word] of text.matchAll(/\w+/g)) users.set(word, (users.get(word) ?? new Set()).add(file))
    return { file, text }
  })
  for (const [word] of readFileSync(join(PROJECT_ROOT, RUNNER), 'utf8').matchAll(/\w+/g))
    users.get(word)?.add(RUNNER)
  const dead = texts
    .filter(({ file }) => !file.endsWith('_pb.ts'))
    .flatMap(({ file, text }) =>
      Array.from(text.matchAll(/^export (?:async )?(?:function\*?|const) (\w+)/gm), ([, name]) => ({
        file,
        name: name!,
      })),
    )
    .filter(({ name }) => users.get(name)!.size === 1)
  t.same(dead, [])
  t.ok(texts.length > 500, 'the files were found')
})
