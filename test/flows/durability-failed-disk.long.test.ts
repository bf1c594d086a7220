/**
 * A disk that fails while the store is written: the server ends on purpose, with a line that says why, and the next one
 * has everything that was acknowledged. strace fails the calls. `CALLSIGN_DISK_FAULTS` sets the number of faults of each
 * kind (1), `CALLSIGN_SEED` replays them. A full disk: `durability-disk-full.test.ts`.
 */

import { join } from 'node:path'
import t from 'tap'
import { cannotTrace, faultCommand, faultsIn } from '../support/disk-trace.ts'
import { isHeapOverrun } from '../support/heap-overrun.ts'
import { KillLoad } from '../support/kill-load.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { startRefused, startServer } from '../support/server.ts'
import { auditStore } from '../support/store-audit.ts'

const FAULTS = Number(process.env.CALLSIGN_DISK_FAULTS ?? 1)
/** Calls of one server thread: behind those of the start, which has no clients yet. */
const CALLS_BEFORE_MIN = 12
const CALLS_BEFORE_MAX = 42
const WRITES = ['pwrite64', 'pwritev', 'writev', 'write']
const KINDS = [
  { what: 'a write', calls: WRITES, error: 'EIO' },
  { what: 'a write to a disk that is read-only by now', calls: WRITES, error: 'EROFS' },
  { what: 'a sync', calls: ['fdatasync'], error: 'EIO' },
]

for (const { what, calls, error } of KINDS) {
  t.test(
    `${what} that fails with ${error} ends the server in words, and nothing acknowledged is lost`,
    { skip: cannotTrace() },
    async t => {
      const seed = seedOf()
      const random = randomFrom(seed)
      const folder = t.testdir()
      const dataFolder = join(folder, 'data')
      const load = await KillLoad.start(dataFolder)
      t.teardown(() => load.end())
      for (let fault = 0; fault < FAULTS; fault++) {
        await load.end()
        const trace = join(folder, `trace-${fault}`)
        const when = `${CALLS_BEFORE_MIN + Math.floor(random() * (CALLS_BEFORE_MAX - CALLS_BEFORE_MIN))}+9`
        const path = join(dataFolder, 'store', 'data.mdb')
        const disk = { to: trace, path, calls, error, when }
        const { stderr } = await load.startServer({ wrapper: faultCommand(disk) })
        const at = `seed ${seed}, when=${when}`
        const end = await load.runUntilEnded()
        if (isHeapOverrun(end, stderr())) {
          t.comment(`${at}: the heap of lmdb 3.5.6 ended it first`)
        } else {
          t.equal(end, 1, `${at}: it ends on purpose\n${stderr().slice(-500)}`)
          t.match(stderr(), fatalLine(error), at)
          t.match(stderr(), new RegExp(`^callsign: the store could not write \\(${error}\\): `, 'm'), at)
        }
        // A change that another thread had begun goes on until the server ends, and is never acknowledged.
        const threads = faultsIn(trace)
        t.not(threads.length, 0, `${at}: there was a fault`)
        t.equal(new Set(threads).size, threads.length, `${at}: and no thread uses the store again`)
        const { faults, counts } = await auditStore(dataFolder)
        t.same(faults, [], `${at}: whole are ${JSON.stringify(counts)}`)
        await load.startServer()
        t.same(await load.lost(), [], `${at}: ${JSON.stringify(load.counts)}`)
        await load.hangUp()
      }
    },
  )
}

for (const error of ['EIO', 'EROFS']) {
  t.test(`a start whose sync fails with ${error} ends in words`, { skip: cannotTrace() }, async t => {
    const folder = t.testdir()
    const dataFolder = join(folder, 'data')
    await (await startServer({ dataFolder })).end()
    const path = join(dataFolder, 'store')
    const wrapper = faultCommand({ to: join(folder, 'trace'), path, calls: ['fsync'], error, when: '1+' })
    const { code, stderr } = await startRefused({ dataFolder, wrapper })
    t.equal(code, 1)
    const begin = `callsign: the store could not write (${error}): a sync of ${path} failed`
    t.ok(
      stderr.split('\n').some(line => line.startsWith(begin)),
      stderr,
    )
  })
}

/** The last line of the log. */
function fatalLine(error: string): RegExp {
  return new RegExp(`^{"level":"fatal",.*"event":"fatal",.*the store could not write \\(${error}\\)`, 'm')
}
