/** The server's lines on a terminal; `script` (util-linux) stands in for one. */

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { productionEnvironment } from '../support/outside-world.ts'
import { skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const SCRIPT = '/usr/bin/script'
const skip = skipWithout([SCRIPT], 'bsdutils')

interface Terminal {
  readonly process: ChildProcess
  readonly text: () => string
  /** Resolves with the match once the text has it. */
  shows(pattern: RegExp): Promise<RegExpExecArray>
}

function startOnTerminal(t: Test, args: string, environment: Readonly<Record<string, string>>): Terminal {
  const command = `exec ${process.execPath} ${join(PROJECT_ROOT, 'dist/src/main.js')} ${args}`
  const names = ['HTTP', 'GRPC', 'ADMIN', 'SERVER_API']
  const ports = Object.fromEntries(names.map(name => [`CALLSIGN_${name}_PORT`, '0']))
  const env = { PATH: process.env.PATH, ...ports, CALLSIGN_DATA_DIR: t.testdir(), ...environment }
  const child = spawn(SCRIPT, ['-qefc', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'], env })
  const ended = new Promise(resolve => child.once('close', resolve))
  t.teardown(async () => {
    // Ctrl-C, as a person stops it.
    child.stdin.write('\x03')
    await ended
  })
  let text = ''
  const listeners = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', chunk => {
    text += chunk.replaceAll('\r\n', '\n')
    for (const listener of listeners) listener()
  })
  const shows = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(text)
        if (match !== null) resolve(match)
      }
      look()
      listeners.add(look)
      ended.then(() => reject(new Error(`ended without ${pattern}:\n${text}`)))
    })
  return { process: child, text: () => text, shows }
}

t.test('in development a terminal gets the banner and readable lines, and no JSON', { skip }, async t => {
  const { shows, text } = startOnTerminal(t, '--dev', {})
  await shows(/^ {2}\d\d:\d\d:\d\d checkpoint treeSize=0$/m)
  await shows(/^ {2}Callsign \d+\.\d+\.\d+, development$/m)
  const [, http] = await shows(/^ {2}console +(http:\S+)\/dev /m)
  t.equal((await fetch(`${http}/app/api/user`)).status, 401)
  await shows(/^ {2}\d\d:\d\d:\d\d refused .*code=TOKEN_MISSING/m)
  t.notMatch(text(), /^\{/m)
})

t.test('in production a terminal gets one readable ready line', { skip }, async t => {
  const environment = productionEnvironment()
  const { shows, text } = startOnTerminal(t, '', environment)
  await shows(/^ {2}\d\d:\d\d:\d\d warning: log-head-file-unset/m)
  await shows(
    /^callsign: ready\. Public: http:\S+, gRPC: \S+, operators: http:\S+, server API: http:\S+, log: kt\.example\.org\/log$/m,
  )
  t.notMatch(text(), /^\{/m)
})
