/** The server's files are private: data folder, backup and restored copy are closed to other users. */

import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runScript } from '../support/commands.ts'
import { openRefused, openServer } from '../support/open-server.ts'
import { runProgram, startedProgram } from '../support/programs.ts'

/** Every file and folder that other users may use in any way. */
function openTo(folder: string): string[] {
  const paths = readdirSync(folder, { recursive: true }).map(name => join(folder, String(name)))
  return [folder, ...paths].filter(path => (statSync(path).mode & 0o077) !== 0)
}

t.test(
  'data folder, backup and restored copy are closed to other users, whatever they were before',
  async t => {
    const folder = t.testdir()
    const [dataFolder, copy, restored] = ['data', 'copy', 'restored'].map(name => join(folder, name))
    mkdirSync(dataFolder!, { mode: 0o755 })
    await (await openServer({ dataFolder: dataFolder! })).end()
    t.same(openTo(dataFolder!), [], 'an existing folder')

    // As a copy may have left them.
    for (const name of ['.', 'store', 'lock']) chmodSync(join(dataFolder!, name), 0o755)
    for (const name of ['store/data.mdb', 'store/lock.mdb']) chmodSync(join(dataFolder!, name), 0o644)
    const server = await openServer({ dataFolder: dataFolder! })
    t.same(openTo(dataFolder!), [])
    t.equal((await runScript('backup', ['--data-dir', dataFolder!, '--to', copy!])).code, 0)
    await server.end()
    t.same(openTo(copy!), [])

    chmodSync(join(copy!, 'store', 'data.mdb'), 0o644)
    t.equal((await runScript('restore', ['--from', copy!, '--data-dir', restored!])).code, 0)
    t.same(openTo(restored!), [])
  },
)

t.test('a folder that holds other things too stays as it is, and the log says so', async t => {
  const dataFolder = join(t.testdir(), 'shared')
  mkdirSync(dataFolder)
  chmodSync(dataFolder, 0o755)
  writeFileSync(join(dataFolder, 'notes.txt'), 'of somebody else')
  chmodSync(join(dataFolder, 'notes.txt'), 0o644)
  const server = await openServer({ dataFolder })
  await server.end()
  t.same(openTo(dataFolder), [dataFolder, join(dataFolder, 'notes.txt')])
  t.match(server.stderr(), /"event":"data-folder-open"/)
})

t.test('start, config check and doctor name a file of secrets that other users may read', async t => {
  const folder = t.testdir({ data: {}, token: 'a-token-of-the-operator' })
  const token = join(folder, 'token')
  chmodSync(token, 0o644)
  const environment = { CALLSIGN_GRPC_TOKEN_FILE: token }
  const sentence = /CALLSIGN_GRPC_TOKEN_FILE: other users of this machine may read the file/
  const { stderr } = await openRefused({ dataFolder: join(folder, 'data'), environment })
  t.match(stderr, sentence, 'a start is not refused for it')
  const examine = async (script: string, ...args: string[]) => {
    const around = { environment: { ...environment, CALLSIGN_DATA_DIR: join(folder, 'data') } }
    const command = [startedProgram(`scripts/${script}`), ...args, '--dev']
    return (await runProgram(process.execPath, command, around)).stdout
  }
  t.match(await examine('config', 'check'), sentence)
  t.match(await examine('doctor'), sentence)
  chmodSync(token, 0o600)
  t.notMatch(await examine('config', 'check'), sentence)
  t.notMatch(await examine('doctor'), sentence)
})
