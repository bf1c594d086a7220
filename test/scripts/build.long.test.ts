/** The build that `npm start` waits for: only what the server runs, and only what has changed. */

import { cpSync, existsSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const CLONED = [
  ...['src', 'actors', 'scripts', 'web', 'test', 'bench', 'package.json', 'tsconfig.json', '.npmrc'],
  ...['docs', 'SECURITY.md', 'CHANGELOG.md', 'kotlin/README.md', 'swift/README.md'],
]

t.test('npm start compiles the server and its pages, once, and says so', async t => {
  const clone = t.testdir()
  for (const name of CLONED) cpSync(join(PROJECT_ROOT, name), join(clone, name), { recursive: true })
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(clone, 'node_modules'))
  const node = dirname(process.execPath)
  const build = async () => {
    const environment = { PATH: `${node}:/usr/bin:/bin`, HOME: clone }
    const npm = join(node, 'npm')
    return runProgram(npm, ['--prefix', clone, 'run', '--silent', 'build:server'], { environment })
  }
  const writtenAt = (name: string) => statSync(join(clone, 'dist', name)).mtimeMs

  const first = await build()
  t.equal(first.code, 0, first.stdout + first.stderr)
  t.match(first.stdout, /^callsign: compiling what has changed/)
  const made = [
    'src/main.js',
    'actors/outbox.js',
    'scripts/simulate.js',
    'web/client/main.js',
    'pages/dev/client/main.js',
    'joined/src/main.js',
  ]
  for (const name of made) {
    t.ok(existsSync(join(clone, 'dist', name)), name)
  }
  t.notOk(existsSync(join(clone, 'dist/test')), 'no tests')
  t.notOk(existsSync(join(clone, 'dist/bench')), 'no benchmarks')

  const before = {
    server: writtenAt('src/main.js'),
    page: writtenAt('web/client/tabs.js'),
  }
  writeFileSync(join(clone, 'web/client/tabs.ts'), '\nexport const ADDED = 1\n', { flag: 'a' })
  t.equal((await build()).code, 0)
  t.equal(writtenAt('src/main.js'), before.server, 'what is compiled is left alone')
  t.ok(writtenAt('web/client/tabs.js') > before.page, 'what has changed is compiled')

  const joinedAtMs = writtenAt('joined/src/main.js')
  t.equal((await build()).code, 0)
  t.equal(writtenAt('joined/src/main.js'), joinedAtMs, 'what is joined is left alone')
  writeFileSync(join(clone, 'src/errors.ts'), '\nexport const ADDED = 1\n', { flag: 'a' })
  t.equal((await build()).code, 0)
  t.ok(writtenAt('joined/src/main.js') > joinedAtMs, 'what has changed is joined')
})
