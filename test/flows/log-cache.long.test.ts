/**
 * The log behind nginx as a cache: with deploy/nginx.conf, and as a careless CDN whose edges keep old checkpoints
 * and 404s. Client and auditor tell late edges from a log that lies.
 */

import { once } from 'node:events'
import { cpSync, mkdirSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LogClient, MemoryStore } from '../../src/client/client.ts'
import { parseVerifierKey } from '../../src/log/note.ts'
import { audit, newStateFile, openAuditor } from '../support/audit.ts'
import { freePort } from '../support/free-port.ts'
import { type LiveLog, registerUsers, startLog } from '../support/live-log.ts'
import { eventually, until } from '../support/nodes.ts'
import { newFolder, nginxConf, skipWithoutNginx, startNginx } from '../support/proxies.ts'

const DAY_MS = 86_400_000

async function get(url: string, headers: Readonly<Record<string, string>> = {}) {
  const answer = await fetch(url, { headers })
  const text = await answer.text()
  return { status: answer.status, cache: answer.headers.get('x-cache'), headers: answer.headers, text }
}

const sizeIn = ({ text }: { readonly text: string }) => Number(text.split('\n')[1])

t.test('nginx as deploy/nginx.conf sets it up', { skip: skipWithoutNginx }, async t => {
  const log = await startLog(t, t.testdir())
  await registerUsers(log.client, 1, 310)
  const folder = newFolder(t)
  const port = await freePort()
  await startNginx(t, folder, nginxConf(folder, { port, server: new URL(log.http).host }), port)
  const url = `http://127.0.0.1:${port}`

  const full = `${url}/tile/0/000`
  t.equal((await get(full)).cache, 'MISS')
  const again = await get(full)
  t.equal(again.cache, 'HIT')
  t.match(again.headers.get('cache-control'), 'immutable')
  t.equal(again.headers.get('access-control-allow-origin'), '*')

  const early = `${url}/tile/0/001.p/114`
  t.equal((await get(early)).status, 404)
  const stateFile = newStateFile(t)
  const settings = { url, verifier: parseVerifierKey(log.vkey) }
  t.equal((await audit({ ...settings, stateFile })).verdict, 0)
  await registerUsers(log.client, 1_000, 60)
  t.equal((await get(early)).status, 200, 'a 404 is not kept')
  await until(async () => sizeIn(await get(`${url}/checkpoint`)) === 370)
  const grown = await audit({ ...settings, stateFile })
  t.strictSame([grown.verdict, grown.failures], [0, []])
  const client = clientOf(log, url)
  t.match(await client.refreshCheckpoint(), { kind: 'verified' })

  await log.end()
  t.equal((await get(full)).status, 200, 'tiles outlive the server')
  await until(async () => (await get(`${url}/checkpoint`)).status === 502)
  t.match(await client.refreshCheckpoint(), { kind: 'unanswered', status: 502 }, 'its checkpoint does not')
})

/** An address whose target can be changed. */
async function switchable(t: Test, http: string) {
  const sockets = new Set<Socket>()
  const origin = { port: 0, target: new URL(http).port }
  const server = createServer(client => {
    const upstream = connect(Number(origin.target), '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy()).on('close', () => sockets.delete(socket))
      socket.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return Object.assign(origin, { port: (server.address() as { port: number }).port })
}

interface CarelessCdn {
  /** Each request may come to either edge. */
  readonly url: string
  readonly edges: readonly [late: string, early: string]
}

/** Two edges that keep everything for an hour, 404s too, unless a request has `X-Refresh`. */
async function startCarelessCdn(t: Test, originPort: number): Promise<CarelessCdn> {
  const folder = newFolder(t)
  const [cdn, late, early] = [await freePort(), await freePort(), await freePort()]
  const edge = (name: string, port: number) => {
    mkdirSync(join(folder, name))
    return `
      proxy_cache_path ${join(folder, name)} keys_zone=${name}:1m use_temp_path=off;
      server {
        listen 127.0.0.1:${port};
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / {
          proxy_pass http://127.0.0.1:${originPort};
          proxy_cache ${name};
          proxy_ignore_headers Cache-Control Expires Vary;
          proxy_cache_valid 200 404 1h;
          proxy_cache_bypass $http_x_refresh;
        }
        location /api/ { proxy_pass http://127.0.0.1:${originPort}; }
      }`
  }
  const http = `
    upstream checkpoints { server 127.0.0.1:${late}; server 127.0.0.1:${early}; }
    upstream tiles { random; server 127.0.0.1:${late}; server 127.0.0.1:${early}; }
    ${edge('late', late)}
    ${edge('early', early)}
    server {
      listen 127.0.0.1:${cdn};
      proxy_http_version 1.1;
      location = /checkpoint { proxy_pass http://checkpoints; }
      location / { proxy_pass http://tiles; }
    }`
  await startNginx(t, folder, http, cdn)
  const [url, lateUrl, earlyUrl] = [cdn, late, early].map(port => `http://127.0.0.1:${port}`)
  return { url: url!, edges: [lateUrl!, earlyUrl!] }
}

function clientOf({ vkey, vrfPublicKey }: LiveLog, url: string): LogClient {
  return new LogClient({ url, vkey, vrfPublicKey, store: new MemoryStore() })
}

const EARLY_TILES = ['tile/0/001.p/114', 'tile/entries/001.p/114', 'tile/0/001', 'tile/entries/001']

/** A log of 370 entries behind a late edge, which stopped at 310, and an early one; and a forked copy of its server. */
async function stage(t: Test) {
  const folder = t.testdir({ true: {} })
  const [data, forkedData] = [join(folder, 'true'), join(folder, 'forked')]
  const young = await startLog(t, data)
  await registerUsers(young.client, 1, 300)
  young.client.close()
  await young.end()
  cpSync(data, forkedData, { recursive: true })
  const log = await startLog(t, data)
  await registerUsers(log.client, 1_000, 10)
  const origin = await switchable(t, log.http)
  const { url, edges } = await startCarelessCdn(t, origin.port)
  const [late, early] = edges
  t.equal(sizeIn(await get(`${late}/checkpoint`)), 310)
  for (const path of EARLY_TILES) t.equal((await get(`${late}/${path}`)).status, 404)
  const [person] = await registerUsers(log.client, 2_000, 60)
  t.equal(sizeIn(await get(`${early}/checkpoint`)), 370)
  t.equal(sizeIn(await get(`${late}/checkpoint`)), 310, 'and stays so')
  t.equal((await get(`${late}/${EARLY_TILES[0]}`)).status, 404, 'and so does a 404')
  return { log, url, late, early, origin, forkedData, person: person! }
}

t.test(
  'edges of different age that keep 404s: no accusation, and the auditor alarms',
  { skip: skipWithoutNginx },
  async t => {
    const { log, url, late, early, person } = await stage(t)
    let nowMs = Date.now()
    const settings = { verifier: parseVerifierKey(log.vkey), nowMs: () => nowMs }
    const stateFile = newStateFile(t)
    const { auditor, findings } = openAuditor({ ...settings, url, stateFile })
    t.teardown(() => auditor.close())
    const verdicts = new Set<number>()
    const isSeen = () => auditor.held?.treeSize === 370 && findings.some(({ check }) => check === 'stale')
    while (!isSeen()) {
      verdicts.add(await auditor.run())
      await nextTurn()
    }
    t.notOk(verdicts.has(1))
    t.ok(findings.every(({ ok, alarm }) => ok !== false && !alarm))

    // A new auditor behind the edge whose 404s the other's checkpoint contradicts.
    const alone = { ...settings, url: late, stateFile: newStateFile(t) }
    t.equal((await audit({ ...alone, gossip: [early] })).verdict, 0, 'the tiles come from the other edge')
    const mirrored = await audit({ ...settings, url, stateFile: newStateFile(t), mirrors: [log.http] })
    t.strictSame([mirrored.verdict, mirrored.failures], [0, []], 'and from a mirror')

    const behind = openAuditor({ ...settings, url: late, stateFile })
    t.teardown(() => behind.auditor.close())
    t.equal(await behind.auditor.run(), 3)
    t.equal(behind.auditor.round?.alarm, undefined)
    nowMs += DAY_MS + 1
    t.equal(await behind.auditor.run(), 3)
    t.match(behind.findings.at(-1), { check: 'stale', ok: null, alarm: true })

    const client = clientOf(log, url)
    const { userId, deviceId, vrfHash } = person
    t.match(await eventually(() => verified(client.lookUp({ userId, deviceId, vrfHash }))), {
      index: person.index,
    })
    const outcomes = []
    for (let look = 0; look < 8; look++) outcomes.push(await client.refreshCheckpoint())
    t.strictSame(
      outcomes.filter(({ kind }) => kind === 'refused'),
      [],
    )
    for (const kind of ['verified', 'unanswered']) t.ok(outcomes.some(outcome => outcome.kind === kind))
    t.not((await client.compareWith((await get(`${late}/checkpoint`)).text)).kind, 'refused')
  },
)

async function verified<Outcome extends { readonly kind: string }>(
  pending: Promise<Outcome>,
): Promise<Outcome> {
  const outcome = await pending
  if (outcome.kind === 'refused') t.fail(JSON.stringify(outcome))
  if (outcome.kind !== 'verified') throw new Error('not yet')
  return outcome
}

t.test(
  'a log that lies behind the same cache is caught at the first look',
  { skip: skipWithoutNginx },
  async t => {
    const { log, early, origin, forkedData } = await stage(t)
    const settings = { verifier: parseVerifierKey(log.vkey), url: early, stateFile: newStateFile(t) }
    t.equal((await audit(settings)).verdict, 0)
    const client = clientOf(log, early)
    t.match(await client.refreshCheckpoint(), { kind: 'verified', checkpoint: { treeSize: 370 } })

    const forked = await startLog(t, forkedData)
    t.equal(forked.vkey, log.vkey)
    await registerUsers(forked.client, 5_000, 150)
    origin.target = new URL(forked.http).port
    await log.end()
    // The edge hides the lie, and the truth, until it asks again.
    t.equal((await audit(settings)).verdict, 0)
    t.equal(sizeIn(await get(`${early}/checkpoint`, { 'x-refresh': '1' })), 450)
    const caught = await audit(settings)
    t.strictSame([caught.verdict, caught.failures], [1, ['consistency false']])
    t.match(caught.of('consistency')?.notes, [/\n370\n/, /\n450\n/])
    t.match(await client.refreshCheckpoint(), {
      kind: 'refused',
      check: 'consistency',
      evidence: [/\n370\n/, /\n450\n/],
    })
  },
)
