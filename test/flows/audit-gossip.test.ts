/**
 * The log as other readers see it (`--gossip`), and checkpoints without tiles to compare: a source proves nothing by
 * being broken, and a log gains nothing by not answering.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { signerKeyFromSeed } from '../../src/log/note.ts'
import { audit, IMPATIENT, newStateFile, openAuditor } from '../support/audit.ts'
import {
  changeByte,
  entriesOf,
  type LogFiles,
  logFilesOf,
  type Misbehaviour,
  SIGNER,
  serveFiles,
} from '../support/served-log.ts'

/** For sources that answer 503 for ever, on a busy machine. */
const SOON = { ...IMPATIENT, requestMs: 1_500, idleMs: 1_000 }
/** The usual log has two full bundles and a partial one. */
const SIZE = 600
const ours = logFilesOf(entriesOf(SIZE))
const main = await serveFiles(t, ours)

/** An audit of the usual log, which another source shows like this. */
async function gossipOf(t: Test, files: LogFiles, misbehave?: Misbehaviour) {
  const other = await serveFiles(t, files, misbehave)
  const stateFile = newStateFile(t)
  const outcome = await audit({ url: main.url, stateFile, gossip: [other.url] })
  return { ...outcome, other, stateFile }
}

function noteOf(files: LogFiles): string {
  return Buffer.from(files.get('checkpoint')!).toString()
}

/** The files beside a state file that are of that kind. */
function besides(stateFile: string, kind: 'evidence' | 'pending'): string[] {
  return readdirSync(dirname(stateFile)).filter(name => name.includes(`.${kind}-`))
}

/** Answers nothing but the checkpoint. */
const withoutTiles =
  (status: number): Misbehaviour =>
  (path, response) => {
    if (!path.startsWith('tile/')) return false
    response.writeHead(status).end()
    return true
  }

t.test('two roots for one size: gossip, with both notes kept, and nothing remembered', async t => {
  const theirs = logFilesOf(entriesOf(SIZE, 599))
  const { verdict, failures, of, other, stateFile } = await gossipOf(t, theirs)
  t.strictSame([verdict, failures], [1, ['gossip false']])
  t.match(of('gossip'), {
    detail: /size 600 has two roots/,
    notes: [noteOf(ours), noteOf(theirs)],
    url: other.url,
  })
  t.notOk(existsSync(stateFile))
  t.equal(besides(stateFile, 'evidence').length, 1)
})

t.test('a larger or smaller tree there that belongs to another history: gossip', async t => {
  for (const size of [100, 256, 599, 601, 900]) {
    const { failures, of } = await gossipOf(t, logFilesOf(entriesOf(size, 50)))
    t.strictSame(failures, ['gossip false'], `size ${size}`)
    t.match(of('gossip'), { notes: [String, String] })
  }
})

t.test('a larger or smaller tree there of the same history is fine', async t => {
  for (const size of [0, 1, 100, 599, 600, 601, 900]) {
    const { verdict, of } = await gossipOf(t, logFilesOf(entriesOf(size)))
    t.equal(verdict, 0, `size ${size}`)
    t.match(of('gossip'), { ok: true, treeSize: String(size) })
  }
})

t.test('a source that is down: 2, and checks that passed are remembered', async t => {
  const outcome = await audit({
    url: main.url,
    stateFile: newStateFile(t),
    gossip: ['http://127.0.0.1:1/log'],
  })
  t.equal(outcome.verdict, 2)
  t.strictSame(outcome.failures, ['gossip null'])
  t.match(outcome.of('state'), { ok: true })
})

t.test('of several sources each is compared, and the worst decides', async t => {
  const forked = await serveFiles(t, logFilesOf(entriesOf(SIZE, 599)))
  const fine = await serveFiles(t, logFilesOf(entriesOf(700)))
  const down = 'http://127.0.0.1:1/log'
  const gossip = [down, forked.url, fine.url, down]
  const { verdict, findings } = await audit({ url: main.url, stateFile: newStateFile(t), gossip })
  t.equal(verdict, 1)
  t.strictSame(
    findings.filter(({ check }) => check === 'gossip').map(({ ok, url }) => [ok, url]),
    [
      [null, down],
      [false, forked.url],
      [true, fine.url],
      [null, down],
    ],
  )
})

t.test('a source that is broken, or speaks for another key, proves nothing', async t => {
  const otherKey = signerKeyFromSeed(SIGNER.name, new Uint8Array(32).fill(9))
  const html: Misbehaviour = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in to the hotel</h1>')
    return true
  }
  const pourForEver: Misbehaviour = (_, response) => {
    const pour = () => {
      while (response.writable && response.write(Buffer.alloc(65_536, 'x')));
    }
    response.on('drain', pour)
    pour()
    return true
  }
  for (const [what, files, misbehave] of [
    ['an HTML page', ours, html],
    ['a page without an end', ours, pourForEver],
    ['no checkpoint', new Map(), undefined],
    ['a note of another key', logFilesOf(entriesOf(SIZE, 10), otherKey), undefined],
    ['no note', new Map([['checkpoint', Buffer.from('hello')]]), undefined],
  ] as const) {
    const { verdict, failures, other, of, stateFile } = await gossipOf(t, files, misbehave)
    t.strictSame([verdict, failures], [2, ['gossip null']], what)
    t.match(of('gossip'), { url: other.url, detail: new RegExp(other.url) })
    t.ok(existsSync(stateFile), 'what the log itself showed is remembered')
    t.strictSame(besides(stateFile, 'pending'), [])
  }
})

t.test('who follows a log goes on over broken sources, and ends at a contradiction', async t => {
  const other = await serveFiles(t, new Map([['checkpoint', Buffer.from('hello')]]))
  const { auditor, findings } = openAuditor({
    url: main.url,
    stateFile: newStateFile(t),
    gossip: [other.url],
    httpLimits: SOON,
  })
  t.teardown(() => auditor.close())
  const followed = auditor.follow(1)
  while (findings.filter(({ check }) => check === 'gossip').length < 3) await nextTurn()
  other.files = logFilesOf(entriesOf(SIZE, 10))
  t.equal(await followed, 1)
  t.match(
    findings.findLast(({ check }) => check === 'gossip'),
    { ok: false, notes: [String, String] },
  )
})

t.test(
  'evidence whose tiles nobody has is kept, and proves the fork once the log has grown past it',
  async t => {
    for (const status of [404, 503]) {
      const log = await serveFiles(t, ours)
      const forked = logFilesOf(entriesOf(900, 50))
      const other = await serveFiles(t, forked, withoutTiles(status))
      const settings = {
        url: log.url,
        stateFile: newStateFile(t),
        gossip: [other.url],
        httpLimits: SOON,
      }
      const first = await audit(settings)
      t.strictSame([first.verdict, first.failures], [2, ['gossip null']], `${status}`)
      t.equal(besides(settings.stateFile, 'pending').length, 1)

      t.strictSame((await audit(settings)).failures, ['gossip null'], 'told of once')

      // The source is gone, and the log does not answer either.
      const alone = { ...settings, gossip: [] }
      t.strictSame((await audit(alone)).failures, ['gossip null'], 'asked for again')
      log.files = logFilesOf(entriesOf(1_000))
      const last = await audit(alone)
      t.strictSame([last.verdict, last.failures], [1, ['gossip false']])
      t.strictSame(last.of('gossip')?.notes, [noteOf(log.files), noteOf(forked)])
      t.equal(besides(settings.stateFile, 'evidence').length, 1)
      t.equal((await audit(alone)).verdict, 1, 'and it is not forgotten')
    }
  },
)

t.test('evidence that turns out to be of the same history is let go', async t => {
  const log = await serveFiles(t, ours)
  const ahead = logFilesOf(entriesOf(900))
  const other = await serveFiles(t, ahead, withoutTiles(503))
  const settings = { url: log.url, stateFile: newStateFile(t), gossip: [other.url], httpLimits: SOON }
  t.strictSame((await audit(settings)).failures, ['gossip null'])
  log.files = ahead
  const last = await audit(settings)
  t.strictSame([last.verdict, last.failures], [0, []])
  t.strictSame(besides(settings.stateFile, 'pending'), [])
})

t.test('tiles that a source does not have, or has wrong, are asked for elsewhere', async t => {
  const grown = entriesOf(900)
  const mirror = await serveFiles(t, logFilesOf(grown))
  for (const files of [
    logFilesOf(entriesOf(900, 50)),
    changeByte(logFilesOf(grown), 'tile/0/000', 100 * 32),
  ]) {
    const lying = await serveFiles(t, new Map(files).set('checkpoint', logFilesOf(grown).get('checkpoint')!))
    const gossip = [lying.url, mirror.url]
    const { verdict } = await audit({ url: main.url, stateFile: newStateFile(t), gossip })
    t.equal(verdict, 0)
  }
})

t.test(
  'a log that has no tiles to show that its history is one is pending, with both notes kept',
  async t => {
    for (const [status, verdict, failure] of [
      [404, 3, 'consistency null'],
      [503, 2, 'fetch null'],
    ] as const) {
      const log = await serveFiles(t, ours)
      const settings = { url: log.url, stateFile: newStateFile(t), httpLimits: SOON }
      await audit(settings)
      const forked = logFilesOf(entriesOf(900, 50))
      log.files = forked
      log.misbehave = withoutTiles(status)
      const accused = await audit(settings)
      t.strictSame([accused.verdict, accused.failures], [verdict, [failure]])
      const [name = ''] = besides(settings.stateFile, 'pending')
      const kept = JSON.parse(readFileSync(`${dirname(settings.stateFile)}/${name}`, 'utf8'))
      t.strictSame(kept.notes, [noteOf(ours), noteOf(forked)])

      // It shows its old face again, and is caught when it grows.
      log.files = logFilesOf(entriesOf(1_000))
      log.misbehave = () => false
      t.strictSame((await audit(settings)).failures, ['consistency false'])
    }
  },
)

t.test('wrong tiles of the log are pending, with both notes kept', async t => {
  const log = await serveFiles(t, ours)
  const settings = { url: log.url, stateFile: newStateFile(t) }
  await audit(settings)
  const forked = logFilesOf(entriesOf(900, 50))
  log.files = new Map(logFilesOf(entriesOf(900))).set('checkpoint', forked.get('checkpoint')!)
  const accused = await audit(settings)
  t.strictSame([accused.verdict, accused.failures], [3, ['consistency null']])
  t.equal(besides(settings.stateFile, 'pending').length, 1)
})

t.test('a mirror has the tiles that the accused log does not serve, at once or in a later round', async t => {
  for (const status of [404, 503]) {
    const log = await serveFiles(t, ours)
    const mirror = await serveFiles(t, new Map())
    const settings = { url: log.url, stateFile: newStateFile(t), httpLimits: SOON }
    await audit(settings)
    const forked = logFilesOf(entriesOf(900, 50))
    log.files = forked
    log.misbehave = withoutTiles(status)
    const alone = await audit({ ...settings, mirrors: [mirror.url] })
    t.notMatch(alone.failures, ['gossip false'])
    t.equal(besides(settings.stateFile, 'pending').length, 1, 'the mirror has nothing yet')
    mirror.files = forked
    const { verdict, failures, of } = await audit({ ...settings, mirrors: [mirror.url] })
    t.strictSame([verdict, failures], [1, ['consistency false']], `${status}`)
    t.strictSame(of('consistency')?.notes, [noteOf(ours), noteOf(forked)])
    t.notOk(mirror.requests.includes('checkpoint'), 'a mirror is asked for tiles alone')
  }
})

t.test('who follows a log asks for the tiles of pending evidence in each round', async t => {
  const forked = logFilesOf(entriesOf(900, 50))
  const other = await serveFiles(t, forked, withoutTiles(503))
  const mirror = await serveFiles(t, new Map())
  const { auditor, findings } = openAuditor({
    url: main.url,
    stateFile: newStateFile(t),
    gossip: [other.url],
    mirrors: [mirror.url],
    httpLimits: { ...IMPATIENT, requestMs: 300 },
  })
  t.teardown(() => auditor.close())
  const followed = auditor.follow(1)
  while (findings.filter(({ ok }) => ok === null).length < 2) await nextTurn()
  mirror.files = forked
  t.equal(await followed, 1)
  t.match(
    findings.findLast(({ check }) => check === 'gossip'),
    { ok: false, notes: [noteOf(ours), noteOf(forked)] },
  )
})
