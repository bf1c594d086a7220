/** Webhooks of the built server at a receiver that listens, and the commands by which its operator has endpoints. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import { sendWebhook } from '../../src/delivery/webhook.ts'
import { runScript } from '../support/commands.ts'
import { DevPerson } from '../support/dev-person.ts'
import { startServer } from '../support/server.ts'
import { type ReceivedSms, type SmsGateway, startSmsGateway } from '../support/sms-gateway.ts'
import { WEBHOOK_SECRET } from '../support/webhooks.ts'
import { blocksOf } from '../support/your-users.ts'

async function startReceiver(t: Test): Promise<SmsGateway> {
  const receiver = await startSmsGateway()
  t.teardown(() => receiver.close())
  return receiver
}

function verified(secret: string, { body, headers }: ReceivedSms) {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as {
    readonly type: string
    readonly data: { readonly seq: number; readonly subject: string }
  }
}

t.test('the endpoint of the settings hears of two people, in order', async t => {
  const receiver = await startReceiver(t)
  const server = await startServer({
    dataFolder: join(t.testdir(), 'data'),
    environment: { CALLSIGN_WEBHOOK_URL: receiver.url, CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET },
  })
  t.teardown(() => server.end())
  const [ann, bob] = [await DevPerson.signIn(server.http, 'Ann'), await DevPerson.signIn(server.http, 'Bob')]
  await ann.befriend(bob)
  const callId = await ann.call(bob)
  await ann.app.get(200, `POST /app/api/call/${callId}/end`, {})
  await receiver.received(10)
  const events = receiver.requests.map(request => verified(WEBHOOK_SECRET, request))
  t.same(
    events.map(({ data }) => data.seq).sort((a, b) => a - b),
    Array.from({ length: 10 }, (_, at) => at + 1),
  )
  const ofSubject = (subject: string) =>
    events.filter(({ data }) => data.subject === subject).map(({ type }) => type)
  t.same(ofSubject(`call:${callId}`), ['call.started', 'call.missed', 'call.ended'])
  const pair = [ann, bob].map(({ userId }) => BigInt(userId)).sort((a, b) => (a < b ? -1 : 1))
  for (const { userId } of [ann, bob]) {
    const contact = BigInt(userId) === pair[0] ? ['contact.added'] : []
    t.same(ofSubject(`user:${userId}`).sort(), [
      ...contact,
      'device.added',
      'session.started',
      'user.created',
    ])
  }
  for (const { body } of receiver.requests) t.notMatch(body, /example\.org|"Ann"|"Bob"/, 'by ids alone')
})

t.test('the receiver of the page takes an event, and nothing else', async t => {
  const { text: program = '' } =
    blocksOf('build/backend.md').find(({ test }) => test === 'test/flows/webhooks.test.ts') ?? {}
  const file = join(t.testdir(), 'receiver.mjs')
  writeFileSync(file, program)
  process.env.WEBHOOK_SECRET = WEBHOOK_SECRET
  t.teardown(() => delete process.env.WEBHOOK_SECRET)
  const { eventOf } = (await import(file)) as { eventOf: (headers: object, body: string) => unknown }
  const receiver = await startReceiver(t)
  const body = '{"type":"webhook.test"}'
  await sendWebhook({ url: receiver.url, secrets: [WEBHOOK_SECRET], webhookId: 'evt_1', body }, Date.now())
  const [{ headers }] = receiver.requests as [ReceivedSms]
  t.same(eventOf(headers, body), { type: 'webhook.test' })
  t.throws(() => eventOf(headers, `${body} `))
})

t.test(
  'a server that is killed before it knows that an event was taken sends it again, under its id',
  async t => {
    const receiver = await startReceiver(t)
    const dataFolder = join(t.testdir(), 'data')
    const environment = { CALLSIGN_WEBHOOK_URL: receiver.url, CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET }
    receiver.answerNext('silence')
    const first = await startServer({ dataFolder, environment })
    await DevPerson.signIn(first.http, 'Ann')
    await receiver.received(1)
    await first.end('SIGKILL')
    const before = receiver.requests.length
    const second = await startServer({ dataFolder, environment })
    t.teardown(() => second.end())
    await receiver.received(before + 3)
    const named = ({ body, headers }: ReceivedSms) => `${headers['webhook-id']} ${body}`
    const again = receiver.requests.slice(before).map(named)
    for (const request of receiver.requests.slice(0, before)) t.ok(again.includes(named(request)))
  },
)

t.test('an endpoint made, tried, rotated and deleted by commands', async t => {
  const receiver = await startReceiver(t)
  const dataFolder = join(t.testdir(), 'data')
  const server = await startServer({ dataFolder })
  t.teardown(() => server.end())
  const run = (...args: string[]) =>
    runScript('webhook', [...args, '--dev', '--url', server.serverApi], { CALLSIGN_DATA_DIR: dataFolder })
  const made = await run('create', '--endpoint', receiver.url, '--events', 'user.created')
  t.equal(made.code, 0, made.stderr)
  const [, id = ''] = /(wh_[0-9a-f]{12})/.exec(made.stderr) ?? []
  t.match((await run('list')).lines, [{ id, url: receiver.url, events: ['user.created'], waiting: 0 }])
  t.equal((await run('test', '--id', id)).code, 0)
  t.equal(JSON.parse(receiver.requests[0]!.body).type, 'webhook.test')
  receiver.answerNext({ status: 500 })
  t.match(await run('test', '--id', id), { code: 1, stderr: /http-500/ })
  t.equal((await run('rotate', '--id', id)).code, 0)
  await DevPerson.signIn(server.http, 'Ann')
  await receiver.received(3)
  t.match(receiver.requests[2]!.headers['webhook-signature'], /^v1,\S+ v1,\S+$/)
  t.match(await run('retry', '--id', id), { code: 0, stderr: /0 events/ })
  t.same((await run('dead', '--id', id)).lines, [])
  t.equal((await run('delete', '--id', id)).code, 0)
  t.same((await run('list')).lines, [])
  t.match(await run('create', '--endpoint', 'http://app.example.org/'), { code: 2, stderr: /\/url/ })
  t.match(await run('delete', '--id', id), { code: 2, stderr: /WEBHOOK_NOT_FOUND/ })
  t.match(await run('dance'), { code: 2, stderr: /there is no dance/ })
})

t.test('without the settings of the server the command says how to name them, in sentences', async t => {
  const { code, stderr } = await runScript('webhook', ['list'])
  t.equal(code, 2)
  t.match(stderr, /CALLSIGN_SECRET is missing[\s\S]*by --config FILE, or say --dev\.\n$/)
  t.notMatch(stderr, /^ +at /m, 'no stack')
})
