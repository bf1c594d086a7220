/** A witness that rebuilds an index before it cosigns: honest leaves are cosigned, and no other. */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IndexRebuild } from '../../scripts/witness/index-rebuild.ts'
import { parseIndexedLogs, parseLogList } from '../../scripts/witness/log-list.ts'
import { Witness } from '../../scripts/witness/witness.ts'
import { formatAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { formatVerifierKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { runScript } from '../support/commands.ts'
import { entryUnder, INDEX_SIGNER, IndexedLog, keysOf } from '../support/indexed-log.ts'
import { NaiveTree, naiveLeafHash } from '../support/naive-tree.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { changeByte, type FileServer, SIGNER, serveFiles } from '../support/served-log.ts'
import { bySize } from '../support/size.ts'
import { type RunningWitness, startWitness } from '../support/witness-process.ts'

const [VKEY, INDEX_VKEY] = [SIGNER, INDEX_SIGNER].map(formatVerifierKey) as [string, string]
const KEY = signerKeyFromSeed('witness.example', new Uint8Array(32).fill(4))

function listOf(url: string): string {
  return `log ${VKEY} ${url}\nlog ${INDEX_VKEY}\nquorum none\n`
}

/** The body of a request for the output log, from a size that was cosigned to its newest. */
function requestOf(log: IndexedLog, oldSize: number, size = log.leaves.length): string {
  const tree = new NaiveTree(log.leaves.slice(0, size).map(naiveLeafHash))
  const proof = oldSize === 0 || oldSize === size ? [] : tree.consistency(oldSize, size)
  return formatAddCheckpoint({ oldSize, proof, note: log.indexCheckpoint(size) })
}

/** The same for the log itself. */
function logRequestOf(log: IndexedLog, oldSize: number): string {
  const tree = new NaiveTree(log.entries.map(naiveLeafHash))
  const proof = oldSize === 0 ? [] : tree.consistency(oldSize, log.entries.length)
  return formatAddCheckpoint({ oldSize, proof, note: log.checkpoint() })
}

interface Opened {
  ask(body: string): Promise<{
    readonly kind: string
    readonly status?: number
    readonly reason?: string
    readonly treeSize?: number
  }>
  close(): Promise<void>
}

/** A witness in the test's process. */
function openWitness(t: Test, server: FileServer, folder = t.testdir(), answerMs?: number): Opened {
  const store = LmdbStore.open(join(folder, 'data'))
  const stop = new AbortController()
  const list = listOf(server.url)
  const indexes = new Map(
    parseIndexedLogs(list).map(each => [
      each.index.origin,
      new IndexRebuild(store, each, stop.signal, () => undefined, answerMs),
    ]),
  )
  const witness = new Witness({ store, key: KEY, logs: parseLogList(list), indexes, nowMs: Date.now })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= (async () => {
      stop.abort()
      await Promise.all([...indexes.values()].map(each => each.ended))
      await store.close()
    })()
    return closed
  }
  t.teardown(close)
  return { ask: body => witness.addCheckpoint(body), close }
}

t.test('an honest index is cosigned leaf by leaf, and entries are read once', async t => {
  const log = new IndexedLog([]).addLeaf()
  const server = await serveFiles(t, log.files)
  const folder = t.testdir()
  let witness = openWitness(t, server, folder)
  const random = randomFrom(seedOf())
  for (let cosigned = 0; cosigned < 12; ) {
    t.match(await witness.ask(requestOf(log, cosigned)), { kind: 'cosigned' })
    t.match(await witness.ask(requestOf(log, log.leaves.length)), { kind: 'cosigned' }, 'and again')
    cosigned = log.leaves.length
    log.entries.push(...keysOf(Math.floor(random() * 200), log.entries.length))
    log.addLeaf()
    if (random() < 0.5) log.addLeaf()
    server.files = log.files
    if (random() > 0.3) continue
    await witness.close()
    witness = openWitness(t, server, folder)
  }
  t.match(await witness.ask(requestOf(log, await cosignedLast())), { kind: 'cosigned' })
  const { length } = log.entries
  log.entries.push(...keysOf(600, length))
  server.files = log.addLeaf().files
  server.requests.length = 0
  await witness.close()
  witness = openWitness(t, server, folder)
  t.match(await witness.ask(requestOf(log, await cosignedLast())), { kind: 'cosigned' })
  const firstBundle = `tile/entries/${String(Math.floor(length / 256)).padStart(3, '0')}`
  const bundles = server.requests.filter(path => path.startsWith('tile/entries/'))
  t.ok(
    bundles.every(path => path >= firstBundle),
    bundles.join(),
  )

  async function cosignedLast(): Promise<number> {
    return (await witness.ask(requestOf(log, 0))).treeSize!
  }
})

const stranger = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))

/** Each makes one leaf, or several, of an index of 300 entries that has one good leaf. */
const lies: Readonly<Record<string, (log: IndexedLog) => unknown>> = {
  'an entry left out': log => log.addLeaf({ mapOf: log.entries.slice(0, -1) }),
  'one key changed': log => log.addLeaf({ mapOf: log.entries.with(100, entryUnder(9_999, 1)) }),
  'a wrong leaf with good ones behind it': log =>
    log.addLeaf({ size: 250, mapOf: log.entries }).addLeaf().addLeaf(),
  'a smaller tree than before': log => log.addLeaf().addLeaf({ size: 200 }),
  'a smaller tree in between': log => log.addLeaf({ size: 50 }).addLeaf(),
  'another form': log => log.leaves.push(Buffer.from('{}')),
  'another history of the log': log =>
    log.addLeaf({ checkpoint: new IndexedLog(keysOf(300, 1)).checkpoint() }),
}

for (const [name, lie] of Object.entries(lies))
  t.test(`${name} is not cosigned, and the log is`, async t => {
    const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 })
    const server = await serveFiles(t, log.files)
    const witness = openWitness(t, server)
    t.match(await witness.ask(requestOf(log, 0)), { kind: 'cosigned' })
    t.match(await witness.ask(logRequestOf(log, 0)), { kind: 'cosigned' })
    lie(log)
    server.files = log.files
    for (const _ of ['once', 'again']) {
      const answer = await witness.ask(requestOf(log, 1))
      t.match(answer, { kind: 'refused', status: 422 }, answer.reason ?? '')
    }
    log.entries.push(...keysOf(10, 300))
    t.match(await witness.ask(logRequestOf(log, 300)), { kind: 'cosigned' })
  })

t.test('a leaf of a log key that is not listed is not cosigned, and is no conflict', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 })
  log.addLeaf({ checkpoint: new IndexedLog(log.entries, { signer: stranger }).checkpoint() })
  const witness = openWitness(t, await serveFiles(t, log.files))
  // Not 422: a log's server takes that for a conflict, and holds its index.
  const answer = await witness.ask(requestOf(log, 0))
  t.match(answer, { kind: 'refused', status: 403, reason: /leaf 1 has no signature of a key of the log/ })
})

t.test('a log that was cosigned as another is not the one of the leaves', async t => {
  const log = new IndexedLog(keysOf(300))
  const server = await serveFiles(t, log.files)
  const witness = openWitness(t, server)
  t.match(await witness.ask(logRequestOf(log, 0)), { kind: 'cosigned' })
  // All that is served now is of another history, whole in itself.
  const fork = new IndexedLog([...keysOf(200), ...keysOf(200, 1_000)]).addLeaf()
  server.files = fork.files
  t.match(await witness.ask(requestOf(fork, 0)), { kind: 'refused', status: 422, reason: /another history/ })
})

t.test('what can’t be read is asked for again, and a fork is refused without reading', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf({ size: 100 }).addLeaf()
  const server = await serveFiles(t, new Map())
  const witness = openWitness(t, server)
  t.match(await witness.ask(requestOf(log, 0)), { kind: 'refused', status: 503 })
  server.files = log.files
  const garbled = log.files.get('index/tile/entries/000.p/2')!.slice()
  garbled[30]! ^= 1
  server.files.set('index/tile/entries/000.p/2', garbled)
  t.match(await witness.ask(requestOf(log, 0)), { kind: 'refused', status: 503 })
  server.files = log.files
  changeByte(server.files, 'tile/entries/001.p/44', 20)
  t.match(await witness.ask(requestOf(log, 0)), { kind: 'refused', status: 503 })
  server.files = log.files
  server.files.set('tile/entries/001.p/44', Buffer.alloc(10))
  t.match(await witness.ask(requestOf(log, 0)), { kind: 'refused', status: 503 })
  server.files = log.files
  t.match(await witness.ask(requestOf(log, 0)), { kind: 'cosigned' })
  const fork = log.fork()
  fork.leaves[1] = fork.leaves[0]!
  server.requests.length = 0
  t.match(await witness.ask(requestOf(fork.addLeaf(), 2)), { kind: 'refused', status: 422 })
  t.match(await witness.ask(requestOf(log, 1)), { kind: 'conflict', treeSize: 2 })
  t.same(server.requests, [])
})

t.test('damaged rows of the witness’s own lead to no refusal', async t => {
  const log = new IndexedLog(keysOf(300)).addLeaf()
  const server = await serveFiles(t, log.files)
  const folder = t.testdir()
  const first = openWitness(t, server, folder)
  t.match(await first.ask(requestOf(log, 0)), { kind: 'cosigned' })
  await first.close()
  // Those of another log take their place.
  const store = LmdbStore.open(join(folder, 'data'))
  const table = { name: 'rebuilt-rows', codec: 'bytes', keys: 'bytes', shapes: [] } as const
  await store.change(change => {
    const rows = [...change.range<Uint8Array, Uint8Array>(table)]
    for (const { key, value } of rows.slice(1)) {
      const damaged = Uint8Array.from(value)
      damaged[damaged.length - 1]! ^= 1
      change.put<Uint8Array, Uint8Array>(table, key, damaged)
    }
  })
  await store.close()
  log.entries.push(...keysOf(100, 300))
  server.files = log.addLeaf().files
  t.match(await openWitness(t, server, folder).ask(requestOf(log, 1)), { kind: 'cosigned' })
})

t.test('during a rebuild the index is refused with 503, and the log is cosigned', async t => {
  const log = new IndexedLog(keysOf(600)).addLeaf()
  const server = await serveFiles(t, log.files)
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  server.misbehave = (path, response) => {
    if (path !== 'tile/entries/001') return false
    void held.then(() => response.end(server.files.get(path)))
    return true
  }
  const witness = openWitness(t, server, t.testdir(), 20)
  const early = witness.ask(requestOf(log, 0))
  t.match(await witness.ask(logRequestOf(log, 0)), { kind: 'cosigned' })
  t.match(await early, { kind: 'refused', status: 503, reason: /is being rebuilt/ })
  release()
  server.misbehave = () => false
  // It was read on, and is done soon.
  while ((await witness.ask(requestOf(log, 0))).kind !== 'cosigned');
})

t.test('killed at any moment, it goes on from its map, and cosigns right leaves only', async t => {
  const log = new IndexedLog(keysOf(500)).addLeaf()
  const server = await serveFiles(t, log.files)
  const folder = t.testdir()
  const start = () =>
    startWitness(t, {
      ...{ folder, name: 'witness.example', logs: [], list: listOf(server.url) },
      isRebuilding: true,
    })
  const random = randomFrom(seedOf())
  let cosigned = 0
  for (let round = 0; round < bySize({ short: 2, long: 8 }); round++) {
    const witness = await start()
    const answered = post(witness, requestOf(log, cosigned)).catch(() => undefined)
    const killAt = Math.floor(random() * 12)
    server.misbehave = path => {
      // At one of the files that it asks for, or when it has them.
      if (path.includes('tile/') && server.requests.length > killAt) void witness.end('SIGKILL')
      return false
    }
    server.requests.length = 0
    await answered
    await witness.end('SIGKILL')
    server.misbehave = () => false
    const again = await start()
    const lie = log.fork()
    lie.leaves.pop()
    server.files = lie.addLeaf({ mapOf: [] }).files
    const lied = await post(again, requestOf(lie, cosigned))
    t.ok([409, 422].includes(lied.status), `${lied.status} ${lied.text}`)
    server.files = log.files
    const right = await post(again, requestOf(log, lied.status === 409 ? log.leaves.length : cosigned))
    t.equal(right.status, 200, right.text)
    await again.end()
    cosigned = log.leaves.length
    log.entries.push(...keysOf(300, log.entries.length))
    server.files = log.addLeaf().files
  }
})

t.test('--index needs a log with its index, and an address of one of them', async t => {
  const urls = (list: string) =>
    parseIndexedLogs(list).map(({ log, index }) => [log.url.href, index.url.href])
  const ends = 'quorum none\n'
  const both = ['https://kt.example/log', 'https://kt.example/log/index']
  t.same(urls(`log ${VKEY} https://kt.example/log/\nlog ${INDEX_VKEY}\n${ends}`), [both])
  t.same(urls(`log ${VKEY}\nlog ${INDEX_VKEY} https://kt.example/log/index\n${ends}`), [both])
  t.same(urls(`log ${VKEY} https://kt.example/log\nlog ${INDEX_VKEY} https://x.example\n${ends}`), [
    ['https://kt.example/log', 'https://x.example/'],
  ])
  for (const list of [
    `log ${VKEY}\nlog ${INDEX_VKEY}\n${ends}`,
    `log ${VKEY} https://kt.example\n${ends}`,
    `log ${INDEX_VKEY} https://kt.example\n${ends}`,
    `logs/v0\nvkey ${VKEY}\nvkey ${INDEX_VKEY}\n`,
  ])
    t.same(urls(list), [], list)
  t.throws(
    () => urls(`log ${VKEY} ftp://kt.example\nlog ${INDEX_VKEY}\n${ends}`),
    /not the http or https prefix/,
  )
  const folder = t.testdir({ logs: `log ${VKEY}\n${ends}` })
  const flags = ['--key', join(folder, 'key'), '--name', 'w.example', '--data-dir', join(folder, 'data')]
  const refused = await runScript('witness', [...flags, '--logs', join(folder, 'logs'), '--index'])
  t.match(refused, { code: 2, stderr: /no log with its index/ })
})

async function post({ http }: RunningWitness, body: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${http}/add-checkpoint`, { method: 'POST', body })
  return { status: answer.status, text: await answer.text() }
}
