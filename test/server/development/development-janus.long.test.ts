/** The Janus that a development server brings along, with the real program: started again when it ends, and never left behind. */

import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { JANUS_PROGRAM } from '../../../src/media/janus-files.ts'
import { withDevelopmentJanus } from '../../../src/server/development/development-janus.ts'
import { readConfig } from '../../../src/server/settings/config.ts'
import { skipWithoutJanus } from '../../support/janus.ts'
import { environmentOf, startServer } from '../../support/server.ts'

const skip = skipWithoutJanus

t.test('a Janus that is killed is replaced, and none outlives the server', { skip }, async t => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const dataFolder = t.testdir()
    const server = await startServer({ dataFolder, args: ['--janus'] })
    t.teardown(() => server.process.kill('SIGKILL'))
    const first = janusOf(server.process.pid!)
    process.kill(first, 'SIGKILL')
    await until(() => server.stderr().includes('callsign: Janus is back\n'))
    const second = janusOf(server.process.pid!)
    t.not(second, first)
    t.notOk(existsSync(`/proc/${first}`), 'no zombie')
    t.equal(server.stderr().split('Janus has ended (SIGKILL)').length, 2, 'one line')
    t.match(await infoOf(dataFolder), { janus: 'server_info' }, 'clients reach it where the first was')
    await server.end(signal)
    await until(() => !existsSync(`/proc/${second}`))
    t.equal(server.stderr().split('Janus has ended').length, 2, 'its end with the server is no news')
  }
})

t.test('while the program is not there, one sentence says so', { skip }, async t => {
  const dataFolder = t.testdir()
  const program = join(dataFolder, 'janus-program')
  symlinkSync(JANUS_PROGRAM, program)
  const lines: string[] = []
  const config = readConfig(environmentOf({ dataFolder }), { dev: true, lanAddress: undefined })
  const { application } = await withDevelopmentJanus(config, line => lines.push(line), program)
  t.match(application.media, { kind: 'janus' })
  rmSync(program)
  process.kill(janusOf(process.pid), 'SIGKILL')
  await until(() => lines.length === 2)
  symlinkSync(JANUS_PROGRAM, program)
  await until(() => lines.length === 3)
  t.same(lines, [
    'callsign: Janus has ended (SIGKILL); it is started again\n',
    `callsign: ${program} is gone; calls wait for Janus until the program is there again\n`,
    'callsign: Janus is back\n',
  ])
})

/** The process id of the only Janus that the program runs. */
function janusOf(parent: number): number {
  const found = readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false
    const [, program, , parentId] = /^\d+ \((.*)\) (\S) (\d+)/.exec(statOf(name)) ?? []
    return program?.startsWith('janus') && Number(parentId) === parent
  })
  if (found.length !== 1) throw new Error(`${found.length} run`)
  return Number(found[0])
}

function statOf(process: string): string {
  try {
    return readFileSync(`/proc/${process}/stat`, 'utf8')
  } catch {
    return ''
  }
}

async function infoOf(dataFolder: string): Promise<unknown> {
  const file = readFileSync(join(dataFolder, 'janus/janus.transport.websockets.jcfg'), 'utf8')
  const [, port] = /ws_port\s*=\s*(\d+)/.exec(file)!
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'janus-protocol')
  await once(socket, 'open')
  socket.send('{"janus":"info","transaction":"1"}')
  const [answer] = await once(socket, 'message')
  socket.close()
  return JSON.parse(String(answer))
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(LOOK_AGAIN_MS)
}

const LOOK_AGAIN_MS = 20
