/** An honest log, audited again and again as it grows. */

import { existsSync, readFileSync, statSync } from 'node:fs'
import t from 'tap'
import { crawl } from '../../scripts/audit/crawl.ts'
import { HttpSource } from '../../scripts/audit/http-source.ts'
import { LogReader } from '../../scripts/audit/log-reader.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { entriesOf, integrate, logFilesOf, serveFiles } from '../support/served-log.ts'
import { tilesBetween } from '../support/tiles.ts'

t.test('every file of the signed tree is asked for once, and the verdict is clean', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(700)))
  const { verdict, findings, of } = await audit({ url: server.url, stateFile: newStateFile(t) })
  t.equal(verdict, 0)
  t.strictSame(server.requests.toSorted(), [...server.files.keys()].toSorted())
  t.strictSame(
    findings.map(({ check, ok }) => `${check} ${ok}`),
    ['checkpoint true', 'fetch true', 'entries true', 'tiles true', 'state true'],
  )
  t.match(of('checkpoint'), { treeSize: '700', rootHash: /^[A-Za-z0-9+/]{43}=$/ })
})

t.test('a log of any size is clean, and stays so as it grows by any number of entries', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const entries = entriesOf(1_400)
  const server = await serveFiles(t, logFilesOf([]))
  const stateFile = newStateFile(t)
  const sizes = [0, 1, 2, 255, 256, 257, 511, 512, 513]
  while (sizes.at(-1)! < 1_100) sizes.push(sizes.at(-1)! + Math.floor(random() * 90))
  const unclean: number[] = []
  for (const size of sizes) {
    server.files = logFilesOf(entries.slice(0, size))
    const [grown, whole] = [
      await audit({ url: server.url, stateFile }),
      await audit({ url: server.url, stateFile: newStateFile(t) }),
    ]
    if (grown.verdict !== 0 || whole.verdict !== 0) unclean.push(size)
  }
  t.strictSame(unclean, [], `seed ${seed}`)
})

t.test('the next run goes on where the last one stopped', async t => {
  const entries = entriesOf(1_200)
  const server = await serveFiles(t, logFilesOf(entries.slice(0, 600)))
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  server.files = logFilesOf(entries)
  server.requests.length = 0
  const { verdict, of } = await audit({ url: server.url, stateFile })
  t.equal(verdict, 0)
  const bundles = server.requests.filter(path => path.startsWith('tile/entries'))
  t.strictSame(bundles, ['tile/entries/002', 'tile/entries/003', 'tile/entries/004.p/176'])
  t.match(of('entries'), { detail: /^600 entries from 600 on/ })
  t.match(of('consistency'), { ok: true })
})

t.test('an unchanged log costs one request, and its state file is not touched', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(300)))
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  const before = readFileSync(stateFile, 'utf8')
  const { ino } = statSync(stateFile)
  server.requests.length = 0
  t.equal((await audit({ url: server.url, stateFile })).verdict, 0)
  t.strictSame(server.requests, ['checkpoint'])
  t.equal(readFileSync(stateFile, 'utf8'), before)
  t.equal(statSync(stateFile).ino, ino)
})

t.test('every verified checkpoint is kept: time, size, root and note', async t => {
  const server = await serveFiles(t, logFilesOf([]))
  const stateFile = newStateFile(t)
  for (const size of [0, 5, 300]) {
    server.files = logFilesOf(entriesOf(size))
    await audit({ url: server.url, stateFile, nowMs: () => Date.UTC(2026, 0, 1 + size) })
  }
  const { checkpoints } = JSON.parse(readFileSync(stateFile, 'utf8'))
  t.match(checkpoints, [
    { treeSize: 0, verifiedAt: '2026-01-01T00:00:00.000Z' },
    { treeSize: 5, verifiedAt: '2026-01-06T00:00:00.000Z' },
    { treeSize: 300, note: Buffer.from(server.files.get('checkpoint')!).toString() },
  ])
})

t.test(
  'a log of three levels of tiles is read to its end, and an unfinished crawl is taken up again',
  async t => {
    const size = 66_000
    const files = logFilesOf(entriesOf(size))
    t.ok(files.has('tile/2/000.p/1'), 'it has three levels')
    const server = await serveFiles(t, files)
    const stateFile = newStateFile(t)
    // The last bundle is not to be had, so the first run checks everything before it and then gives up.
    server.misbehave = (path, response) =>
      path === 'tile/entries/257.p/208' && !!response.writeHead(503, { 'retry-after': '60' }).end()
    const first = await audit({ url: server.url, stateFile })
    t.equal(first.verdict, 2)
    t.notOk(existsSync(stateFile))
    server.misbehave = () => false
    server.requests.length = 0
    const second = await audit({ url: server.url, stateFile })
    t.equal(second.verdict, 0, JSON.stringify(second.failures))
    t.match(second.of('entries'), { detail: /^464 entries from 65536 on/ })
    t.ok(server.requests.length < 20, `${server.requests.length} requests`)
    t.notOk(existsSync(`${stateFile}.progress`), 'of no more use')
  },
)

t.test('the crawl reads so many files ahead and no more, in any order of arrival', async t => {
  const files = logFilesOf(entriesOf(2_000))
  const filesInAll = tilesBetween(0, 2_000).length
  const random = randomFrom(seedOf())
  // Answers are held back until as many as allowed are asked for, and given in another order.
  let waiting: (() => void)[] = []
  const mostWaiting: number[] = []
  const server = await serveFiles(t, files, (path, response) => {
    waiting.push(() => response.end(files.get(path)))
    if (waiting.length < 8 && server.requests.length < filesInAll) return true
    mostWaiting.push(waiting.length)
    const shuffled = waiting.map(answer => ({ answer, at: random() })).sort((a, b) => a.at - b.at)
    waiting = []
    for (const { answer } of shuffled) answer()
    return true
  })
  const source = new HttpSource(new URL(server.url), 20, new AbortController().signal)
  t.teardown(() => source.close())
  const progress: number[] = []
  await crawl(new LogReader(source), { treeSize: 0 }, integrate(entriesOf(2_000)), {
    filesAtOnce: 8,
    onProgress: size => progress.push(size),
  })
  t.equal(server.requests.length, filesInAll)
  t.strictSame(mostWaiting, [8, 8, 1])
  t.strictSame(progress, [0, 256, 512, 768, 1024, 1280, 1536, 1792])
})
