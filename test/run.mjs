/**
 * Runs tests: the whole suite from the build, or the named files.
 *
 *     npm test
 *     npm test -- test/domain/calls/call-states.test.ts … [--watch] [--fronts 2] [--again]
 *
 * A named file runs from its source where Node strips types (22.18 on, 24) and it starts no built program; else the
 * sources are compiled first, which takes a second or two. `Choice:` Node 20 gets no loader, because its worker threads
 * would not start from a source.
 *
 * With `--fronts` the servers of the tests have so many fronts (`CALLSIGN_FRONTS`). In the suite the stories of
 * `support/fronts-in-flows.ts` run a second time with two.
 *
 * The suite saves time: no source maps, and programs of `support/joined-programs.ts`. Files that failed, and those that are named,
 * run with source maps and programs as they were built.
 *
 * As many files run at once as there are processors, and one more for those that wait; the longest begin first.
 * Prints a line per file, each skip with its reason, and what failed at the end. Exits with 0 when all passed.
 *
 * In the suite, and with `--again`, a few files that failed run a second time, one by one on a machine that does nothing
 * else: a fault of the code fails again, and what a busy machine did is printed as `unsteady`, for somebody to mend.
 */

import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, watch } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const STRIPS_TYPES = Boolean(process.features.typescript)
const JOBS = availableParallelism() + 1
/** Files that take longest, in that order: one that began last would run alone. */
const LONGEST = [
  'flows/migrate',
  'flows/nodes-hostile',
  'flows/nodes-versions',
  'flows/nodes-drill',
  'flows/client-page',
  'flows/process',
  'flows/client-trust',
  'flows/simulate',
  'flows/backup-restore',
  'flows/call-story-kill',
  'flows/nodes-database',
  'flows/nodes-forced',
  'flows/nodes-kill',
  'flows/console-page',
  'flows/doctor',
  'flows/witnesses',
  'flows/nodes-stopped',
  'flows/client-devices',
  'flows/register-refusals',
  'flows/register-and-verify',
  'app/media/gateway',
  'flows/client-group',
  'flows/nodes-copy',
  'flows/application-restart',
  'flows/call-story',
  'actors/call-runs',
  'flows/nodes-lag',
].map(name => join(ROOT, 'dist', 'test', `${name}.test.js`))
const FILE_TIMEOUT_S = Number(process.env.TAP_TIMEOUT ?? 600)
/** After its time limit a test says where it was. */
const GRACE_S = 5
const FAILURE_LINES_MAX = 40
/** When more files have failed than this, the fault is in what they share. */
const AGAIN_MAX = 8

/** Reads the TAP 14 of one file and keeps what a person needs of it. */
class Report {
  /** The tests that the last line is in, outermost first, with the number of failures before each. */
  #open = []
  #failures = []
  /** Set while the details of a failure are read. */
  #details
  counts = { pass: 0, fail: 0, skip: 0 }

  get failures() {
    return this.#failures.map(lines => lines.join('\n'))
  }

  read(line) {
    const text = line.trimStart()
    const indent = line.length - text.length
    if (this.#details !== undefined && this.#isDetail(text, indent)) return
    const title = /^# Subtest: (.*)$/.exec(text)?.[1]
    if (title !== undefined) this.#open[indent / 4] = { title, failuresBefore: this.#failures.length }
    const result = /^(not )?ok \d+(?: - (.*))?$/.exec(text)
    if (result !== null) this.#onResult(result[1] === undefined, result[2] ?? '', indent / 4)
  }

  #onResult(passed, title, depth) {
    const above = this.#open.slice(0, depth).map(test => test.title)
    const ended = this.#open[depth]
    this.#open.length = depth
    if (depth === 0) print(`${passed ? 'ok' : 'not ok'}  ${title.replace(' # time=', '  ')}`)
    const skipped = / # SKIP\s*(.*)$/i.exec(title)
    if (skipped !== null) {
      this.counts.skip++
      print(`skipped  ${[...above, title.slice(0, skipped.index)].join(' > ')}: ${skipped[1]}`)
      return
    }
    // A test fails with what it holds, which was told; or by itself, such as for a plan that was not kept.
    if (ended !== undefined && (passed || this.#failures.length > ended.failuresBefore)) return
    this.counts[passed ? 'pass' : 'fail']++
    if (passed) return
    const lines = [`FAILED  ${[...above, title.replace(/ # time=.*/, '')].join(' > ')}`]
    this.#failures.push(lines)
    this.#details = { lines, indent: depth * 4, isLeftOut: false }
  }

  /** Whether the line is of the details, which are YAML. Of them the code around the failure is left out. */
  #isDetail(text, indent) {
    const { lines } = this.#details
    if (text === '---') return true
    if (text === '...' || (text !== '' && indent <= this.#details.indent)) {
      this.#details = undefined
      return text === '...'
    }
    if (indent === this.#details.indent + 2) this.#details.isLeftOut = /^(?:source|at|tapCaught):/.test(text)
    if (!this.#details.isLeftOut && lines.length < FAILURE_LINES_MAX)
      lines.push(' '.repeat(Math.max(0, indent - this.#details.indent)) + text)
    return true
  }
}

async function runSuite() {
  for (const script of ['build', 'lint'])
    if (!(await succeeds('npm', ['run', '--silent', script]))) return false
  if (!(await succeeds('npx', ['tap', 'build']))) return false
  const folder = join(ROOT, 'dist', 'test')
  const names = readdirSync(folder, { recursive: true }).filter(name => name.endsWith('.test.js'))
  const files = new Set([...LONGEST, ...names.toSorted().map(name => join(folder, name))])
  const { WITH_FRONTS } = await import(join(folder, 'support', 'fronts-in-flows.js'))
  const { joinPrograms } = await import(join(folder, 'support', 'joined-programs.js'))
  const joined = join(ROOT, 'dist', 'joined')
  await joinPrograms(joined)
  const plain = Array.from(files, file => ({ file, joined }))
  const withFronts = WITH_FRONTS.map(name => ({
    file: join(folder, 'flows', `${name}.test.js`),
    fronts: '2',
    joined,
  }))
  return runFiles([...plain, ...withFronts], { again: true })
}

/** Each with the number of fronts that it runs with, where that is chosen. */
async function runFiles(runs, { again }) {
  const files = runs.map(({ file }) => file)
  // A test in plain JavaScript, such as this runner's own tests make, runs as it is.
  const sources = files.filter(file => file.endsWith('.ts'))
  const fromSource = STRIPS_TYPES && !sources.some(file => startsBuilt(file))
  if (sources.length > 0 && !fromSource && !(await succeeds('npm', ['run', '--silent', 'build'])))
    return false
  const conditions = fromSource ? ['--conditions=callsign-source'] : []
  const programOf = file =>
    fromSource || !sources.includes(file)
      ? file
      : join(ROOT, 'dist', relative(ROOT, file).replace(/\.ts$/, '.js'))
  const waiting = [...runs]
  const running = new Set()
  const ended = []
  /** A file has one folder for its data, so it does not run twice at once. */
  function next() {
    const at = waiting.findIndex(({ file }) => !running.has(file))
    return at < 0 ? undefined : waiting.splice(at, 1)[0]
  }
  async function runOne(run) {
    const maps = run.joined === undefined ? ['--enable-source-maps'] : []
    const { code, lines } = await runProgram([...maps, ...conditions, programOf(run.file)], run)
    const report = new Report()
    for (const line of lines) report.read(line)
    return { run, report, passed: code === 0 }
  }
  async function work() {
    for (let run = next(); run !== undefined; run = next()) {
      running.add(run.file)
      ended.push(await runOne(run))
      running.delete(run.file)
    }
  }
  await Promise.all(Array.from({ length: JOBS }, work))
  if (again) await runAgain(ended, runOne)
  printEnd(ended.map(({ report }) => report))
  return ended.every(({ passed }) => passed)
}

/** Replaces what failed by what its second run gave; of one that passed then, the first failures are printed. */
async function runAgain(ended, runOne) {
  const failed = ended.filter(({ passed }) => !passed)
  if (failed.length > AGAIN_MAX) return
  for (const first of failed) {
    print(`again, alone: ${nameOf(first.run)}`)
    const second = await runOne({ ...first.run, joined: undefined })
    ended[ended.indexOf(first)] = second
    if (second.passed)
      for (const text of first.report.failures) print(text.replace('FAILED', 'unsteady (passed alone):'))
  }
}

function printEnd(reports) {
  for (const text of reports.flatMap(({ failures }) => failures)) print(`\n${text}`)
  const [pass, fail, skip] = ['pass', 'fail', 'skip'].map(kind =>
    reports.reduce((sum, { counts }) => sum + counts[kind], 0),
  )
  const counts = [`total: ${pass + fail + skip}`, `pass: ${pass}`, `fail: ${fail}`, `skip: ${skip}`]
  print(`\n# { ${counts.filter(each => !each.endsWith(' 0')).join(', ')} }`)
}

function nameOf({ file, fronts }) {
  return relative(ROOT, file) + (fronts === undefined ? '' : ` with ${fronts} fronts`)
}

/** Resolves with the exit code of the test program, and its TAP as a subtest's. */
async function runProgram(args, { file, fronts, joined }) {
  const name = nameOf({ file, fronts })
  const lines = [`# Subtest: ${name}`]
  const startedAtMs = performance.now()
  const environment = {
    ...(fronts === undefined ? {} : { CALLSIGN_FRONTS: fronts }),
    ...(joined === undefined ? {} : { CALLSIGN_JOINED_PROGRAMS: joined }),
  }
  const child = start(process.execPath, args, environment)
  const timer = setTimeout(() => killGroup(child), (FILE_TIMEOUT_S + GRACE_S) * 1000)
  const code = await readTap(child, line => lines.push(`    ${line}`))
  clearTimeout(timer)
  killGroup(child)
  const ms = Math.round(performance.now() - startedAtMs)
  lines.push(`${code === 0 ? 'ok' : 'not ok'} 1 - ${name} # time=${ms}ms`)
  return { code, lines }
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

/** In a process group of its own: what a test started does not outlive it. */
function start(command, args, environment) {
  const env = { ...process.env, ...environment, TAP_TIMEOUT: String(FILE_TIMEOUT_S) }
  return spawn(command, args, { cwd: ROOT, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
}

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {}
}

/** Resolves with the exit code. */
async function readTap(child, onLine) {
  const closed = new Promise(resolve => child.once('close', resolve))
  const end = () => {
    killGroup(child)
    process.exit(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end)
  for await (const line of createInterface({ input: child.stdout })) onLine(line)
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, end)
  return closed
}

async function succeeds(command, args) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  return (await new Promise(resolve => child.once('close', resolve))) === 0
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
    fronts: { type: 'string' },
  },
  allowPositionals: true,
})
const { fronts, again } = values
const runs = positionals.map(file => ({ file: resolve(file), fronts }))
const run = () => (runs.length === 0 ? runSuite() : runFiles(runs, { again }))
if (values.watch) await runAgainOnChange(run)
else process.exitCode = (await run()) ? 0 : 1
