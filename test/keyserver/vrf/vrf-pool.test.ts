/** The VRF pool: answers of the reference under concurrency, joining, bounds, lost threads, closing. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { VrfPool, type VrfPoolOptions } from '../../../src/keyserver/vrf/vrf-pool.ts'
import { type StartWorker, startVrfWorker } from '../../../src/keyserver/vrf/vrf-thread.ts'
import { hashVrf, proveVrf, vrfInput, vrfPublicKey } from '../../../src/log/vrf.ts'
import { verifyVrf } from '../../../src/log/vrf-verify.ts'
import { builtProgram } from '../../support/programs.ts'

const UINT64_MAX = 2n ** 64n - 1n
const secret = Uint8Array.from({ length: 32 }, (_, index) => (index < 31 ? index + 1 : 0))
const DEFAULTS: VrfPoolOptions = { secret, threads: 1, cacheEntriesMax: 100, queueMax: 100 }

type WorkerKind = keyof typeof BAD_WORKERS

const READY = `const { parentPort } = require('node:worker_threads'); parentPort.postMessage('ready');`
const BAD_WORKERS = {
  silent: `${READY} parentPort.on('message', () => {})`,
  'answers once': `${READY} let answers = 0; parentPort.on('message', words => {
    if (answers++ === 0) parentPort.postMessage(new Uint8Array(words.length / 3 * 144))
  })`,
  'ends at a job': `${READY} parentPort.on('message', () => process.exit(1))`,
  'throws at a job': `${READY} parentPort.on('message', () => { throw new Error('out of luck') })`,
  'never ready': `throw new Error('out of memory')`,
}

t.test('the pool answers what the reference computes, whatever is asked at once', async t => {
  const pool = await startPool(t, { threads: 2 })
  const pairs: [bigint, bigint][] = [
    [0n, 0n],
    [UINT64_MAX, UINT64_MAX],
    [0n, UINT64_MAX],
    [1n, 11n],
    [11n, 1n],
  ]
  for (let userId = 2n ** 53n; pairs.length < 60; userId++) pairs.push([userId, userId % 3n])
  const hashes = pairs.map(([userId, deviceId]) => pool.hash(userId, deviceId))
  const proofs = pairs.toReversed().map(([userId, deviceId]) => pool.prove(userId, deviceId))
  const answers = await Promise.all(proofs)
  let right = 0
  for (const [index, [userId, deviceId]] of pairs.entries()) {
    const input = vrfInput(userId, deviceId)
    const { vrfHash, vrfProof } = answers.at(-1 - index)!
    const expected = hashVrf(secret, input)
    const isRight = isSame(vrfProof, proveVrf(secret, input)) && isSame(vrfHash, expected)
    if (isRight && isSame(await hashes[index]!, expected)) right++
  }
  t.same(pool.publicKey, vrfPublicKey(secret))
  t.equal(right, pairs.length)
})

t.test('jobs of several turns and batches all find their way back to who asked', async t => {
  const pool = await startPool(t, { threads: 2, cacheEntriesMax: 0 })
  const asked: [bigint, Promise<Uint8Array>][] = []
  for (let userId = 0n; userId < 200n; userId++) {
    asked.push([userId, pool.hash(userId, 1n)])
    if (userId % 7n === 0n) await nextTurn()
  }
  const wrong = []
  for (const [userId, hash] of asked) {
    const { vrfHash, vrfProof } = await pool.prove(userId, 1n)
    const verified = userId % 10n === 0n ? verifyVrf(pool.publicKey, vrfInput(userId, 1n), vrfProof) : vrfHash
    if (!isSame(await hash, verified)) wrong.push(userId)
  }
  t.same(wrong, [])
})

t.test('a result is computed once and then comes from memory', async t => {
  const pool = await startPool(t)
  t.equal(pool.cached(1n, 1n), undefined)
  const proven = await pool.prove(1n, 1n)
  t.ok(isSame(await pool.hash(1n, 1n), proven.vrfHash), 'a proof answers for the hash')
  t.ok(isSame((await pool.prove(1n, 1n)).vrfProof, proven.vrfProof))
  t.ok(isSame(pool.cached(1n, 1n)!.vrfProof, proven.vrfProof))
  t.match(pool.figures, { hashesComputed: 0, proofsComputed: 1, cacheHits: 3, cacheMisses: 1 })
})

t.test('a hash in memory is no proof', async t => {
  const pool = await startPool(t)
  await pool.hash(1n, 1n)
  t.equal(pool.cached(1n, 1n), undefined)
  await pool.prove(1n, 1n)
  t.match(pool.figures, { hashesComputed: 1, proofsComputed: 1 })
})

t.test('requests for one input that waits are one job, a proof if anyone wants it', async t => {
  const pool = await startPool(t)
  const [first, proven, last] = await Promise.all([pool.hash(1n, 1n), pool.prove(1n, 1n), pool.hash(1n, 1n)])
  t.ok(isSame(first, proven.vrfHash) && isSame(last, proven.vrfHash))
  t.match(pool.figures, { hashesComputed: 0, proofsComputed: 1, jobsJoined: 2 })
})

t.test('a hash already at a thread is joined by hashes, not by who wants the proof', async t => {
  const pool = await startPool(t)
  const first = pool.hash(1n, 1n)
  await nextTurn()
  t.equal(pool.figures.jobsInFlight, 1)
  const [proven, joined] = await Promise.all([pool.prove(1n, 1n), pool.hash(1n, 1n)])
  t.ok(isSame(await first, proven.vrfHash) && isSame(joined, proven.vrfHash))
  t.match(pool.figures, { hashesComputed: 1, proofsComputed: 1, jobsJoined: 1 })
})

t.test('a hash that was answered does not end the joining of a proof under way', async t => {
  const pool = await startPool(t, { startWorker: firstly(['answers once']), cacheEntriesMax: 0 })
  const hash = pool.hash(1n, 1n)
  await nextTurn()
  pool.prove(1n, 1n).catch(() => {})
  await hash
  pool.prove(1n, 1n).catch(() => {})
  t.equal(pool.figures.jobsJoined, 1)
})

t.test('without a cache an answered job is not joined: the next request is computed', async t => {
  const pool = await startPool(t, { cacheEntriesMax: 0 })
  await pool.hash(1n, 1n)
  await pool.hash(1n, 1n)
  t.match(pool.figures, { hashesComputed: 2, jobsJoined: 0 })
})

t.test('the cache is bounded and keeps the inputs used last', async t => {
  const pool = await startPool(t, { cacheEntriesMax: 3 })
  for (const userId of [1n, 2n, 3n, 1n, 4n]) await pool.prove(userId, 1n)
  t.equal(pool.figures.cacheEntries, 3)
  t.equal(pool.cached(2n, 1n), undefined)
  t.ok(pool.cached(1n, 1n))
})

t.test('a full queue refuses with OVERLOADED and goes on with what it took', async t => {
  const pool = await startPool(t, { queueMax: 2 })
  const taken = [pool.hash(1n, 1n), pool.hash(2n, 1n)]
  await t.rejects(pool.hash(3n, 1n), { code: 'OVERLOADED' })
  const joined = pool.hash(2n, 1n)
  await Promise.all([...taken, joined])
  t.equal((await pool.hash(3n, 1n)).length, 64)
})

t.test('a thread takes two batches, the rest waits where any thread can take it', async t => {
  const pool = await startPool(t, { startWorker: firstly(['silent', 'silent']), threads: 2, queueMax: 200 })
  const unanswered = Array.from({ length: 200 }, (_, userId) => pool.hash(BigInt(userId), 1n))
  for (const hash of unanswered) hash.catch(() => {})
  await nextTurn()
  t.match(pool.figures, { jobsInFlight: 128, jobsQueued: 72 })
})

t.test('few jobs are shared out evenly', async t => {
  const sent: number[][] = []
  const pool = await startPool(t, { startWorker: counted(startVrfWorker, sent), threads: 2 })
  await Promise.all(Array.from({ length: 20 }, (_, userId) => pool.hash(BigInt(userId), 1n)))
  t.same(sent, [[10], [10]])
})

t.test('a job goes to the thread with the fewest', async t => {
  const sent: number[][] = []
  const pool = await startPool(t, { startWorker: counted(firstly(['silent', 'silent']), sent), threads: 2 })
  for (let userId = 0n; userId < 4n; userId++) {
    pool.hash(userId, 1n).catch(() => {})
    await nextTurn()
  }
  t.same(sent, [
    [1, 1],
    [1, 1],
  ])
})

t.test('the jobs of a thread that ends are done by its replacement', async t => {
  const pool = await startPool(t, { startWorker: firstly(['ends at a job']) })
  const [vrfHash, proven] = await Promise.all([pool.hash(1n, 1n), pool.prove(2n, 1n)])
  t.ok(isSame(vrfHash, hashVrf(secret, vrfInput(1n, 1n))))
  t.ok(isSame(proven.vrfProof, proveVrf(secret, vrfInput(2n, 1n))))
  t.match(pool.figures, { threadsReady: 1, threadsReplaced: 1, jobsInFlight: 0 })
})

t.test('a thread that is terminated without a job is replaced', async t => {
  const workers: Worker[] = []
  const startWorker: StartWorker = key => {
    const worker = startVrfWorker(key)
    workers.push(worker)
    return worker
  }
  const pool = await startPool(t, { startWorker })
  await workers[0]!.terminate()
  t.equal((await pool.hash(1n, 1n)).length, 64)
  t.equal(workers.length, 2)
})

t.test('a job that two threads did not survive is rejected with INTERNAL, and the pool goes on', async t => {
  const pool = await startPool(t, { startWorker: firstly(['throws at a job', 'ends at a job']) })
  await t.rejects(pool.hash(1n, 1n), { code: 'INTERNAL' })
  t.ok(isSame(await pool.hash(1n, 1n), hashVrf(secret, vrfInput(1n, 1n))))
  t.equal(pool.figures.threadsReplaced, 2)
})

t.test('when no replacement starts, requests are rejected with INTERNAL', async t => {
  const failing: WorkerKind[] = ['never ready', 'never ready', 'never ready']
  const pool = await startPool(t, { startWorker: firstly(['ends at a job', ...failing]) })
  await t.rejects(pool.hash(1n, 1n), { code: 'INTERNAL' })
  await t.rejects(pool.prove(2n, 1n), { code: 'INTERNAL' })
  t.match(pool.figures, { threadsReady: 0, threadsReplaced: 3, jobsQueued: 0 })
})

t.test('a pool with one thread that does not start is refused and leaves none behind', async t => {
  const workers: Worker[] = []
  const start = firstly(['silent', 'never ready'])
  const startWorker: StartWorker = secret => {
    const worker = start(secret)
    workers.push(worker)
    return worker
  }
  await t.rejects(VrfPool.start({ ...DEFAULTS, threads: 2, startWorker }), { code: 'INTERNAL' })
  t.same(
    workers.map(worker => worker.threadId),
    [-1, -1],
  )
})

t.test('the caller may wipe its secret, also before a thread is replaced', async t => {
  const own = Uint8Array.from(secret)
  const pool = await startPool(t, { secret: own, startWorker: firstly(['ends at a job']) })
  own.fill(0)
  t.ok(isSame(await pool.hash(1n, 1n), hashVrf(secret, vrfInput(1n, 1n))))
})

t.test('a bad secret refuses at start and is not in the error', async t => {
  for (const bad of [new Uint8Array(32), new Uint8Array(32).fill(0xee), secret.subarray(1)]) {
    const error = await VrfPool.start({ ...DEFAULTS, secret: bad }).catch((error: Error) => error)
    t.match(error, { code: 'KEY_INVALID' })
    t.notMatch(String((error as Error).stack), Buffer.from(bad).toString('hex'))
    t.notMatch(String((error as Error).stack), String(bad))
  }
})

t.test('an id that is not a uint64 is rejected', async t => {
  const pool = await startPool(t)
  await t.rejects(pool.hash(2n ** 64n, 1n))
  await t.rejects(pool.prove(1n, -1n))
  t.match(pool.figures, { jobsQueued: 0, cacheMisses: 0 })
})

t.test('closing rejects waiting and running jobs, and ends the threads', async t => {
  const pool = await startPool(t, { startWorker: firstly(['silent']) })
  const unanswered = Array.from({ length: 50 }, (_, userId) => pool.prove(BigInt(userId), 1n))
  const settled = Promise.allSettled(unanswered)
  await nextTurn()
  await pool.close()
  const codes = (await settled).map(outcome => outcome.status === 'rejected' && outcome.reason.code)
  t.same(new Set(codes), new Set(['LOG_UNAVAILABLE']))
  t.match(pool.figures, { threadsReady: 0, threadsReplaced: 0, jobsQueued: 0, jobsInFlight: 0 })
})

t.test('closing rejects a hash under way that a proof has taken the place of', async t => {
  const pool = await startPool(t, { startWorker: firstly(['silent']) })
  const hash = pool.hash(1n, 1n)
  await nextTurn()
  const settled = Promise.allSettled([hash, pool.prove(1n, 1n)])
  await pool.close()
  t.match(await settled, [{ reason: { code: 'LOG_UNAVAILABLE' } }, { reason: { code: 'LOG_UNAVAILABLE' } }])
})

t.test('a closed pool refuses requests and closes again without complaint', async t => {
  const pool = await startPool(t)
  await pool.close()
  await t.rejects(pool.hash(1n, 1n), { code: 'LOG_UNAVAILABLE' })
  await t.rejects(pool.prove(1n, 1n), { code: 'LOG_UNAVAILABLE' })
  await pool.close()
})

t.test('a pool holds its process up for an answer and no longer', async t => {
  const pool = builtProgram('src/keyserver/vrf/vrf-pool')
  const start = `import { VrfPool } from ${JSON.stringify(pool)}
    const pool = await VrfPool.start({ secret: new Uint8Array(32).fill(1), threads: 2, cacheEntriesMax: 1, queueMax: 1 })\n`
  const folder = t.testdir({
    'answer.mjs': `${start} console.log((await pool.hash(1n, 1n)).length)`,
    'failure.mjs': `${start} pool.hash(1n, 1n); throw new Error('failed')`,
  })
  const run = (file: string) => promisify(execFile)(process.execPath, [join(folder, file)])
  t.match(await run('answer.mjs'), { stdout: '64\n' })
  await t.rejects(run('failure.mjs'), { code: 1, stderr: /Error: failed/ })
})

async function startPool(t: Test, options: Partial<VrfPoolOptions> = {}): Promise<VrfPool> {
  const pool = await VrfPool.start({ ...DEFAULTS, queueMax: 1000, ...options })
  t.teardown(() => pool.close())
  return pool
}

/** The first workers are bad in these ways, every later one is real. */
function firstly(kinds: readonly WorkerKind[]): StartWorker {
  let started = 0
  return key => {
    const kind = kinds[started++]
    return kind === undefined ? startVrfWorker(key) : new Worker(BAD_WORKERS[kind], { eval: true })
  }
}

/** Notes in `sent`, for each worker started, how many jobs each of its messages held. */
function counted(start: StartWorker, sent: number[][]): StartWorker {
  return secret => {
    const worker = start(secret)
    const jobs: number[] = []
    sent.push(jobs)
    const postMessage = worker.postMessage.bind(worker)
    worker.postMessage = (words: BigUint64Array) => {
      jobs.push(words.length / 3)
      postMessage(words)
    }
    return worker
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}
