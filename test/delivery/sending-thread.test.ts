/** The thread that sends pushes: outcomes find their way back, and a thread that ends costs no push its answer. */

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { openPush } from '../../src/app/calls/sealed-push.ts'
import { ApnsSender } from '../../src/delivery/apns.ts'
import type { ApnsPush } from '../../src/delivery/apns-link.ts'
import type { FcmPush } from '../../src/delivery/fcm.ts'
import { FcmSender } from '../../src/delivery/fcm.ts'
import type { PushSettings } from '../../src/delivery/push-senders.ts'
import { SendingThread, startSendingWorker, type ThreadSettings } from '../../src/delivery/sending-thread.ts'
import { generateVapidKey } from '../../src/delivery/vapid-key.ts'
import { type ApnsStandIn, startApnsStandIn } from '../support/apns-stand-in.ts'
import { startFcmStandIn, UNREGISTERED } from '../support/fcm-stand-in.ts'
import { builtProgram } from '../support/programs.ts'

const RETRY = { kind: 'retry', reason: 'network' }
const SECRET = 'not-to-be-said'

const BAD_WORKERS = {
  silent: `parent.on('message', () => {})`,
  'ends at a push': `parent.on('message', () => process.exit(1))`,
  'throws at a push': `parent.on('message', () => { throw new RangeError('${SECRET}') })`,
  'never starts': `throw new Error('${SECRET}')`,
  'answers backwards': `parent.on('message', text => {
    const { firstId, pushes } = JSON.parse(text)
    const answers = pushes.map(([, { token }], at) => [firstId + at, { kind: 'refused', reason: token }])
    for (const answer of answers.reverse()) parent.postMessage(JSON.stringify([answer]))
  })`,
}

function apnsPush(changes: Partial<ApnsPush> = {}): ApnsPush {
  return {
    token: 'ab'.repeat(32),
    environment: 'production',
    topic: 'example.callsign.voip',
    pushType: 'voip',
    priority: 10,
    expiresAtMs: Date.now() + 60_000,
    id: '7f3c2b9e-0c1d-4e5f-8a9b-0c1d2e3f4a5b',
    payload: { aps: {}, callId: '18446744073709551615', callerName: 'Đặng “Q” 😀' },
    ...changes,
  }
}

function fcmPush(token: string): FcmPush {
  return { token, priority: 'high', ttlSeconds: 57, data: { type: 'call_invitation' } }
}

async function startApns(t: Test): Promise<{ readonly apns: ApnsStandIn; readonly push: PushSettings }> {
  const apns = await startApnsStandIn()
  t.teardown(() => apns.close())
  const { key, keyId, teamId, ca, port } = apns
  const hosts = { production: 'localhost', development: 'localhost' }
  return { apns, push: { apns: { key, keyId, teamId, ca, port, hosts } } }
}

function open(t: Test, push: PushSettings, settings: Partial<ThreadSettings> = {}) {
  const lost: string[] = []
  const thread = new SendingThread({ push, onLost: cause => lost.push(cause), ...settings })
  t.teardown(() => thread.close())
  const byApns = (changes?: Partial<ApnsPush>) => thread.senders.apns!.send(apnsPush(changes))
  return { thread, byApns, lost }
}

/** The first workers are bad in these ways, every later one is real. */
function firstly(...kinds: readonly (keyof typeof BAD_WORKERS)[]) {
  let started = 0
  return (settings: PushSettings): Worker => {
    const kind = kinds[started++]
    if (kind === undefined) return startSendingWorker(settings)
    return new Worker(`const parent = require('node:worker_threads').parentPort; ${BAD_WORKERS[kind]}`, {
      eval: true,
    })
  }
}

t.test('a push arrives as it was sent, and its outcome comes back', async t => {
  const { apns, push } = await startApns(t)
  const { byApns, lost } = open(t, push)
  t.same(await byApns(), { kind: 'sent', environment: 'production' })
  t.equal(apns.pushes[0]!.body, JSON.stringify(apnsPush().payload))
  apns.answerNext({ status: 410, reason: 'Unregistered', timestamp: 1_790_000_000_123 })
  t.same(await byApns(), { kind: 'token-gone', reason: 'Unregistered', sinceMs: 1_790_000_000_123 })
  t.same(lost, [])
})

t.test('a push is sealed in the thread', async t => {
  const { apns, push } = await startApns(t)
  const { byApns } = open(t, push)
  const pushKey = Buffer.alloc(32, 7).toString('base64')
  t.match(await byApns({ sealing: { pushKey, deviceId: '5' } }), { kind: 'sent' })
  const { aps, ...members } = apnsPush().payload
  const { sealed, ...others } = apns.pushes[0]!.payload
  t.same(others, { aps })
  t.same(await openPush(pushKey, '5', `${sealed}`), members)
})

t.test('pushes to browsers leave by the thread, too', async t => {
  const webPush = { privateKey: generateVapidKey(randomBytes), contact: 'mailto:push@example.org' }
  const { thread } = open(t, { webPush: { ...webPush, hosts: ['push.example'] } })
  const subscription = { endpoint: 'https://elsewhere.example/', keys: { p256dh: '', auth: '' } }
  const sent = { subscription, urgency: 'high', ttlSeconds: 57, payload: {} } as const
  t.same(await thread.senders.webPush!.send(sent), { kind: 'refused', reason: 'host-not-allowed' })
})

t.test('each of many pushes by two providers gets its own outcome', async t => {
  const fcm = await startFcmStandIn()
  t.teardown(() => fcm.close())
  const { apns, push } = await startApns(t)
  const { url, serviceAccount } = fcm
  const { thread, byApns } = open(t, { ...push, fcm: { url, serviceAccount } })
  apns.decide = ({ token }) => (token.endsWith('1') ? { status: 400, reason: 'BadTopic' } : { status: 200 })
  t.same(await thread.senders.fcm!.send(fcmPush('one')), { kind: 'sent' })
  fcm.answerNext(UNREGISTERED)
  t.match(await thread.senders.fcm!.send(fcmPush('two')), { kind: 'token-gone' })
  const outcomes = await Promise.all(
    Array.from({ length: 300 }, (_, at) =>
      at % 3 === 0 ? thread.senders.fcm!.send(fcmPush(`token-${at}`)) : byApns({ token: `${at % 2}` }),
    ),
  )
  const expected = outcomes.map((_, at) => (at % 3 === 0 || at % 2 === 0 ? 'sent' : 'refused'))
  t.same(
    outcomes.map(({ kind }) => kind),
    expected,
  )
})

t.test('outcomes may come in any order, and in any number of messages', async t => {
  const { push } = await startApns(t)
  const { byApns } = open(t, push, { startWorker: firstly('answers backwards') })
  const tokens = Array.from({ length: 20 }, (_, at) => `${at}`)
  const outcomes = await Promise.all(tokens.map(token => byApns({ token })))
  t.same(
    outcomes,
    tokens.map(reason => ({ kind: 'refused', reason })),
  )
})

t.test('a push that is no JSON fails alone', async t => {
  const { push } = await startApns(t)
  const { byApns } = open(t, push)
  const outcomes = await Promise.allSettled([byApns(), byApns({ payload: { callId: 1n } }), byApns()])
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
})

t.test('a thread that dies: what is under way is to be tried again, by the next one', async t => {
  const { apns, push } = await startApns(t)
  for (const kind of ['ends at a push', 'throws at a push', 'never starts'] as const) {
    const { byApns, lost } = open(t, push, { startWorker: firstly(kind) })
    t.same(await Promise.all([byApns(), byApns()]), [RETRY, RETRY], kind)
    t.equal(lost.length, 1)
    t.notMatch(lost[0], SECRET, 'words of an error may hold a key or a token')
    t.match(await byApns(), { kind: 'sent' })
  }
  t.equal(apns.pushes.length, 3)
})

t.test('so do pushes that the other side has, and has not answered', async t => {
  const { apns, push } = await startApns(t)
  const workers: Worker[] = []
  const startWorker = (settings: PushSettings) => {
    workers.push(startSendingWorker(settings))
    return workers.at(-1)!
  }
  const { byApns, lost } = open(t, push, { startWorker })
  apns.answerNext('silence', 'silence')
  const outcomes = [byApns(), byApns()]
  await apns.received(2)
  await workers[0]!.terminate()
  t.same(await Promise.all(outcomes), [RETRY, RETRY])
  t.match(await byApns(), { kind: 'sent' })
  t.same([workers.length, lost.length], [2, 1])
})

t.test('a thread that answers nothing is ended', async t => {
  const { push } = await startApns(t)
  const { byApns, lost } = open(t, push, { startWorker: firstly('silent'), silentMs: 50 })
  t.same(await Promise.all([byApns(), byApns()]), [RETRY, RETRY])
  t.same(lost, ['it has fallen silent'])
})

t.test('at the close what is under way ends as to be tried again, and so does every later push', async t => {
  const { apns, push } = await startApns(t)
  const { thread, byApns, lost } = open(t, push)
  apns.answerNext('silence')
  const underWay = byApns()
  await apns.received(1)
  const justSent = byApns()
  await thread.close()
  t.same(await Promise.all([underWay, justSent, byApns()]), [RETRY, RETRY, RETRY])
  await thread.close()
  t.equal(apns.pushes.length, 1)
  t.same(lost, [])
})

t.test('a key that can sign nothing is said at once, in the words of its sender', async t => {
  const apns = { key: `${SECRET} key`, keyId: 'ABC123DEFG', teamId: 'DEF123GHIJ' }
  const account = { client_email: 'a@b.example', private_key: `${SECRET} key`, project_id: 'p' }
  const fcm = { serviceAccount: account }
  for (const [push, direct] of [
    [{ apns }, () => new ApnsSender(apns)],
    [{ fcm }, () => new FcmSender(fcm)],
  ] as const) {
    const said = wordsOf(() => new SendingThread({ push, onLost: () => undefined }))
    t.equal(said, wordsOf(direct))
    t.notMatch(said, SECRET)
  }
})

t.test('a process ends by itself once nothing is under way', async t => {
  const { apns, push } = await startApns(t)
  apns.decide = () => ({ status: 400, reason: 'BadTopic' })
  const program = `
    import { SendingThread } from ${JSON.stringify(builtProgram('src/delivery/sending-thread'))}
    const { senders } = new SendingThread({ push: ${JSON.stringify(push)}, onLost: console.error })
    console.log((await senders.apns.send(${JSON.stringify(apnsPush())})).reason)`
  const folder = t.testdir({ 'program.mjs': program })
  const ended = await promisify(execFile)(process.execPath, [join(folder, 'program.mjs')])
  t.match(ended, { stdout: 'BadTopic\n', stderr: '' })
})

function wordsOf(act: () => unknown): string {
  try {
    act()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}
