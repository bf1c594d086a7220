/** Two nodes on one PostgreSQL: one server to its clients, also when either of them is killed. */

import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { endStory, friends, startCall } from '../support/call-story.ts'
import { freePort } from '../support/free-port.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { sharedPostgres, skipWithoutPostgres } from '../support/postgres.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { SocketClient } from '../support/socket-client.ts'

async function nodeSettings(name: string) {
  return { CALLSIGN_NODE_NAME: name, CALLSIGN_NODE_PORT: String(await freePort()) }
}

async function startTwo(t: Test) {
  const postgres = await sharedPostgres(t)
  const environment = {
    CALLSIGN_DATABASE_URL: await postgres.newDatabase(),
    CALLSIGN_NODE_HOST: '127.0.0.1',
    CALLSIGN_FRONTS: '1',
    ...(await nodeSettings('one')),
  }
  const folder = t.testdir()
  const story = await Rehearsal.start(t, { dataFolder: join(folder, 'one'), environment })
  const settingsOfTwo = await nodeSettings('two')
  const startTwoAgain = async () => {
    const two = await story.startBeside(join(folder, 'two'), settingsOfTwo)
    t.teardown(() => two.end('SIGKILL'))
    return two
  }
  return { postgres, story, two: await startTwoAgain(), startTwoAgain }
}

/** Tries until it succeeds: a node refuses while it takes over. */
async function eventually<Result>(act: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await act()
    } catch {
      await setTimeout(20)
    }
  }
}

t.test(
  'what is acknowledged at a node that follows, after UNSUBSCRIBE, is done with',
  { skip: skipWithoutPostgres },
  async t => {
    const { story, two } = await startTwo(t)
    const [, bob] = await friends(story)
    const listen = async () => {
      const peer = await SocketClient.connect('websocket', two.http, bob.app.accessToken!)
      await peer.subscribe('/user/queue/contacts', 'q', 'ack:client-individual\n')
      return peer
    }
    const peer = await listen()
    const request = await peer.message()
    peer.write('UNSUBSCRIBE\nid:q\n\n\0')
    peer.write(`ACK\nid:${headerOf(request, 'ack')}\nreceipt:a\n\n\0`)
    await peer.receipt('a')
    peer.destroy()
    t.same(await (await listen()).disconnect(), [])
    t.equal(await two.end(), 0)
  },
)

t.test('a call between two nodes', { skip: skipWithoutPostgres }, async t => {
  const { story, two } = await startTwo(t)
  const [ann, bob] = await friends(story)
  bob.app.http = two.http
  await ann.connect()
  await bob.connect()
  const { callId, callKey } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await ann.watch(callId)
  const joined = await bob.get(200, `POST /app/api/call/${callId}/join`)
  t.same(await bob.open(joined.encryptedAESKey, ann.userId, ann.deviceId), callKey)
  t.ok(await ann.next('participant_joined'))
  await ann.get(200, 'POST /app/api/call/end', { callId })
  t.match((await bob.next('call_ended')).body, { callId, status: 'ended' })
  t.equal(await two.end(), 0)
  await endStory(t, story, ann, bob)
})

t.test(
  'a call goes on when the writer is killed, at the other node',
  { skip: skipWithoutPostgres },
  async t => {
    const { story, two } = await startTwo(t)
    const [ann, bob] = await friends(story)
    bob.app.http = two.http
    await ann.connect()
    await bob.connect()
    const { callId } = await startCall(ann, bob)
    await bob.next('call_invitation')
    await bob.get(200, `POST /app/api/call/${callId}/join`)
    story.server.process.kill('SIGKILL')
    // Bob's node has no call to tell of any more, so it asks him to come back.
    for (const phone of [ann, bob]) await phone.closed()
    ann.app.http = two.http
    t.match(await ann.get(200, 'GET /app/api/user'), { userId: ann.userId }, 'reads go on')
    for (const phone of [ann, bob]) await eventually(() => phone.connect())
    const record = await eventually(() => ann.get(200, `GET /app/api/call/${callId}`))
    t.match(record, { status: 'active' })
    await eventually(() => ann.get(200, 'POST /app/api/call/end', { callId }))
    t.match((await bob.next('call_ended')).body, { callId, status: 'ended' })
    t.equal(await two.end(), 0)
  },
)

t.test(
  'a node that is killed leaves the other one as it was, and comes back',
  { skip: skipWithoutPostgres },
  async t => {
    const { story, two, startTwoAgain } = await startTwo(t)
    const [ann, bob] = await friends(story)
    bob.app.http = two.http
    await ann.connect()
    await bob.connect()
    two.process.kill('SIGKILL')
    await bob.closed()
    const { callId } = await startCall(ann, bob)
    const again = await startTwoAgain()
    bob.app.http = again.http
    await bob.connect()
    t.match((await bob.next('call_invitation')).body, { callId })
    await bob.get(200, `POST /app/api/call/${callId}/join`)
    await ann.get(200, 'POST /app/api/call/end', { callId })
    t.match((await bob.next('call_ended')).body, { callId })
    t.equal(await again.end(), 0)
    t.equal(await story.server.end(), 0)
  },
)
