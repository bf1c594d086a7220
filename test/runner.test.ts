/** `npm test` as a contributor meets it: what it prints of a failure, and what is left after a time limit. */

import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { WITH_FRONTS, WITH_FRONTS_LONG, WITHOUT_FRONTS } from './support/fronts-in-flows.ts'
import { joinPrograms } from './support/joined-programs.ts'
import { startServer } from './support/server.ts'
import { PROJECT_ROOT } from './support/vectors.ts'

interface Run {
  readonly code: number | null
  readonly stdout: string
}

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
  { timeoutS = 60, args = [] }: { timeoutS?: number; args?: readonly string[] } = {},
): Promise<Run> {
  const folder = t.testdir({
    'a.test.mjs': `import t from ${JSON.stringify(import.meta.resolve('tap'))}\n${text}`,
  })
  const child = spawn(
    process.execPath,
    [join(PROJECT_ROOT, 'test/runner/run.mjs'), join(folder, 'a.test.mjs'), ...args],
    {
      env: { PATH: process.env.PATH, TAP_TIMEOUT: `${timeoutS}` },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
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
  await joinPrograms(join(folder, 'joined'))
  const server = await startServer({
    dataFolder: join(folder, 'data'),
    program: join(folder, 'joined/src/main.js'),
    environment: { CALLSIGN_FRONTS: '1' },
  })
  t.teardown(() => server.end())
  const { pid } = server.process
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')
  const commands = children.map(child => readFileSync(`/proc/${child}/cmdline`, 'latin1'))
  t.ok(
    commands.some(command => command.includes(join(folder, 'joined/src/front.js'))),
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
