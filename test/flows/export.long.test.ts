/**
 * Exports of a person with ten thousand calls, by a server that is one process and by one with fronts: whole for a client
 * that reads, cut off for one whose server ends midway, and never kept for one that went away.
 */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import { ANSWER_STREAMS_MAX } from '../../src/limits.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { ServerKeyStore } from '../../src/store/operators/server-keys.ts'
import { settingsFor, signInPerson } from '../support/call-people.ts'
import { frontsOf } from '../support/fronts-of.ts'
import { plantHistory } from '../support/history-effect.ts'
import { type RunningServer, startServer } from '../support/server.ts'

const CALLS = 10_000
/** So many people in each call that the document is longer than what sockets hold. */
const PEOPLE = 31

interface Exporting {
  readonly server: RunningServer
  readonly userId: bigint
  readonly headers: Readonly<Record<string, string>>
  readonly key: string
}

/** Starts a server with a person who has that many calls. */
async function start(t: Test, fronts: number): Promise<Exporting> {
  const dataFolder = join(t.testdir(), 'data')
  const environment = {
    ...settingsFor(1),
    CALLSIGN_AUTH_STEP_UP_SECONDS: '0',
    CALLSIGN_LOG_LEVEL: 'error',
    ...(fronts > 0 && { CALLSIGN_FRONTS: `${fronts}` }),
  }
  const before = await startServer({ dataFolder, environment })
  const { app, userId } = await signInPerson(before.http, 0)
  await before.end()
  const key = await fill(dataFolder, BigInt(userId) as UserId)
  const server = await startServer({ dataFolder, environment })
  t.teardown(() => server.end('SIGKILL').catch(() => undefined))
  return { server, userId: BigInt(userId), headers: { authorization: `Bearer ${app.accessToken}` }, key }
}

/** Puts the calls there, and a server key, which it returns. */
async function fill(dataFolder: string, userId: UserId): Promise<string> {
  const database = LmdbStore.open(dataFolder)
  const people = [userId, ...Array.from({ length: PEOPLE }, (_, at) => (2n ** 52n + BigInt(at)) as UserId)]
  await database.change(change => {
    for (let at = 0; at < CALLS; at++) {
      const callId = BigInt(4_294_967_296 + at) as CallId
      plantHistory(change, userId, {
        callId,
        createdAtMs: change.nowMs - at * 1_000,
        status: 'ended',
        people,
      })
    }
  })
  const keys = new ServerKeyStore({ database, expiries: new Expiries(), randomBytes })
  const { key } = await database.change(change => keys.create(change, { name: 'test', scopes: ['export'] }))
  await database.close()
  return key
}

/** The answer with its head; the body waits. */
async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
  const [answer]: IncomingMessage[] = await once(get(url, { headers, agent: false }), 'response')
  return answer!
}

function askOwn({ server, headers }: Exporting): Promise<IncomingMessage> {
  return ask(`${server.http}/app/api/user/export`, headers)
}

function askAsOperator({ server, userId, key }: Exporting): Promise<IncomingMessage> {
  const url = `${server.serverApi}/server/api/v1/users/${encodeURIComponent(`id:${userId}`)}/export`
  return ask(url, { authorization: `Bearer ${key}` })
}

async function assertWhole(t: Test, answer: IncomingMessage): Promise<void> {
  t.equal(answer.statusCode, 200)
  const { calls, exportedAt } = JSON.parse(await text(answer))
  t.ok(exportedAt)
  t.equal(new Set(calls.map(({ callId }: { callId: string }) => callId)).size, CALLS)
}

/** More exports than may be on their way at once begin, and their clients go away. */
async function beginMany(t: Test, exporting: Exporting): Promise<void> {
  for (let at = 0; at < ANSWER_STREAMS_MAX + 10; at++) {
    const answer = await askOwn(exporting)
    t.equal(answer.statusCode, 200)
    answer.destroy()
  }
}

t.test('one process', async t => {
  const exporting = await start(t, 0)
  const { server } = exporting
  const paused = await askOwn(exporting)
  await assertWhole(t, await askOwn(exporting))
  await assertWhole(t, await askAsOperator(exporting))
  await assertWhole(t, paused)
  await beginMany(t, exporting)
  const cutOff = await askOwn(exporting)
  await server.end('SIGKILL')
  await t.rejects(text(cutOff), { code: 'ECONNRESET' })
})

t.test('two fronts', async t => {
  const exporting = await start(t, 2)
  const { server } = exporting
  const paused = await askOwn(exporting)
  await assertWhole(t, await askAsOperator(exporting))
  await assertWhole(t, paused)
  await beginMany(t, exporting)
  const byFront = await askOwn(exporting)
  for (const pid of frontsOf(server.process.pid!)) process.kill(pid, 'SIGKILL')
  await t.rejects(text(byFront), { code: 'ECONNRESET' })
  let next: IncomingMessage | undefined
  while (next === undefined) {
    // Until a front is back, connecting fails.
    next = await askOwn(exporting).catch(() => undefined)
    await setImmediate()
  }
  await assertWhole(t, next)
  const cutOff = await askOwn(exporting)
  await server.end('SIGKILL')
  await t.rejects(text(cutOff), { code: 'ECONNRESET' })
})
