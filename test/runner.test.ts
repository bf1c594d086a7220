/** `npm test` as a contributor meets it: what it prints of a failure, and what is left after a time limit. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { WITH_FRONTS, WITH_FRONTS_LONG, WITHOUT_FRONTS } from './support/fronts-in-flows.ts'
import { joinTestPrograms } from './support/joined-programs.ts'
import { runProgram } from './support/programs.ts'
import { startServer } from './support/server.ts'
import { PROJECT_ROOT } from './support/vectors.ts'

interface Run {
  readonly code: number | null
  readonly stdout: string
}

interface RunOptions {
  readonly timeoutS?: number
  readonly args?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

const RUNNER = join(PROJECT_ROOT, 'test/runner')

/** Whether the process lives; one that has ended and was not reaped has no command line. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/cmdline`
  try {
    return readFileSync(path).length > 0
  } catch {
    return false
  }
}

/** Runs one test file of this text. */
function runTest(
  t: Test,
  text: string,
  { timeoutS = 60, args = [], environment = {} }: RunOptions = {},
): Promise<Run> {
  const folder = t.testdir({
    'a.test.mjs': `import t from ${JSON.stringify(import.meta.resolve('tap'))}\n${text}`,
  })
  const child = spawn(process.execPath, [join(RUNNER, 'run.mjs'), join(folder, 'a.test.mjs'), ...args], {
    env: { PATH: process.env.PATH, TAP_TIMEOUT: `${timeoutS}`, ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    stdout += chunk
  })
  return new Promise(resolve => child.once('close', code => resolve({ code, stdout })))
}

t.test('a passing file is one line and the count', async t => {
  const { code, stdout } = await runTest(t, `t.test('adds', async t => { t.equal(1 + 1, 2); t.ok(true) })`)
  t.equal(code, 0)
  t.match(stdout, /^ok {2}\S*a\.test\.mjs {2}\d+ms\n\n# \{ total: 2, pass: 2 \}\n$/)
})

t.test('what failed stands at the end with its place and difference, under its whole title', async t => {
  const { code, stdout } = await runTest(
    t,
    `t.test('outer', async t => {
      t.test('inner', async t => { t.equal(1, 2, 'one is two'); t.ok(true) })
    })
    t.test('throws', async () => { throw new Error('boom') })
    t.test('later', async t => t.ok(true))`,
  )
  t.equal(code, 1)
  const [above = '', ...failures] = stdout.split('\n\nFAILED  ')
  t.match(above, /^not ok {2}\S*a\.test\.mjs {2}\d+ms$/)
  t.match(failures[0], /a\.test\.mjs > outer > inner > one is two\n[\s\S]*a\.test\.mjs:3:\d+[\s\S]*-2\n *\+1/)
  t.match(failures[1], /a\.test\.mjs > throws > boom\n[\s\S]*# \{ total: 4, pass: 2, fail: 2 \}\n$/)
  t.equal(failures.length, 2)
})

t.test('a skipped test is printed with its reason', async t => {
  const { code, stdout } = await runTest(t, `t.test('needs it', { skip: 'no browser' }, async () => {})`)
  t.equal(code, 0)
  t.match(stdout, /^skipped {2}\S+ > needs it: no browser$/m)
})

t.test('a test of the long size is not run with the short one, nor printed', async t => {
  const text = `const { long, countOf } = await import(${JSON.stringify(import.meta.resolve('./support/size.js'))})
    t.test('searches', long(), async t => t.equal(countOf('CALLSIGN_NONE', { short: 1, long: 2 }), 1))
    t.test('proves', async t => t.pass())`
  const named = await runTest(t, text)
  t.match(named.stdout, /# \{ total: 2, pass: 2 \}\n$/, 'a named file runs whole')
  const short = await runTest(t, text, { environment: { CALLSIGN_TEST_SIZE: 'short' } })
  t.equal(short.code, 0)
  t.notMatch(short.stdout, 'searches')
  t.match(short.stdout, /# \{ total: 1, pass: 1 \}\n$/)
  const long = await runTest(t, text, { environment: { CALLSIGN_TEST_SIZE: 'long', TAP_ONLY: '1' } })
  t.match(long.stdout, /FAILED {2}\S+ > searches > [\s\S]*# \{ total: 1, fail: 1 \}\n$/)
})

t.test('files of one process are told apart in what failed', async t => {
  const folder = t.testdir({
    'a.test.mjs': `import t from ${JSON.stringify(import.meta.resolve('tap'))}\nt.test('one', async t => t.pass())`,
    'b.test.mjs': `import t from ${JSON.stringify(import.meta.resolve('tap'))}\nt.test('two', async t => t.fail('no'))`,
  })
  const { Report } = await import(join(RUNNER, 'report.mjs'))
  const report = new Report()
  report.read('# Subtest: test/x')
  const files = ['a', 'b'].map(name => join(folder, `${name}.test.mjs`))
  const { stdout } = await runProgram(process.execPath, [join(RUNNER, 'folder.mjs'), 'test/x', ...files])
  for (const line of stdout.split('\n')) report.read(`    ${line}`)
  t.same(report.counts, { pass: 1, fail: 1, skip: 0, other: 0 })
  t.match(report.failures[0], /^FAILED {2}test\/x > \S+b\.test\.mjs > two > no\n/)
})

t.test('the dearest files are listed, with what became dearer', async t => {
  const { addedSince, dearest } = await import(join(RUNNER, 'durations.mjs'))
  const before = { 'test/a': { cpuS: 2, wallS: 9 } }
  const ended = [
    { name: 'test/b', cpuS: 0.5, wallS: 1 },
    { name: 'test/a', cpuS: 3.25, wallS: 8 },
  ]
  const [, ...rows] = dearest(before, ended)
  t.match(rows, [/^ +3\.3 +\+1\.3 +8\.0 {2}test\/a$/, /^ +0\.5 +new +1\.0 {2}test\/b$/])
  t.equal(addedSince(before, ended), '+1.3 s in known files, +0.5 s in new files')
  t.equal(addedSince({}, ended), undefined)
})

t.test('the processor time of a test process is counted', async t => {
  const { ProcessorTime, secondsSoFar } = await import(join(RUNNER, 'processor-time.mjs'))
  if (secondsSoFar() === undefined) return void t.pass('nothing is counted here')
  const time = new ProcessorTime()
  const burn = 'const end = Date.now() + 300; while (Date.now() < end);'
  const [shell, args] = time.command(process.execPath, ['-e', burn])
  const child = spawn(shell, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const times = await text(child.stdio[3] as Readable)
  await ended
  t.ok(time.end(times) > 0)
})

t.test('a file that ends without a result has failed', async t => {
  const { code, stdout } = await runTest(t, 'process.exit(3)')
  t.equal(code, 1)
  t.match(stdout, /FAILED {2}\S*a\.test\.mjs\n[\s\S]*fail: 1 \}/)
})

t.test('a file that hangs fails at its time limit, and the program that it started ends', async t => {
  const { code, stdout } = await runTest(
    t,
    `import { spawn } from 'node:child_process'
    t.test('hangs', async t => {
      const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
      t.equal(pid, 0, 'pid')
      await new Promise(() => setInterval(() => {}, 1000))
    })`,
    { timeoutS: 12 },
  )
  t.equal(code, 1)
  const [, pid] = /^ *\+(\d+)$/m.exec(stdout) ?? []
  t.ok(Number(pid) > 0, stdout)
  while (isRunning(Number(pid))) await setImmediate()
})

t.test('what failed may run again alone: a fault fails twice, chance is printed and passes', async t => {
  const fault = await runTest(t, `t.ok(false, 'never')`, { args: ['--again'] })
  t.equal(fault.code, 1)
  t.match(
    fault.stdout,
    /again, alone: \S*a\.test\.mjs\nnot ok [\s\S]*FAILED {2}\S+ > never\n[\s\S]*fail: 1 \}\n$/,
  )
  const chance = await runTest(
    t,
    `import { existsSync, writeFileSync } from 'node:fs'
    const seen = new URL('seen', import.meta.url)
    t.ok(existsSync(seen), 'the second time')
    writeFileSync(seen, '')`,
    { args: ['--again'] },
  )
  t.equal(chance.code, 0)
  t.match(chance.stdout, /unsteady \(passed alone\): {2}\S+ > the second time\n/)
  t.match(chance.stdout, /# \{ total: 1, pass: 1 \}\n$/)
})

t.test('a run with fronts says so beside the name, and the servers of its tests have them', async t => {
  const { code, stdout } = await runTest(
    t,
    `t.test('has them', async t => t.equal(process.env.CALLSIGN_FRONTS, '2'))`,
    { args: ['--fronts', '2'] },
  )
  t.equal(code, 0)
  t.match(stdout, /^ok {2}\S*a\.test\.mjs with 2 fronts {2}\d+ms$/m)
})

t.test('a joined server starts joined fronts, and has the pages beside the built one', async t => {
  const folder = t.testdir({ joined: {}, data: {} })
  // The suite has made them.
  const { CALLSIGN_JOINED_PROGRAMS: joined = join(folder, 'joined') } = process.env
  if (joined.startsWith(folder)) await joinTestPrograms(joined)
  const server = await startServer({
    dataFolder: join(folder, 'data'),
    program: join(joined, 'src/main.js'),
    environment: { CALLSIGN_FRONTS: '1' },
  })
  t.teardown(() => server.end())
  const { pid } = server.process
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')
  const commands = children.map(child => readFileSync(`/proc/${child}/cmdline`, 'latin1'))
  t.ok(
    commands.some(command => command.includes(join(joined, 'src/front.js'))),
    commands.join(),
  )
  t.equal((await fetch(`${server.http}/dev`)).status, 200)
})

t.test('every story runs with fronts, or it is said why not', async t => {
  const names = readdirSync(join(PROJECT_ROOT, 'test/flows'))
    .map(name => name.replace('.test.ts', ''))
    .filter(name => !/^nodes(?:-|$)|\.long$/.test(name))
  const inLong = WITH_FRONTS_LONG.filter(name => !name.endsWith('.long'))
  t.same([...WITH_FRONTS, ...inLong, ...Object.keys(WITHOUT_FRONTS)].sort(), names.sort())
})
