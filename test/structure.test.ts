/**
 * The house rules in code: which folder may import which, who alone touches a library, a clock or a socket, and that what is
 * exported is used.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { PROJECT_ROOT } from './support/vectors.ts'

/** Besides itself and `EVERYBODYS`. `X:types` allows type-only imports. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  'src/stomp': [],
  'src/domain': [],
  'src/log': [],
  'src/runtime': [],
  'src/schema': ['src/domain:types'],
  'src/delivery': ['src/domain'],
  'src/identity': [],
  'src/transport': ['src/stomp'],
  'src/store': ['src/log', 'src/domain'],
  'src/client': ['src/log'],
  'src/api': ['src/schema', 'src/domain', 'src/log', 'src/runtime', 'src/store', 'src/transport:types'],
  'src/operations': [
    'src/log',
    'src/store',
    'src/domain:types',
    'src/delivery:types',
    'src/config.ts:types',
    'src/runtime:types',
    'src/transport:types',
  ],
  'src/config.ts': [
    'src/application-config.ts',
    'src/domain:types',
    'src/environment.ts',
    'src/key-settings.ts',
    'src/rate-settings.ts',
    'src/setting-forms.ts',
    'src/settings-file.ts',
  ],
  'src/environment.ts': ['src/spelling.ts'],
  'src/key-settings.ts': ['src/environment.ts', 'src/log'],
  'src/rate-settings.ts': ['src/domain', 'src/environment.ts', 'src/spelling.ts'],
  'src/command-line.ts': ['src/version.ts'],
  'src/listening.ts': ['src/config.ts', 'src/transport'],
  'src/lan-address.ts': [],
  web: ['src/client', 'src/log', 'src/operations:types'],
  actors: [
    'src/transport:types',
    'src/domain',
    'src/log',
    'src/runtime',
    'src/schema',
    'src/stomp',
    'src/store',
    'src/delivery',
  ],
}

const EVERYBODYS = new Set(['src/errors.ts', 'src/limits.ts', 'src/last-of.ts'])

/** Join parts, and may name any of them. */
const JOINERS = new Set([
  'src/main.ts',
  'src/application.ts',
  'src/application-config.ts',
  'src/house.ts',
  'src/open-log.ts',
  'src/servers.ts',
  'src/signalling.ts',
])

/** The only users of each library, by whichever of its files. */
const USERS: Record<string, readonly string[]> = {
  lmdb: ['src/store'],
  msgpackr: ['src/store'],
  'uWebSockets.js': ['src/transport'],
  '@grpc/grpc-js': ['src/transport'],
  'libsodium-wrappers-sumo': ['src/log'],
  'prom-client': ['src/operations'],
  pino: ['src/operations'],
  nodemailer: ['src/delivery'],
  '@parse/node-apn': ['src/delivery'],
  jose: ['src/identity', 'src/delivery'],
  'libphonenumber-js': ['src/domain'],
  'lossless-json': ['src/schema'],
  typebox: ['src/schema', 'src/api'],
  qr: ['src/api', 'src/operations', 'web'],
  'lit-html': ['web'],
  '@stomp/stompjs': ['web'],
  ws: [],
}

/** Large, and used by some servers, or not before a first request: with them the start would take twice as long. */
const NOT_AT_START = new Set([
  '@parse/node-apn',
  'nodemailer',
  '@bufbuild/protobuf',
  'libphonenumber-js/max',
  'prom-client',
  'jose',
])

/** What makes a run differ from the last one comes in from outside, so that a seeded run can be replayed. */
const NOT_IN_ACTORS = /\b(Date\.now|Math\.random|setTimeout|setInterval|setImmediate|performance\.now)\b/

interface Import {
  readonly from: string
  readonly to: string
  readonly isType: boolean
  /** By a function that runs later, not when the file is loaded. */
  readonly isLater: boolean
}

function sourceFiles(folder: string): string[] {
  return readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => join(folder, name))
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(PROJECT_ROOT, file), 'utf8')
  const first = text.matchAll(/^(?:import|export)\s+(type\s)?[^'"]*?from\s+['"]([^'"]+)['"]/gm)
  const later = text.matchAll(/\b(?:import|require)\('([^']+)'\)/g)
  const edge = (target: string) => ({
    from: file,
    to: target.startsWith('.') ? relative('.', join(dirname(file), target)) : target,
  })
  return [
    ...Array.from(first, ([, type, target]) => ({
      ...edge(target!),
      isType: type !== undefined,
      isLater: false,
    })),
    ...Array.from(later, ([, target]) => ({ ...edge(target!), isType: false, isLater: true })),
  ]
}

function houseOf(file: string): string {
  const parts = file.split('/')
  return parts[0] === 'src' && parts.length > 2
    ? parts.slice(0, 2).join('/')
    : parts[0] === 'src'
      ? file
      : parts[0]!
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
  return allowed.includes(target) || (isType && allowed.includes(`${target}:types`))
}

const files = ['src', 'actors', 'web'].flatMap(sourceFiles)
const imports = files.flatMap(importsOf)

t.test('each folder imports only what its job allows', async t => {
  const broken = imports.filter(edge => !JOINERS.has(edge.from) && !isAllowed(edge))
  t.same(
    broken.map(({ from, to }) => `${from} imports ${to}`),
    [],
  )
  t.ok(imports.length > 50, 'the imports were found')
})

t.test('nothing but main.ts and signalling.ts imports an actor', async t => {
  const broken = imports.filter(({ from, to }) => to.startsWith('actors/') && houseOf(from) !== 'actors')
  t.same([...new Set(broken.map(({ from }) => from))].sort(), ['src/main.ts', 'src/signalling.ts'])
})

t.test('each library has its users and no others', async t => {
  const broken = imports.filter(({ from, to }) => !(USERS[libraryOf(to)]?.includes(houseOf(from)) ?? true))
  t.same(broken, [])
})

t.test('the server starts without the libraries that it may never use', async t => {
  const loaded = new Set(['src/main.ts'])
  for (const file of loaded) {
    const edges = imports.filter(({ from, isType, isLater }) => from === file && !isType && !isLater)
    for (const { to } of edges) loaded.add(to)
  }
  t.ok(loaded.has('src/store/database.ts'), 'the files of the server were found')
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
  const folders = /^src\/(?:domain|api|schema|stomp|store(?!\/log-check))\//
  const broken = files.filter(
    file =>
      folders.test(file) &&
      // The store's clock, unless the process gives it another: the instant of changes.
      file !== 'src/store/database.ts' &&
      /\b(Date\.now|Math\.random)\b/.test(readFileSync(join(PROJECT_ROOT, file), 'utf8')),
  )
  t.same(broken, [])
})

t.test('the portable part of the log core imports no Node built-in', async t => {
  const nodeOnly = /^src\/log\/(primitives-node|vrf-)/
  const broken = imports.filter(
    ({ from, to }) => from.startsWith('src/log/') && to.startsWith('node:') && !nodeOnly.test(from),
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
