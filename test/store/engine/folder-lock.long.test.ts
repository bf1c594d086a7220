/** Two containers on one data folder: each has a process 1, which LMDB alone does not tell apart. */

import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { builtProgram, spawnBound } from '../../support/programs.ts'

const NAMESPACES = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--uts', '--fork', '--kill-child'],
]
const works = spawnSync('unshare', [...NAMESPACES, 'hostname', 'one']).status === 0
const skip = works ? false : 'the kernel lets this user make no namespaces, or there is no unshare'

interface Container {
  readonly process: ChildProcess
  /** Its next line. */
  next(): Promise<string>
}

/** Its process 1 opens the store. */
async function startContainer(t: Test, host: string, folder: string): Promise<Container> {
  const command = `hostname ${host}; exec "$0" "$@"`
  const program = [process.execPath, builtProgram('test/support/store-holder'), folder]
  const child = spawnBound('unshare', [...NAMESPACES, 'sh', '-c', command, ...program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => (await lines.next()).value ?? 'ended'
  await next()
  child.stdin.write('go\n')
  return { process: child, next }
}

async function kill({ process }: Container): Promise<void> {
  process.kill('SIGKILL')
  await once(process, 'exit')
}

t.test('two containers on one data folder', { skip }, async t => {
  t.test('the second says that it waits, and is refused while the first runs', async t => {
    const folder = t.testdir()
    const first = await startContainer(t, 'one', folder)
    t.equal(await first.next(), 'open')
    const second = await startContainer(t, 'two', folder)
    t.match(
      await second.next(),
      /^waits: .* in use by process 1 of another container on host one since 20.*10 s at most$/,
    )
    t.match(
      await second.next(),
      /^refused STORE_UNAVAILABLE: .* in use by process 1 of another container on host one since 20\S+Z$/,
    )
    const third = await startContainer(t, 'three', folder)
    t.match(await third.next(), /^waits/)
    first.process.stdin!.end()
    t.equal(await third.next(), 'open', 'it goes on when the first has ended')
    await kill(third)
  })

  t.test('a killed container leaves no lock behind', async t => {
    const folder = t.testdir()
    const killed = await startContainer(t, 'one', folder)
    t.equal(await killed.next(), 'open')
    await kill(killed)
    const again = await startContainer(t, 'one', folder)
    t.equal(await again.next(), 'open', 'as its restart')
    await kill(again)
    const moved = await startContainer(t, 'two', folder)
    t.equal(await moved.next(), 'open', 'or as another one')
  })
})
