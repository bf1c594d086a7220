/** `--serve`: an auditor's answers to other readers, in notes signed by its own key and on a page. */

import { readFileSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { judgeEvidence } from '../../scripts/audit/evidence.ts'
import type { Finding } from '../../scripts/audit/finding.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, openNote, parseVerifierKey } from '../../src/log/note.ts'
import { audit, newStateFile } from '../support/audit.ts'
import { registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { spawnBound, startedProgram } from '../support/programs.ts'
import { entriesOf, logFilesOf, SIGNER, serveFiles } from '../support/served-log.ts'

const NO_HASH = Buffer.alloc(64, 9).toString('base64')

interface Followed {
  readonly url: string
  readonly vkey: string
  until(isWanted: (finding: Finding) => boolean): Promise<Finding>
  end(): Promise<unknown>
}

/** The program following a log, once it serves. */
async function serveAudit(
  t: Test,
  url: string,
  vkey: string,
  stateFile: string,
  ...more: readonly string[]
): Promise<Followed> {
  const log = ['--url', url, '--vkey', vkey, '--state', stateFile]
  const args = [...log, '--follow', '0.05', '--serve', '0', ...more]
  const child = spawnBound(process.execPath, [startedProgram('scripts/audit'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const code = new Promise(resolve => child.once('close', (exitCode, signal) => resolve(exitCode ?? signal)))
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const until = async (isWanted: (finding: Finding) => boolean) => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the output ended')
      const finding = JSON.parse(value) as Finding
      if (isWanted(finding)) return finding
    }
  }
  const served = await until(({ check }) => check === 'serve')
  const end = () => {
    child.kill('SIGTERM')
    return code
  }
  return { url: served.url!, vkey: served.detail.replace('as ', ''), until, end }
}

async function get(url: string, init: RequestInit = {}) {
  const answer = await fetch(url, init)
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

async function newestOf({ url, vkey }: Followed, hash: string): Promise<readonly string[]> {
  const { text } = await get(`${url}/newest?hash=${encodeURIComponent(hash)}`)
  return openNote(text, [parseVerifierKey(vkey)]).text.split('\n')
}

t.test('a server’s log is followed, and its newest entries are answered with a signature', async t => {
  const log = await startLog(t, t.testdir())
  const ann = await registerKey(log.client, 1n, 1n)
  await registerUsers(log.client, 100, 20)
  const stateFile = newStateFile(t)
  const audits = await serveAudit(t, log.http, log.vkey, stateFile)
  await audits.until(({ check, detail }) => check === 'state' && detail.startsWith('size 21'))
  const [kind, origin, size, root, hash, index, seconds, ...rest] = await newestOf(audits, ann.vrfHash)
  t.strictSame(
    [kind, origin, size, hash, index, rest],
    ['callsign newest v1', parseVerifierKey(log.vkey).name, '21', ann.vrfHash, `${ann.index}`, ['']],
  )
  t.ok(Math.abs(Number(seconds) - Date.now() / 1_000) < 60)

  const { text: note, headers } = await get(`${audits.url}/checkpoint`)
  t.match(headers.get('content-type'), /^text\/plain/)
  const checkpoint = openCheckpoint(note, parseVerifierKey(log.vkey))
  t.equal(checkpoint.treeSize, 21)
  t.equal(Buffer.from(checkpoint.rootHash).toString('base64'), root)
  t.equal(openNote(note, [parseVerifierKey(log.vkey), parseVerifierKey(audits.vkey)]).signatures.length, 2)

  const again = await registerKey(log.client, 1n, 1n)
  await audits.until(({ check, detail }) => check === 'state' && detail.startsWith('size 22'))
  t.equal((await newestOf(audits, ann.vrfHash))[5], `${again.index}`)
  t.equal((await newestOf(audits, NO_HASH))[5], 'none')
  const spelt = ann.vrfHash.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  t.equal((await newestOf(audits, spelt))[4], ann.vrfHash, 'base64url will do')

  const page = await get(`${audits.url}/`)
  t.match(page.headers.get('content-type'), /^text\/html/)
  t.match(page.text, /<h1>Green<\/h1>/)
  t.match(page.text, `size 22`)
  t.notMatch(page.text, /<script/i)
  t.equal(statSync(`${stateFile}.key`).mode & 0o777, 0o600)
  t.equal(await audits.end(), 0)

  // The log is gone: the same key tells what held last.
  log.client.close()
  await log.end()
  const later = await serveAudit(t, log.http, log.vkey, stateFile)
  t.equal(later.vkey, audits.vkey)
  t.equal((await newestOf(later, ann.vrfHash))[5], `${again.index}`)
  t.equal(
    openCheckpoint((await get(`${later.url}/checkpoint`)).text, parseVerifierKey(log.vkey)).treeSize,
    22,
  )
  t.match((await get(`${later.url}/`)).text, /<h1>Not checked<\/h1>/)
  t.equal(await later.end(), 0)
})

t.test(
  'a log that is caught is red until SIGTERM and after a restart, with evidence to take away',
  async t => {
    const log = await serveFiles(t, logFilesOf(entriesOf(300)))
    const stateFile = newStateFile(t)
    const vkey = formatVerifierKey(SIGNER)
    const audits = await serveAudit(t, log.url, vkey, stateFile)
    await audits.until(({ check }) => check === 'state')
    log.files = logFilesOf(entriesOf(400, 50))
    await audits.until(({ check, detail }) => check === 'state' && detail.includes('.evidence-'))
    while (!(await get(audits.url)).text.includes('<h1>Red</h1>'));
    const { status, text } = await get(`${audits.url}/evidence/0`)
    t.equal(status, 200)
    t.equal(judgeEvidence(text, [SIGNER]).kind, 'proven')
    t.equal(
      openCheckpoint((await get(`${audits.url}/checkpoint`)).text, SIGNER).treeSize,
      300,
      'the last good one',
    )
    t.equal(await audits.end(), 1)

    log.files = logFilesOf(entriesOf(300))
    const later = await serveAudit(t, log.url, vkey, stateFile)
    await later.until(({ check }) => check === 'state')
    t.match((await get(later.url)).text, /<h1>Red<\/h1>/, 'though the log shows its old face again')
    t.equal(await later.end(), 0)
  },
)

t.test(
  'a log that shows less than it signed is waited for, then alarmed about, on the page and as a metric',
  async t => {
    const log = await serveFiles(t, logFilesOf(entriesOf(370)))
    const stateFile = newStateFile(t)
    const vkey = formatVerifierKey(SIGNER)
    const audits = await serveAudit(t, log.url, vkey, stateFile)
    await audits.until(({ check }) => check === 'state')
    log.files = new Map([...log.files, ...logFilesOf(entriesOf(310))])
    await audits.until(({ check, pending }) => check === 'stale' && pending === true)
    while (!(await get(audits.url)).text.includes('<h1>Waiting</h1>'));
    const waiting = await get(`${audits.url}/metrics`)
    t.match(waiting.text, /^callsign_audit_verdict 3$/m)
    t.match(waiting.text, /^callsign_audit_alarm 0$/m)
    t.match(waiting.text, /^callsign_audit_tree_size 370$/m)
    t.equal(await audits.end(), 0)

    const later = await serveAudit(t, log.url, vkey, stateFile, '--max-age', '0.001')
    await later.until(({ alarm }) => alarm === true)
    while (!(await get(later.url)).text.includes('<h1>Alarm</h1>'));
    t.match((await get(later.url)).text, /no new checkpoint since .*nothing is proven against the log/)
    t.match((await get(`${later.url}/metrics`)).text, /^callsign_audit_alarm 1$/m)
    t.equal(await later.end(), 0)
  },
)

t.test('one auditor is a gossip source of another', async t => {
  const log = await serveFiles(t, logFilesOf(entriesOf(300)))
  const audits = await serveAudit(t, log.url, formatVerifierKey(SIGNER), newStateFile(t))
  await audits.until(({ check }) => check === 'state')
  const forked = await serveFiles(t, logFilesOf(entriesOf(400, 50)))
  const settings = { url: forked.url, gossip: [audits.url] }
  const { failures } = await audit({ ...settings, stateFile: newStateFile(t) })
  t.strictSame(failures, ['gossip false'])
})

t.test('requests are bounded, and what a server said is shown as text', async t => {
  const log = await serveFiles(t, logFilesOf(entriesOf(3)), (path, response) => {
    if (path !== 'checkpoint') return false
    response.writeHead(302, { location: '<img src=x onerror=alert(1)>' }).end()
    return true
  })
  const audits = await serveAudit(t, log.url, formatVerifierKey(SIGNER), newStateFile(t))
  for (const [path, init, expected] of [
    ['/nothing', {}, 404],
    ['/evidence/0', {}, 404],
    ['/evidence/9999', {}, 404],
    ['/newest', {}, 400],
    ['/newest?hash=AAAA', {}, 400],
    [`/newest?hash=${NO_HASH}A`, {}, 400],
    [`/newest?hash=${encodeURIComponent(NO_HASH)}`, {}, 503],
    ['/checkpoint', {}, 503],
    ['/', { method: 'POST', body: 'x' }, 405],
    [`/newest?hash=${'A'.repeat(2_000)}`, {}, 414],
    ['/', { headers: { long: 'x'.repeat(20_000) } }, 431],
    ['/', { method: 'HEAD' }, 200],
  ] as const)
    t.equal((await get(audits.url + path, init)).status, expected, path.slice(0, 40))
  await audits.until(({ check, ok }) => check === 'fetch' && ok === null)
  while (!(await get(audits.url)).text.includes('onerror'));
  const { text } = await get(audits.url)
  t.match(text, '&lt;img src=x')
  t.notMatch(text, '<img')
  t.match(text, /<h1>Not checked<\/h1>/)
  t.equal(await audits.end(), 0)
})

t.test('a port that is taken, or a key file that is none: 2', async t => {
  const log = await serveFiles(t, logFilesOf(entriesOf(3)))
  const stateFile = newStateFile(t)
  const { port } = new URL(log.url)
  const args = ['--url', log.url, '--vkey', formatVerifierKey(SIGNER), '--state', stateFile, '--follow', '1']
  const run = async (serve: string) => {
    const program = [startedProgram('scripts/audit'), ...args, '--serve', serve]
    const child = spawnBound(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    const code = new Promise(resolve => child.once('close', resolve))
    for await (const chunk of child.stdout!) text += chunk
    return { code: await code, finding: JSON.parse(text.trim().split('\n').at(-1)!) as Finding }
  }
  t.match(await run(port), { finding: { check: 'serve', ok: null, detail: /can't listen/ } })
  const key = readFileSync(`${stateFile}.key`, 'utf8')
  t.match(key, /^PRIVATE\+KEY\+auditor\+/)
  const other = await serveFiles(t, logFilesOf(entriesOf(3)))
  args[1] = other.url
  args[5] = log.url.replace(/.*/, `${t.testdir({ 'a.key': 'hello' })}/a`)
  t.match(await run('0'), { code: 2, finding: { check: 'serve', ok: null, detail: /has no key/ } })
})
