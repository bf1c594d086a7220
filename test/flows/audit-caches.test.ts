/** The auditor behind caches that are late, garble or answer 404: it waits and then alarms, and makes no accusation. */

import { cpSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { audit, newStateFile, openAuditor } from '../support/audit.ts'
import {
  changeByte,
  entriesOf,
  integrate,
  type LogFiles,
  logFilesOf,
  SIGNER,
  serveFiles,
  setCheckpoint,
} from '../support/served-log.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const at310 = logFilesOf(entriesOf(310))
const at370 = logFilesOf(entriesOf(370))

/** The files of a log, with the tiles that it had before it grew. */
function grown(now: LogFiles, before: LogFiles): LogFiles {
  return new Map([...before, ...now])
}

function without(files: LogFiles, ...paths: readonly string[]): LogFiles {
  const rest = new Map(files)
  for (const path of paths) if (!rest.delete(path)) throw new Error(`${path} is not there`)
  return rest
}

function copyOf(t: Test, stateFile: string): string {
  const copy = newStateFile(t)
  cpSync(stateFile, copy)
  return copy
}

function pendingBeside(stateFile: string): string[] {
  return readdirSync(dirname(stateFile)).filter(name => name.includes('.pending-'))
}

t.test('edges of different age in turn: stale, again and again, and who follows goes on', async t => {
  const server = await serveFiles(t, at310)
  const edges = [at370, grown(at310, at370)]
  let looks = 0
  server.misbehave = path => {
    if (path === 'checkpoint') server.files = edges[looks++ % 2]!
    return false
  }
  const stop = new AbortController()
  const { auditor, findings } = openAuditor({
    url: server.url,
    stateFile: newStateFile(t),
    stop: stop.signal,
  })
  t.teardown(() => auditor.close())
  const followed = auditor.follow(1)
  const stale = () => findings.filter(({ check }) => check === 'stale')
  while (stale().length < 3) await nextTurn()
  stop.abort()
  await t.rejects(followed, { name: 'AbortError' }, 'by nothing else')
  t.match(stale()[0], {
    ok: null,
    pending: true,
    treeSize: '310',
    detail: 'size 310 is a beginning of the known 370: an old answer',
  })
  t.ok(findings.every(({ ok, alarm }) => ok !== false && alarm === undefined))
  t.equal(auditor.held?.treeSize, 370)
})

t.test('a late edge has none of the new tree’s tiles, or of the old one’s partial ones: pending', async t => {
  const server = await serveFiles(t, at370)
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  server.files = setCheckpoint(without(at370, 'tile/0/001.p/114'), noteOf(at310))
  const early = await audit({ url: server.url, stateFile })
  t.strictSame([early.verdict, early.failures], [3, ['consistency null']])
  t.equal(pendingBeside(stateFile).length, 1)
  server.files = at370
  const later = await audit({ url: server.url, stateFile })
  t.strictSame([later.verdict, later.failures], [0, []])
  t.strictSame(pendingBeside(stateFile), [], 'it was compared')
})

for (const path of ['tile/0/001.p/114', 'tile/entries/001.p/114', 'tile/1/000.p/1']) {
  t.test(`one 404 on ${path}: pending, and clean at the next look`, async t => {
    for (const from of [undefined, 310]) {
      const server = await serveFiles(t, at310)
      const stateFile = newStateFile(t)
      if (from !== undefined) await audit({ url: server.url, stateFile })
      server.files = without(at370, path)
      const first = await audit({ url: server.url, stateFile })
      t.equal(first.verdict, 3)
      t.match(
        first.findings.filter(({ ok }) => ok !== true),
        [{ ok: null, pending: true, detail: /missing/ }],
      )
      server.files = at370
      const second = await audit({ url: server.url, stateFile })
      t.strictSame([second.verdict, second.failures], [0, []])
      t.strictSame(pendingBeside(stateFile), [])
    }
  })
}

t.test('a tile that is full in a tree that the log signed is asked for as the full one', async t => {
  const server = await serveFiles(t, logFilesOf(entriesOf(100)))
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  server.files = without(at310, 'tile/0/001.p/54')
  // The tree of 200 entries is gone, and its partial tiles with it.
  const other = await serveFiles(t, setCheckpoint(new Map(), noteOf(logFilesOf(entriesOf(200)))))
  const { failures, of } = await audit({ url: server.url, stateFile, gossip: [other.url] })
  t.strictSame(failures, ['consistency null'])
  t.match(of('gossip'), { ok: true, treeSize: '200' })
  t.notOk(server.requests.includes('tile/0/000.p/200'))
})

t.test('a mirror has the files that a cache has not, or has garbled', async t => {
  const whole = logFilesOf(entriesOf(600))
  const mirror = await serveFiles(t, without(whole, 'checkpoint'))
  for (const files of [
    without(whole, 'tile/0/001'),
    without(whole, 'tile/entries/002.p/88'),
    changeByte(new Map(whole), 'tile/entries/001', 100),
    changeByte(new Map(whole), 'tile/1/000.p/2', 0),
    new Map(whole).set('tile/entries/000', Buffer.from('<html>')),
  ]) {
    const server = await serveFiles(t, files)
    const alone = await audit({ url: server.url, stateFile: newStateFile(t) })
    t.equal(alone.verdict, 3)
    const settings = { url: server.url, stateFile: newStateFile(t), mirrors: [mirror.url] }
    const { verdict, failures, of } = await audit(settings)
    t.strictSame([verdict, failures], [0, []])
    t.match(of('entries'), { detail: /^600 entries from 0 on/ })
  }
})

t.test(
  'an old answer or a missing tile alarms once it has lasted longer than --max-age, or a day',
  async t => {
    for (const [maxAgeMs, files] of [
      [HOUR_MS, grown(at310, at370)],
      [undefined, grown(at310, at370)],
      [undefined, without(logFilesOf(entriesOf(400)), 'tile/0/001.p/144')],
    ] as const) {
      let nowMs = Date.UTC(2026, 0, 1)
      const server = await serveFiles(t, at370)
      const settings = { url: server.url, stateFile: newStateFile(t), nowMs: () => nowMs, maxAgeMs }
      const { auditor, findings } = openAuditor(settings)
      t.teardown(() => auditor.close())
      t.equal(await auditor.run(), 0)
      server.files = files
      const ageMs = maxAgeMs ?? DAY_MS
      for (const [passedMs, isAlarmed] of [
        [0, false],
        [ageMs, false],
        [1, true],
        [HOUR_MS, true],
      ] as const) {
        nowMs += passedMs
        t.equal(await auditor.run(), 3)
        const last = findings.at(-1)
        t.equal(last?.alarm === true, isAlarmed, `${last?.detail}`)
        t.equal(auditor.round?.alarm !== undefined, isAlarmed)
      }
      t.match(findings.at(-1), { check: 'stale', ok: null, detail: /2026-01-01T00:00:00.000Z, longer than/ })
      server.files = logFilesOf(entriesOf(500))
      t.equal(await auditor.run(), 0)
      t.equal(auditor.round?.alarm, undefined, 'and no more')
    }
  },
)

t.test('two trees are compared by tiles of several sources together', async t => {
  const server = await serveFiles(t, at310)
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  const whole = logFilesOf(entriesOf(600))
  const forked = logFilesOf(entriesOf(600, 305))
  for (const [files, verdict] of [
    [whole, 0],
    [forked, 1],
  ] as const) {
    const mirror = await serveFiles(t, without(files, 'tile/0/001'))
    server.files = without(files, 'tile/1/000.p/2')
    const outcome = await audit({ url: server.url, stateFile: copyOf(t, stateFile), mirrors: [mirror.url] })
    t.equal(outcome.verdict, verdict, JSON.stringify(outcome.failures))
  }
})

t.test('a good look between ends the wait', async t => {
  let nowMs = Date.UTC(2026, 0, 1)
  const server = await serveFiles(t, at370)
  const { auditor, findings } = openAuditor({
    url: server.url,
    stateFile: newStateFile(t),
    nowMs: () => nowMs,
  })
  t.teardown(() => auditor.close())
  for (const files of [at370, grown(at310, at370), at370, grown(at310, at370), grown(at310, at370)]) {
    server.files = files
    await auditor.run()
    nowMs += DAY_MS
  }
  t.notOk(findings.some(({ alarm }) => alarm))
})

t.test('a tree that was signed and not read is held against the next one', async t => {
  for (const from of [undefined, 310]) {
    const server = await serveFiles(t, at310)
    const stateFile = newStateFile(t)
    if (from !== undefined) await audit({ url: server.url, stateFile })
    // Each goes on from the known tree, and one does not go on from the other.
    const shown = without(at370, 'tile/entries/001.p/114')
    server.files = shown
    t.equal((await audit({ url: server.url, stateFile })).verdict, 3)
    t.equal((await audit({ url: server.url, stateFile })).verdict, 3, 'no more than told of again')
    t.equal(pendingBeside(stateFile).length, 1)
    server.files = grown(at310, shown)
    t.equal((await audit({ url: server.url, stateFile })).verdict, 0, 'an old answer, which holds')
    t.equal(pendingBeside(stateFile).length, 1)
    const forked = logFilesOf(entriesOf(400, 320))
    server.files = forked
    const { verdict, findings } = await audit({ url: server.url, stateFile })
    t.equal(verdict, 1)
    t.match(
      findings.find(({ ok }) => ok === false),
      { check: 'consistency', notes: [noteOf(forked), noteOf(shown)] },
    )
  }
})

t.test('who is shown a tree once, and then only an older one that holds, is alarmed too', async t => {
  let nowMs = Date.UTC(2026, 0, 1)
  const server = await serveFiles(t, at310)
  const { auditor } = openAuditor({ url: server.url, stateFile: newStateFile(t), nowMs: () => nowMs })
  t.teardown(() => auditor.close())
  const verdicts = []
  const shown = without(at370, 'tile/entries/001.p/114')
  const late = grown(at310, shown)
  for (const files of [at310, shown, late, late, at370]) {
    server.files = files
    verdicts.push(await auditor.run())
    nowMs += DAY_MS - 1
  }
  t.strictSame(verdicts, [0, 3, 0, 3, 0])
})

t.test('two roots of one size are two histories, though no tile of either is there', async t => {
  const server = await serveFiles(t, at310)
  const stateFile = newStateFile(t)
  await audit({ url: server.url, stateFile })
  for (const [fork, verdict] of [
    [0, 3],
    [1, 1],
  ] as const) {
    const { treeSize, rootHash } = integrate(entriesOf(500, 499 - fork))
    server.files = setCheckpoint(new Map(), signCheckpoint({ treeSize, rootHash }, SIGNER))
    t.equal((await audit({ url: server.url, stateFile })).verdict, verdict)
  }
})

function noteOf(files: LogFiles): string {
  return Buffer.from(files.get('checkpoint')!).toString()
}
