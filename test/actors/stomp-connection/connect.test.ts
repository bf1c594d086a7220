/** Connecting, being told, heart-beats and the ways a connection is ended: the stories of sections C, D and H. */

import t from 'tap'
import type { StompConnectionMessage } from '../../../actors/messages.ts'
import type { RunConnect } from '../../../actors/stomp-connection/intake.ts'
import { TokenBuckets } from '../../../src/domain/token-bucket.ts'
import type { MemoryClient } from '../../support/memory-client.ts'
import type { ClientFrame } from '../../support/naive-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { itemOf } from '../../support/notice-item.ts'
import { connectionOf, newPerson, openTestActors } from '../../support/test-actors.ts'

const CONNECT = 'CONNECT\naccept-version:1.2\nhost:h\n'

t.test('C-12: who says nothing for ten seconds is closed with 4408', async t => {
  const actors = openTestActors(t)
  const peer = actors.open()
  await actors.pass(9_900)
  t.notOk(peer.isClosed)
  await actors.pass(300)
  t.equal(peer.closeCode, 4408)
  t.equal(headerOf(peer.take()[0], 'reason'), 'connect_timeout')
})

t.test('C-13: octets that dribble in move no deadline', async t => {
  const actors = openTestActors(t)
  const peer = actors.open()
  for (const octet of 'CONNECT\na') {
    peer.write(octet)
    await actors.pass(1_000)
  }
  t.notOk(peer.isClosed)
  await actors.pass(1_200)
  t.equal(peer.closeCode, 4408)
})

t.test('a CONNECT and the subscriptions wait for a turn, and no deadline ends who waits', async t => {
  const waiting: (() => void)[] = []
  const areConnects: boolean[] = []
  const runConnect: RunConnect = (read, isConnect) => {
    waiting.push(read)
    areConnects.push(isConnect)
  }
  const actors = openTestActors(t, { runConnect })
  const ann = newPerson()
  const peer = actors.open()
  peer.write(`${CONNECT}Authorization:Bearer ${ann.token}\n\n\0`)
  await actors.pass(25_000)
  t.same(peer.take(), [])
  waiting.shift()?.()
  await actors.settle()
  t.same(
    peer.take().map(({ command }) => command),
    ['CONNECTED'],
  )
  peer.write('SUBSCRIBE\nid:1\ndestination:/user/queue/calls\nreceipt:r\n\n\0')
  await actors.settle()
  t.same(peer.take(), [])
  waiting.shift()?.()
  await actors.settle()
  t.same(
    peer.take().map(({ command }) => command),
    ['RECEIPT'],
  )
  peer.write('SUBSCRIBE\nid:2\ndestination:/user/queue/contacts\nreceipt:r\n\n\0')
  await actors.settle()
  t.same(
    peer.take().map(({ command }) => command),
    ['RECEIPT'],
    'who is connected waits no more',
  )
  t.same(areConnects, [true, false])
})

t.test('a CONNECT in two pieces waits as one with both', async t => {
  const areConnects: boolean[] = []
  const runConnect: RunConnect = (read, isConnect) => {
    areConnects.push(isConnect)
    read()
  }
  const actors = openTestActors(t, { runConnect })
  const peer = actors.open()
  for (const piece of [CONNECT, `Authorization:Bearer ${newPerson().token}\n\n\0`]) {
    peer.write(piece)
    await actors.settle()
  }
  t.same(
    peer.take().map(({ command }) => command),
    ['CONNECTED'],
  )
  t.same(areConnects, [true, true])
})

t.test('a client that goes while its CONNECT waits is not signed in', async t => {
  const waiting: (() => void)[] = []
  const actors = openTestActors(t, { runConnect: connect => waiting.push(connect) })
  const ann = newPerson()
  const peer = actors.open()
  peer.write(`${CONNECT}Authorization:Bearer ${ann.token}\n\n\0`)
  await actors.settle()
  peer.drop()
  await actors.settle()
  waiting.shift()?.()
  await actors.settle()
  t.same(actors.presence, [])
})

t.test('C-16: an expired token is to be refreshed, which other bad ones are not', async t => {
  const actors = openTestActors(t)
  for (const [token, reason, retry] of [
    ['expired', 'token_expired', 'refresh'],
    ['n0ns3ns3', 'token_invalid', 'false'],
  ] as const) {
    const peer = actors.open()
    peer.write(`${CONNECT}Authorization:Bearer ${token}\n\n\0`)
    await actors.settle()
    const [error] = peer.take()
    t.same(
      [headerOf(error, 'code'), headerOf(error, 'reason'), headerOf(error, 'retry')],
      ['401', reason, retry],
    )
    t.equal(peer.closeCode, 4401)
    t.notMatch(error?.octets.toString(), /n0ns3ns3|Bearer/)
  }
})

t.test('a refusal has its title in the language of the CONNECT', async t => {
  const actors = openTestActors(t)
  for (const [language, title] of [
    ['', 'No access token'],
    ['accept-language:de-AT,en;q=0.5\n', 'Kein Zugriffstoken'],
    ['accept-language:vi\n', 'Thiếu mã truy cập'],
    ['accept-language:fr\n', 'No access token'],
  ] as const) {
    const peer = actors.open()
    peer.write(`${CONNECT}${language}\n\0`)
    await actors.settle()
    t.match(JSON.parse(peer.take()[0]!.body.toString()), { code: 'TOKEN_MISSING', title })
  }
})

t.test('C-20, C-21: the upgrade may carry the token, and CONNECT’s token counts more', async t => {
  const actors = openTestActors(t)
  const [ann, bea] = [newPerson(), newPerson()]
  const native = actors.open({ authorization: `Bearer ${ann.token}` })
  native.write(`${CONNECT}\n\0`)
  const both = actors.open({ authorization: `Bearer ${ann.token}` })
  both.write(`${CONNECT}Authorization:Bearer ${bea.token}\n\n\0`)
  await actors.settle()
  t.equal(headerOf(native.take()[0], 'user-name'), String(ann.userId))
  t.equal(headerOf(both.take()[0], 'user-name'), String(bea.userId))
})

t.test('the token may stand where apps put it', async t => {
  const actors = openTestActors(t)
  const { token, userId } = newPerson()
  for (const header of [
    `AUTHORIZATION:bearer ${token}`,
    `X-Authorization:${token}`,
    `token:${token}`,
    `access-token:Bearer ${token}`,
    `passcode:${token}`,
    `login:${userId}\npasscode:Bearer ${token}`,
    `login:\npasscode:${token}`,
    `Authorization:\npasscode:${token}`,
    `login:somebody else\nAuthorization:${token}`,
    `login:app\npasscode:${token}`,
  ]) {
    const peer = actors.open()
    peer.write(`${CONNECT}${header}\n\n\0`)
    await actors.settle()
    t.equal(peer.take()[0]?.command, 'CONNECTED', header.split(':')[0]!)
  }
})

t.test('a session without a device is refused, and is no failed sign-in', async t => {
  const actors = openTestActors(t)
  const peer = actors.open()
  peer.write(`${CONNECT}Authorization:Bearer 77.\n\n\0`)
  await actors.settle()
  const [error] = peer.take()
  t.same([headerOf(error, 'code'), headerOf(error, 'reason')], ['403', 'device_not_registered'])
  t.equal(peer.closeCode, 1008)
  t.same(actors.failedConnects, [])
})

t.test('C-25: the newest connection of a device replaces the older', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const older = await actors.connect(person)
  subscribe(older, '/user/queue/dev.t')
  const newer = await actors.connect(person)
  const [error] = older.take()
  t.same([headerOf(error, 'reason'), headerOf(error, 'retry')], ['replaced', 'false'])
  t.equal(older.closeCode, 4409)
  subscribe(newer, '/user/queue/dev.t')
  await actors.keep(person, 'dev.t', 'once')
  t.same(newer.take().map(bodyOf), ['once'])
  t.same(older.take(), [])
  t.same(actors.presence, [`${person.token} online`], 'the device never was away')
  newer.drop()
  await actors.settle()
  t.same(actors.ended, ['replaced', 'closed'])
})

t.test('C-26: a revoked session is ended with 4401, a removed device with 4403', async t => {
  const actors = openTestActors(t)
  const [ann, bea] = [newPerson(), newPerson()]
  const [one, two] = [await actors.connect(ann), await actors.connect(bea)]
  const revoke = (user: bigint, revoked: object) =>
    actors.users(String(user)).tellControl({ kind: 'revoked', revoked } as never)
  revoke(ann.userId, { kind: 'session', sessionId: Buffer.from(ann.token) })
  revoke(bea.userId, { kind: 'device', deviceId: bea.deviceId })
  await actors.pass(900)
  t.same([one.closeCode, headerOf(one.take()[0], 'reason')], [4401, 'session_revoked'])
  t.same([two.closeCode, headerOf(two.take()[0], 'reason')], [4403, 'device_removed'])
})

t.test('the event that tells of a revoked session comes before the ERROR', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  subscribe(peer, '/user/queue/account')
  await actors.settle()
  t.same(
    peer.take().map(frame => headerOf(frame, 'type')),
    ['badge'],
  )
  const notice = {
    kind: 'session_revoked',
    reason: 'logged_out_everywhere',
    eventId: 'e',
    sentAtMs: 1,
  } as const
  await actors.database.change(change => {
    const { userId, deviceId, token } = person
    actors.inbox.append(change, userId, deviceId, { item: itemOf(notice) })
    change.happened({ kind: 'session-ended', userId, sessionId: Buffer.from(token) })
  }, actors.world.nowMs())
  await actors.settle()
  const [event, error] = peer.take()
  t.same([headerOf(event, 'type'), headerOf(error, 'reason')], ['session_revoked', 'session_revoked'])
  t.equal(peer.closeCode, 4401)
})

t.test('C-27: an address with too many bad CONNECTs must wait; good ones are let in', async t => {
  const buckets = new TokenBuckets({ count: 30, perMs: 10_000, burst: 30 }, 10)
  const actors = openTestActors(t, {
    deps: {
      admission: {
        connected: () => 0,
        failedConnect: network => buckets.take(network, actors.world.monotonicMs()),
      },
    },
  })
  const codes: (string | undefined)[] = []
  let last: ClientFrame | undefined
  for (let tries = 0; tries < 31; tries++) {
    const peer = actors.open()
    peer.write(`${CONNECT}passcode:bad\n\n\0`)
    await actors.settle()
    last = peer.take()[0]
    codes.push(headerOf(last, 'code'))
  }
  t.same([...new Set(codes.slice(0, 30))], ['401'])
  t.equal(codes[30], '429')
  t.ok(Number(headerOf(last, 'retry-after')) > 0)
  t.ok(JSON.parse(String(last?.body)).retryIn > 0)
  t.ok(await actors.connect(newPerson()))
})

t.test('a good CONNECT counts for its session, which may have to wait', async t => {
  const asked: string[] = []
  const person = newPerson()
  const actors = openTestActors(t, {
    deps: {
      admission: {
        connected(_, session) {
          asked.push(`connected ${session}`)
          return asked.length > 1 ? 2_500 : 0
        },
        failedConnect(_, authorization) {
          asked.push(`failed ${authorization}`)
          return 0
        },
      },
    },
  })
  const connect = async (token: string) => {
    const peer = actors.open()
    peer.write(`${CONNECT}passcode:${token}\n\n\0`)
    await actors.settle()
    return peer.take()[0]
  }
  t.equal((await connect(person.token))?.command, 'CONNECTED')
  const refused = await connect(person.token)
  t.same([headerOf(refused, 'code'), headerOf(refused, 'retry-after')], ['429', '2500'])
  t.equal(headerOf(await connect('bad'), 'code'), '401')
  t.match(asked, [/^connected /, asked[0], 'failed Bearer bad'])
})

t.test('C-28: CONNECTED says what a client has to know, in plain text', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = actors.open()
  peer.write(`${CONNECT}Authorization:Bearer ${person.token}\n\n\0`)
  await actors.settle()
  const [frame] = peer.take()
  t.match(headerOf(frame, 'server'), /^[\w-]+\/\d/)
  t.match(headerOf(frame, 'session'), peer.id)
  t.equal(headerOf(frame, 'user-name'), String(person.userId))
  t.equal(headerOf(frame, 'device'), String(person.deviceId))
  t.same([headerOf(frame, 'inbox-epoch'), headerOf(frame, 'inbox-offset')], ['0', '0'])
  t.equal(headerOf(frame, 'max-frame'), '262144')
  t.equal(headerOf(frame, 'ring-ttl'), '60000')
  t.equal(headerOf(frame, 'server-time'), String(actors.world.nowMs()))
  t.notMatch(frame?.octets.toString(), /[\\\r]/)
})

t.test('CONNECTED says where the inbox is', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  await actors.keep(person, 'dev.t', 'a', 'b')
  const { epoch } = actors.head(person)
  const peer = actors.open()
  peer.write(`${CONNECT}token:${person.token}\n\n\0`)
  await actors.settle()
  const [frame] = peer.take()
  t.equal(headerOf(frame, 'inbox-epoch'), epoch.toString(36))
  t.equal(headerOf(frame, 'inbox-offset'), '2')
})

t.test('D-02, D-03: without heart-beats nothing beats and silence is no fault', async t => {
  const actors = openTestActors(t)
  const peers = [
    await actors.connect(newPerson(), '1.2', 'heart-beat:0,0\n'),
    await actors.connect(newPerson()),
  ]
  await actors.pass(60_000)
  for (const peer of peers) t.same([peer.isClosed, peer.beats], [false, 0])
})

t.test('D-04: a client that promised beats and is silent is gone after 2.5 periods and a second', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person, '1.2', 'heart-beat:1000,0\n')
  await actors.pass(25_500)
  t.notOk(peer.isClosed)
  await actors.pass(1_500)
  t.equal(peer.closeCode, 4408)
  t.equal(headerOf(peer.take()[0], 'reason'), 'heart_beat_missed')
  t.same(actors.presence, [`${person.token} online`, `${person.token} offline`])
})

t.test('D-05, D-06, D-13: any octet is life, be it a beat, a frame or half of one', async t => {
  const actors = openTestActors(t)
  const beats = () => actors.connect(newPerson(), '1.2', 'heart-beat:1000,0\n')
  const [beating, sending, dribbling] = [await beats(), await beats(), await beats()]
  dribbling.write('SEND\ndestination:/topic/dev.t\ncontent-length:100\n\n')
  for (let second = 0; second < 60; second++) {
    beating.write('\n')
    sending.write('SEND\ndestination:/topic/dev.x\n\nx\0')
    dribbling.write('\n')
    await actors.pass(1_000)
  }
  t.same(
    [beating, sending, dribbling].map(({ isClosed }) => isClosed),
    [false, false, false],
  )
})

t.test('D-01, D-08: the server beats when it has nothing to say, and not when it has', async t => {
  const actors = openTestActors(t)
  const quiet = await actors.connect(newPerson(), '1.2', 'heart-beat:0,1000\n')
  const busy = await actors.connect(newPerson(), '1.2', 'heart-beat:0,1000\n')
  for (let second = 0; second < 60; second++) {
    if (second % 5 === 0)
      busy.write('SUBSCRIBE\nid:s\ndestination:/topic/dev.t\nreceipt:r\n\n\0UNSUBSCRIBE\nid:s\n\n\0')
    await actors.pass(1_000)
  }
  t.ok(quiet.beats >= 5 && quiet.beats <= 6, `${quiet.beats} beats in a minute of every ten seconds`)
  t.equal(busy.beats, 0)
})

t.test('D-12: a 1.0 session sends no beats', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson(), '1.0', 'heart-beat:1000,1000\n')
  await actors.pass(60_000)
  t.same([peer.isClosed, peer.beats], [false, 0])
})

t.test('I-19: after a pause of the process, a beat that lies in the socket saves its client', async t => {
  const actors = openTestActors(t)
  const heartBeat = 'heart-beat:10000,10000\n'
  const alive = await actors.connect(newPerson(), '1.2', heartBeat)
  const gone = await actors.connect(newPerson(), '1.2', heartBeat)
  // The clock jumps, timers come first, and only then does the loop read its sockets.
  actors.world.jump(40_000)
  actors.world.run()
  alive.write('\n')
  await actors.pass(1_000)
  t.same([alive.isClosed, gone.closeCode], [false, 4408])
})

t.test('H-10: a stopping server says so, and when to come back, which differs', async t => {
  const random = [0.1, 0.9]
  const actors = openTestActors(t)
  actors.world.random = () => random.shift() ?? 0.5
  const peers = [await actors.connect(newPerson()), await actors.connect(newPerson())]
  const draining: StompConnectionMessage = { kind: 'dismissed', why: 'draining' }
  for (const peer of peers) connectionOf(actors, peer).tellControl(draining)
  await actors.settle()
  const errors = peers.map(peer => peer.take()[0])
  for (const [at, peer] of peers.entries()) {
    t.equal(peer.closeCode, 1012)
    t.same([headerOf(errors[at], 'reason'), headerOf(errors[at], 'retry')], ['draining', 'after'])
  }
  t.not(headerOf(errors[0], 'retry-after'), headerOf(errors[1], 'retry-after'))
  t.equal(actors.connections.count, 0)
})

t.test(
  'a connection that is to move comes back at once, when the server has done what it asked for',
  async t => {
    const actors = openTestActors(t)
    const peer = await actors.connect(newPerson())
    peer.write('SUBSCRIBE\nid:a\ndestination:/user/queue/calls\nreceipt:r\n\n\0')
    actors.world.run()
    connectionOf(actors, peer).tellControl({ kind: 'moved' })
    await actors.settle()
    const [receipt, error] = peer.take()
    t.equal(headerOf(receipt, 'receipt-id'), 'r')
    t.same(
      ['reason', 'retry', 'retry-after', 'code'].map(name => headerOf(error, name)),
      ['moved', 'after', '0', '503'],
    )
    t.same([peer.closeCode, actors.ended, actors.faults], [1012, ['moved'], []])
  },
)

t.test('one that follows a call, or has not signed in yet, does not move', async t => {
  const actors = openTestActors(t)
  const following = await actors.connect(newPerson())
  following.write('SUBSCRIBE\nid:a\ndestination:/topic/dev.a\n\n\0')
  const coming = actors.open()
  await actors.settle()
  for (const peer of [following, coming]) connectionOf(actors, peer).tellControl({ kind: 'moved' })
  await actors.settle()
  t.same([following.isClosed, coming.isClosed, actors.ended], [false, false, []])
})

t.test('a connection that opens while the server stops hears so at once, in the same words', async t => {
  const actors = openTestActors(t, { deps: { isDraining: () => true } })
  const peer = actors.open()
  await actors.settle()
  const [error] = peer.take()
  t.same(
    ['reason', 'retry', 'code'].map(name => headerOf(error, name)),
    ['draining', 'after', '503'],
  )
  t.match(headerOf(error, 'retry-after'), /^\d{4,5}$/)
  t.equal(peer.closeCode, 1012)
  t.same([actors.ended, actors.faults], [['draining'], []])
})

t.test('H-11: a thousand short connections leave nothing behind', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  let receipts = 0
  for (let round = 0; round < 1_000; round++) {
    const peer = actors.open()
    peer.write(`${CONNECT}token:${person.token}\nheart-beat:10000,10000\n\n\0`)
    peer.write(
      'SUBSCRIBE\nid:a\ndestination:/topic/dev.t\n\n\0SUBSCRIBE\nid:b\ndestination:/user/queue/calls\n\n\0',
    )
    peer.write('SEND\ndestination:/topic/dev.none\nreceipt:r\n\nx\0DISCONNECT\n\n\0')
    actors.world.run()
    peer.flush()
    receipts += peer.take().filter(({ command }) => command === 'RECEIPT').length
    actors.peers.length = 0
  }
  await actors.pass(180_000)
  t.equal(receipts, 1_000)
  t.equal(actors.connections.count, 0)
  const { kinds, timersArmed } = actors.system.figures()
  t.same(
    Object.entries(kinds).map(([kind, { live }]) => [kind, live]),
    [
      ['presence', 0],
      ['dev-topic', 0],
      ['stomp-connection', 0],
    ],
  )
  t.equal(timersArmed, 0)
})

t.test('a message to a connection that is no more makes none', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  const session = connectionOf(actors, peer)
  peer.drop()
  await actors.settle()
  session.tell({ kind: 'news' })
  session.tellControl({ kind: 'dismissed', why: 'replaced' })
  await actors.settle()
  t.equal(actors.system.figures().kinds['stomp-connection']?.live, 0)
})

t.test('a session that fails ends its connection and no other', async t => {
  const actors = openTestActors(t, {
    deps: {
      newEventId: () => {
        throw new Error('planted')
      },
    },
  })
  const person = newPerson()
  const [peer, other] = [await actors.connect(person), await actors.connect(newPerson())]
  subscribe(peer, '/user/queue/errors')
  peer.write('SEND\ndestination:/nowhere\n\nx\0')
  await actors.settle()
  t.same([headerOf(peer.take()[0], 'code'), peer.closeCode], ['500', 1011])
  t.notOk(other.isClosed)
  t.match(actors.failures, [/planted/])
  t.equal(actors.connections.of(person.userId).length, 0)
})

function subscribe(peer: MemoryClient, destination: string): void {
  peer.write(`SUBSCRIBE\nid:${destination}\ndestination:${destination}\n\n\0`)
}

function bodyOf(frame: ClientFrame): string {
  return frame.body.toString()
}
