/** A start where uWebSockets.js has no binary that runs. */

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

async function start(folder: string, fault: string) {
  const own = join(folder, 'node_modules/uWebSockets.js')
  mkdirSync(own, { recursive: true })
  const message = JSON.stringify(`It supports some systems.\n\n${fault}`)
  writeFileSync(join(own, 'index.js'), `throw new Error(${message})`)
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(own, 'package.json'), '{}')
  copyFileSync(join(PROJECT_ROOT, 'dist/src/transport/platform.js'), join(folder, 'platform.js'))
  return runProgram(process.execPath, [join(folder, 'platform.js')])
}

t.test('a binary that a build for another Node took out is named, with what brings it back', async t => {
  const { code, stderr } = await start(
    t.testdir(),
    "Error: Cannot find module './uws_linux_x64_137.node'\nRequire stack:\n- uws.js",
  )
  t.equal(code, 1)
  t.match(stderr, /: uws_linux_x64_137\.node is missing\. .*run npm ci and build again, with this Node\n$/)
})

t.test('where no binary fits, the start says which systems there are binaries for', async t => {
  for (const fault of [
    "Error: Cannot find module './uws_linux_x64_131.node'",
    "Error: /lib/libm.so.6: version `GLIBC_2.38' not found (required by uws_linux_x64_137.node)",
  ]) {
    const { code, stderr } = await start(t.testdir(), fault)
    t.equal(code, 1)
    t.match(stderr, 'it is there for Node 20 with glibc 2.27 or newer')
    t.match(stderr, fault)
  }
})
