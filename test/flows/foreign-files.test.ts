/**
 * A store whose files belong to another user, as after a command of root's: each program says so, and nothing worse.
 */

import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openServer } from '../support/open-server.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { freshPublicKey, startRefused } from '../support/server.ts'
import { bySize, sized } from '../support/size.ts'

interface Story {
  readonly dataFolder: string
  readonly environment: Readonly<Record<string, string>>
}

/** A log of one entry, recorded in a head file, whose files everybody may write to. */
async function ownedByAll(t: Test): Promise<Story> {
  const folder = t.testdir()
  const [dataFolder, head] = [join(folder, 'data'), join(folder, 'head')]
  mkdirSync(head)
  const environment = { CALLSIGN_LOG_HEAD_FILE: join(head, 'checkpoint') }
  const server = await openServer({ dataFolder, environment })
  const client = new RegisterClient(server.grpc)
  await client.register(1n, 1n, freshPublicKey())
  client.close()
  await server.end()
  for (const name of ['.', 'store', 'lock', '../head']) chmodSync(join(dataFolder, name), 0o777)
  for (const name of [...FILES, 'development-keys.env']) chmodSync(join(dataFolder, name), 0o666)
  return { dataFolder, environment }
}

function runAsAnother({ dataFolder, environment }: Story, ...args: readonly string[]) {
  const [program = '', ...rest] = [...AS_ANOTHER, process.execPath, ...args]
  return runProgram(program, rest, { environment: { ...environment, CALLSIGN_DATA_DIR: dataFolder } })
}

const script = (name: string) => startedProgram(`scripts/${name}`)

t.test('a file of the store that another user made is named, whichever it is', sized(), async t => {
  const story = await ownedByAll(t)
  for (const name of FILES.slice(0, bySize({ short: 2, long: FILES.length }))) {
    const path = join(story.dataFolder, name)
    chmodSync(path, 0o444)
    const { code, stderr } = await startRefused({ ...story, wrapper: AS_ANOTHER })
    t.equal(code, 1, name)
    t.ok(stderr.includes(path), stderr)
    t.match(stderr, /can't be used .*chown it/)
    const { stdout } = await runAsAnother(story, script('doctor'), '--dev', '--json')
    t.match(stdout, `${path} is not writable for this user`)
    chmodSync(path, 0o666)
  }
})

t.test('a store that can’t be looked into is not taken for an empty one', async t => {
  const story = await ownedByAll(t)
  const store = join(story.dataFolder, 'store')
  chmodSync(store, 0)
  const { code, stderr } = await startRefused({ ...story, wrapper: AS_ANOTHER })
  t.equal(code, 1)
  t.match(stderr, /can't be used .*chown it/)
  t.notMatch(stderr, /newer copy/)
  const { stdout } = await runAsAnother(story, script('doctor'), '--dev', '--json')
  t.match(stdout, /store belongs to user .* chown it/)
  t.match(stdout, /is at 1 entries; ask again once the store can be read/)
  t.notMatch(stdout, /older copy/)
  for (const args of [[script('fsck')], [script('backup'), '--to', join(story.dataFolder, '..', 'copy')]]) {
    const refused = await runAsAnother(story, ...args)
    t.match(refused, { code: 2, stderr: /can't be read .*: do this as the server's user/ })
  }
  chmodSync(store, 0o700)
})

const FILES = ['store/data.mdb', 'lock/lock.mdb', 'store/lock.mdb', 'lock/data.mdb']
/** A user other than the owner of the tests' files, where tests run as root, who may write anywhere. */
const AS_ANOTHER =
  process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
