/** The programs of docs/build/sdk.md, as a reader runs them against a development server. */

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

function programsOf(page: string): string[] {
  const text = readFileSync(join(PROJECT_ROOT, 'docs', page), 'utf8')
  return [...text.matchAll(/^```js\n([\s\S]+?)^```$/gm)].map(([, program]) => program!)
}

/** The output of each program, the numbers of a run apart. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  'sign-in.mjs': /^a code is on its way to E•••@example\.org\nOTP_INVALID\ntrue Eve Example\n$/i,
  'contacts.mjs': /Bob: It is Bob\nAnn is a contact\nMy brother Bob\ntrue \d{5} \d{5}\n\[\]\n$/,
  'group-call.mjs': /^Cat: removed\nepoch 3\n.*'outgoing', isGroup: true, status: 'ended'/s,
  'devices.mjs': /^true\n2 devices\n$/,
  'push.mjs': /^\{ show: 'nothing' \}\n$/,
}

t.test('the programs of the page run', async t => {
  const [first, people, ...programs] = programsOf('build/sdk.md')
  t.equal(first, programsOf('start/first-call.md')[0], 'the first one is that of first-call.md')
  const folder = t.testdir()
  for (const name of ['dist', 'node_modules', 'package.json']) {
    symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
  }
  const data = join(folder, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'people.mjs'), people!)
  const server = await startServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const names = programs.map(program => /^\/\/ ([\w-]+\.mjs)/.exec(program)?.[1] ?? '')
  t.same(names, Object.keys(PRINTED))
  for (const [at, name] of names.entries()) {
    writeFileSync(join(data, name), programs[at]!)
    const environment = { PATH: process.env.PATH!, CALLSIGN_URL: server.http }
    const { code, stdout, stderr } = await runProgram(process.execPath, [join(data, name)], { environment })
    t.equal(code, 0, `${name} ends well ${stderr}`)
    t.match(stdout, PRINTED[name]!, name)
  }
})
