/**
 * Runs tests: one size of the suite from the build, or the named files.
 *
 *     npm test                  each behaviour once
 *     npm run test:long         what repeats, searches and rehearses (test/support/size.ts)
 *     npm test -- test/domain/calls/call-states.test.ts … [--watch] [--fronts 2] [--again]
 *     npm test -- --profile     what the processor time goes to
 *
 * A named file runs from its source where Node strips types (22.18 on, 24) and it starts no built program; else what it
 * needs is compiled first, without a check of types. `Choice:` Node 20 gets no loader, because its worker threads
 * would not start from a source.
 *
 * With `--fronts` the servers of the tests have so many fronts (`CALLSIGN_FRONTS`). In the suite the stories of
 * `support/fronts-in-flows.ts` run a second time with two.
 *
 * The suite saves time: no source maps, programs of `support/joined-programs.ts`, one browser, one PostgreSQL, and one process
 * for a folder of tests that start nothing. Files that failed, and named files, run with source maps and everything of their own.
 *
 * As many files run at once as there are processors, and one more for those that wait; the dearest of the last run begin first.
 * Prints a line per file, each skip with its reason, what failed, and what the run cost. Exits with 0 when all passed.
 *
 * In the suite, and with `--again`, a few files that failed run a second time, one by one on a machine that does nothing
 * else: a fault of the code fails again, and what a busy machine did is printed as `unsteady`, for somebody to mend.
 */

import { readdirSync, readFileSync, watch } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { addedSince, dearest, readDurations, writeDurations } from './durations.mjs'
import { ROOT, runTestProcess, succeeds } from './processes.mjs'
import { secondsSoFar } from './processor-time.mjs'
import { Profile } from './profile.mjs'
import { Report } from './report.mjs'

const STRIPS_TYPES = Boolean(process.features.typescript)
const JOBS = availableParallelism() + 1
/** When more files have failed than this, the fault is in what they share. */
const AGAIN_MAX = 8
/** Folders whose files share a process, which saves a third of their processor time: they start few programs. */
const TOGETHER = [
  ...['log', 'domain', 'schema', 'stomp', 'runtime', 'fronts', 'media'],
  ...[
    'app',
    'api',
    'store',
    'actors',
    'keyserver',
    'check',
    'operations',
    'delivery',
    'identity',
    'client',
    'transport',
    'server',
  ],
]
/** A file has a process of its own for what it changes of it, and for what lasts until the end of all its tests. */
const NEEDS_PROCESS = /\bprocess\.(?:env|on|once)\b|^t\.(?!test\b)/m
/** What of the environment of a run tells its size; the rest is what its tests use together. */
const SIZE = ['CALLSIGN_TEST_SIZE', 'TAP_ONLY']
/** Seconds of processor time that a size may take, on the two cores that CI has. */
const BUDGET_S = { short: 700, long: 1400 }
const TEST = join(ROOT, 'dist', 'test')
const TSC = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-b']

async function runSuite(size) {
  for (const script of size === 'short' ? ['build', 'lint'] : ['build'])
    if (!(await succeeds('npm', ['run', '--silent', script]))) return false
  const { joinTestPrograms } = await import(join(TEST, 'support', 'joined-programs.js'))
  const joined = join(ROOT, 'dist', 'joined-tests')
  await joinTestPrograms(joined)
  const shared = await startShared()
  const environment = { CALLSIGN_TEST_SIZE: size, CALLSIGN_JOINED_PROGRAMS: joined, ...shared.environment }
  if (size === 'long') environment.TAP_ONLY = '1'
  const runs = size === 'short' ? await shortRuns(environment) : await longRuns(environment)
  const ended = await runAll(runs)
  await shared.end()
  await runAgain(ended)
  printEnd(ended)
  if (size === 'short') {
    const tests = ended.reduce((sum, { report }) => sum + report.counts.other, 0)
    const files = filesOf(isLongFile).length
    print(`Not run: ${files} files and ${tests} tests of the long size. npm run test:long runs them.`)
  }
  printCost(size)
  return ended.every(({ passed }) => passed)
}

/** A browser and a PostgreSQL for all tests of a run, where the machine has them. */
async function startShared() {
  const { serveBrowser } = await import(join(TEST, 'support', 'browser.js'))
  const { servePostgres } = await import(join(TEST, 'support', 'postgres.js'))
  const served = (await Promise.all([serveBrowser(), servePostgres()])).filter(each => each !== undefined)
  return {
    environment: Object.assign({}, ...served.map(({ environment }) => environment)),
    end: () => Promise.all(served.map(({ end }) => end())),
  }
}

const isLongFile = file => file.endsWith('.long.test.js')
/** Whether the long size runs some of its tests, too. */
const isSized = file => /from '[./]*support\/size\.js'/.test(readFileSync(file, 'utf8'))

function filesOf(isWanted) {
  const names = readdirSync(TEST, { recursive: true }).filter(name => name.endsWith('.test.js'))
  return names
    .toSorted()
    .map(name => join(TEST, name))
    .filter(isWanted)
}

async function shortRuns(environment) {
  const files = filesOf(file => !isLongFile(file))
  const folders = TOGETHER.map(folder => ({
    folder: join(TEST, folder),
    files: files.filter(file => file.startsWith(join(TEST, folder, '/')) && !needsProcess(file)),
    environment,
  }))
  const alone = files.filter(file => !folders.some(({ files }) => files.includes(file)))
  const { WITH_FRONTS } = await frontsInFlows()
  return [...folders, ...alone.map(file => ({ file, environment })), ...storiesOf(WITH_FRONTS, environment)]
}

const needsProcess = file => NEEDS_PROCESS.test(readFileSync(file, 'utf8'))

async function longRuns(environment) {
  const files = filesOf(file => isLongFile(file) || isSized(file))
  const { WITH_FRONTS_LONG } = await frontsInFlows()
  // They are not of the long size by themselves.
  const whole = { ...environment, TAP_ONLY: '0' }
  return [
    ...files.map(file => ({ file, environment: isLongFile(file) ? whole : environment })),
    ...storiesOf(WITH_FRONTS_LONG, { ...whole, CALLSIGN_TEST_SIZE: 'short' }),
  ]
}

const frontsInFlows = () => import(join(TEST, 'support', 'fronts-in-flows.js'))

function storiesOf(names, environment) {
  return names.map(name => ({ file: join(TEST, 'flows', `${name}.test.js`), fronts: '2', environment }))
}

async function runNamed(files, { fronts, again }) {
  const sources = files.filter(file => file.endsWith('.ts'))
  const builtNeeded = sources.some(file => startsBuilt(file))
  const fromSource = STRIPS_TYPES && !builtNeeded
  if (sources.length > 0 && !fromSource && !(await compile(builtNeeded))) return false
  const args = ['--enable-source-maps', ...(fromSource ? ['--conditions=callsign-source'] : [])]
  const ended = await runAll(files.map(file => ({ file, fronts, args, isBuilt: !fromSource })))
  if (again) await runAgain(ended)
  printEnd(ended)
  return ended.every(({ passed }) => passed)
}

/** Compiles for tests; with `isWhole` the pages and programs beside them, too. Types are for the suite and the editor. */
async function compile(isWhole) {
  print('compiling what has changed')
  const compiled = await succeeds(process.execPath, [...TSC, join(ROOT, 'test'), '--noCheck'])
  return compiled && (!isWhole || (await succeeds('npm', ['run', '--silent', 'build:pages'])))
}

/** Whether the test or its support starts a program of `dist`. */
function startsBuilt(file, seen = new Set()) {
  if (seen.has(file)) return false
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  if (/(?:built|started)Program\(|['"/]dist['"/]/.test(text)) return true
  const imports = [...text.matchAll(/from '(\.{1,2}\/[^']+)'/g)].map(([, path]) => join(dirname(file), path))
  return imports.filter(path => path.startsWith(join(ROOT, 'test/'))).some(path => startsBuilt(path, seen))
}

/**
 * Runs each `{ file | folder and files, fronts?, environment?, args?, isBuilt? }`. Resolves with what became of them: `{ name,
 * run, report, passed, cpuS, wallS }`.
 */
async function runAll(runs) {
  const before = readDurations()
  const cost = run => before[nameOf(run)]?.cpuS ?? Number.POSITIVE_INFINITY
  const waiting = runs.toSorted((a, b) => cost(b) - cost(a))
  const running = new Set()
  const ended = []
  /** A file has one folder for its data, so it does not run twice at once. */
  function next() {
    const at = waiting.findIndex(({ file }) => file === undefined || !running.has(file))
    return at < 0 ? undefined : waiting.splice(at, 1)[0]
  }
  async function work() {
    for (let run = next(); run !== undefined; run = next()) {
      running.add(run.file)
      ended.push(await runOne(run))
      running.delete(run.file)
    }
  }
  await Promise.all(Array.from({ length: JOBS }, work))
  return ended
}

async function runOne(run) {
  const name = nameOf(run)
  const { args = [], environment = {}, fronts } = run
  const { code, lines, cpuS, wallS } = await runTestProcess([...args, ...programsOf(run)], {
    ...environment,
    ...(fronts === undefined ? {} : { CALLSIGN_FRONTS: fronts }),
  })
  const report = new Report()
  report.read(`# Subtest: ${name}`)
  for (const line of lines) report.read(`    ${line}`)
  report.read(`${code === 0 ? 'ok' : 'not ok'} 1 - ${name} # time=${Math.round(wallS * 1000)}ms`)
  for (const line of report.lines) print(line)
  return { name, run, report, passed: code === 0, cpuS, wallS }
}

function programsOf({ file, folder, files, isBuilt = true }) {
  if (files !== undefined) return [join(ROOT, 'test/runner/folder.mjs'), folder, ...files]
  const isSource = isBuilt && file.endsWith('.ts')
  return [isSource ? join(ROOT, 'dist', relative(ROOT, file).replace(/\.ts$/, '.js')) : file]
}

function nameOf({ file, folder, fronts }) {
  const name = relative(ROOT, file ?? folder)
    .replace(/^dist\//, '')
    .replace(/\.test\.js$/, '.test.ts')
  return name + (fronts === undefined ? '' : ` with ${fronts} fronts`)
}

/** Replaces what failed by what its second run gave; of one that passed then, the first failures are printed. */
async function runAgain(ended) {
  const failed = ended.filter(({ passed }) => !passed)
  if (failed.length > AGAIN_MAX) return
  for (const first of failed) {
    print(`again, alone: ${first.name}`)
    const { args = ['--enable-source-maps'], environment = {} } = first.run
    const sizeAlone = Object.entries(environment).filter(([name]) => SIZE.includes(name))
    const second = await runOne({ ...first.run, args, environment: Object.fromEntries(sizeAlone) })
    ended[ended.indexOf(first)] = second
    if (second.passed)
      for (const text of first.report.failures) print(text.replace('FAILED', 'unsteady (passed alone):'))
  }
}

function printEnd(ended) {
  const before = readDurations()
  writeDurations(before, ended)
  for (const text of ended.flatMap(({ report }) => report.failures)) print(`\n${text}`)
  if (ended.length > 1) {
    print('')
    for (const line of dearest(before, ended)) print(line)
    const added = addedSince(before, ended)
    if (added !== undefined) print(`Since the last run: ${added}.`)
  }
  const [pass, fail, skip] = ['pass', 'fail', 'skip'].map(kind =>
    ended.reduce((sum, { report }) => sum + report.counts[kind], 0),
  )
  const counts = [`total: ${pass + fail + skip}`, `pass: ${pass}`, `fail: ${fail}`, `skip: ${skip}`]
  print(`\n# { ${counts.filter(each => !each.endsWith(' 0')).join(', ')} }`)
}

function printCost(size) {
  const cpuS = secondsSoFar()
  if (cpuS === undefined) return
  const [cpu, wall] = [cpuS, performance.now() / 1000].map(Math.round)
  print(`It took ${cpu} s of processor time, of a budget of ${BUDGET_S[size]} s, and ${wall} s by the clock.`)
}

function print(text) {
  process.stdout.write(`${text}\n`)
}

async function runAgainOnChange(run) {
  let onChange
  const next = () => new Promise(resolve => (onChange = resolve))
  let changed = next()
  for (const folder of ['src', 'actors', 'scripts', 'test'])
    watch(join(ROOT, folder), { recursive: true }, () => onChange())
  for (;;) {
    await run()
    print('waiting for a change')
    await changed
    changed = next()
  }
}

const { values, positionals } = parseArgs({
  options: {
    watch: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    fronts: { type: 'string' },
  },
  allowPositionals: true,
})
const files = positionals.map(file => resolve(file))
const profile = values.profile ? new Profile() : undefined
const run = () => (files.length === 0 ? runSuite(values.long ? 'long' : 'short') : runNamed(files, values))
if (values.watch) await runAgainOnChange(run)
else process.exitCode = (await run()) ? 0 : 1
for (const line of profile?.end() ?? []) print(line)
