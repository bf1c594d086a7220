/** The template for Next.js, installed from the registry, built and served: two people call each other with it. */

import { join } from 'node:path'
import t from 'tap'
import { twoPeopleCall } from '../support/app-story.ts'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { runNew } from '../support/new-app.ts'
import { openServer } from '../support/open-server.ts'
import { runProgram, spawnBound } from '../support/programs.ts'
import { Started } from '../support/your-users.ts'

// npm finds the registry by it. Readers' programs have no options of the test runner.
const environment = { ...stringsOf(process.env), NEXT_TELEMETRY_DISABLED: '1', NODE_OPTIONS: '' }
const run = (file: string, ...args: string[]) => runProgram(file, args, { environment })
const asked = await run('npm', 'view', 'next', 'version')
const skip =
  skipWithoutChromium || (asked.code !== 0 && 'needs the packages of Next.js, and npm reaches no registry')

t.test('an app of the template for Next.js', { skip }, async t => {
  const folder = t.testdir()
  const server = await openServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const app = join(folder, 'app')
  t.equal((await runNew(app, '--template', 'next', '--server', server.http)).code, 0)
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefix', app]
  t.equal((await run('npm', 'install', ...flags)).code, 0, 'it is installed')
  const built = await run('npm', 'run', 'build', '--prefix', app)
  if (built.code !== 0) t.comment(built.stdout + built.stderr)
  t.equal(built.code, 0, 'it compiles')

  const port = await freePort()
  const next = join(app, 'node_modules/next/dist/bin/next')
  const child = spawnBound(process.execPath, [next, 'start', '-p', `${port}`], {
    cwd: app,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill())
  await new Started(child).printed('✓ Ready')
  const url = `http://localhost:${port}/`
  const policy = (await fetch(url)).headers.get('content-security-policy') ?? ''
  t.match(policy, /script-src 'self' 'nonce-[-\w]+';/)
  t.notMatch(policy, 'unsafe')
  const worker = await fetch(`${url}callsign-service-worker.js`)
  t.match(worker.headers.get('content-type'), 'text/javascript')
  await twoPeopleCall(t, (await openBrowser(t))!, { url, server: server.http })
})

function stringsOf(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
