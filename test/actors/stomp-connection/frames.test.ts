/** Frames and their answers: destinations, refusals, transactions, rates, slow clients. */

import t from 'tap'
import type { DevTopicMessage } from '../../../actors/messages.ts'
import { SignalError } from '../../../src/errors.ts'
import { UNREAD_BYTES_MAX } from '../../../src/limits.ts'
import type { Ref } from '../../../src/runtime/actor.ts'
import { Broadcast } from '../../../src/stomp/broadcast.ts'
import type { InboxChange } from '../../../src/store/messages/device-inbox.ts'
import type { MemoryClient } from '../../support/memory-client.ts'
import type { ClientFrame } from '../../support/naive-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { connectionOf, newPerson, openTestActors, type TestActors } from '../../support/test-actors.ts'

const ERRORS = 'SUBSCRIBE\nid:errors\ndestination:/user/queue/errors\n\n\0'

function send(destination: string, body = 'x', more = ''): string {
  return `SEND\ndestination:${destination}\n${more}\n${body}\0`
}

function subscribe(destination: string, more = ''): string {
  return `SUBSCRIBE\nid:${destination}\ndestination:${destination}\n${more}\n\0`
}

function commands(frames: readonly ClientFrame[]): string[] {
  return frames.map(({ command }) => command)
}

function receipts(frames: readonly ClientFrame[]): (string | undefined)[] {
  return frames.filter(({ command }) => command === 'RECEIPT').map(frame => headerOf(frame, 'receipt-id'))
}

async function answered(actors: TestActors, peer: MemoryClient, frames: string): Promise<ClientFrame[]> {
  peer.write(frames)
  await actors.settle()
  return peer.take()
}

t.test('B-15: each receiver gets headers as its version writes them', async t => {
  const actors = openTestActors(t)
  const [in12, in10] = [await actors.connect(newPerson()), await actors.connect(newPerson(), '1.0')]
  for (const peer of [in12, in10]) await answered(actors, peer, subscribe('/topic/dev.t'))
  in12.write(send('/topic/dev.t', 'x', 'k:a\\nb\n'))
  await actors.settle()
  t.match(in12.take()[0]?.octets.toString(), '\nk:a\\nb\n')
  t.match(in10.take()[0]?.octets.toString(), '\nk:a b\n')
})

t.test('E-09: other users’ destinations are refused alike, whether they exist or not', async t => {
  const actors = openTestActors(t)
  const other = newPerson()
  await actors.connect(other)
  const answers: string[] = []
  for (const userId of [String(other.userId), '18446744073709551615', 'nobody']) {
    for (const destination of [`/user/${userId}/queue/calls`, `/topic/user.${userId}`]) {
      const peer = await actors.connect(newPerson())
      const [error] = await answered(actors, peer, subscribe(destination))
      t.equal(peer.closeCode, 1008)
      answers.push(error!.octets.toString().replace(/memory-\d+/, ''))
    }
  }
  t.equal(new Set(answers).size, 1)
  t.match(answers[0], '\ncode:403\n')
})

t.test('in production there is nothing to try things with', async t => {
  const actors = openTestActors(t, { deps: { hasTestTopics: false } })
  for (const frame of [
    send('/topic/dev.t'),
    send('/user/queue/dev.t'),
    subscribe('/topic/dev.t'),
    subscribe('/user/queue/dev.t'),
  ]) {
    const peer = await actors.connect(newPerson())
    const [error] = await answered(actors, peer, frame)
    t.same([headerOf(error, 'code'), peer.closeCode], ['404', 1008])
  }
})

t.test('nothing can be sent to what only the server tells', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  for (const destination of ['/user/queue/calls', '/user/queue/errors', '/topic/call.1', '/topic/call/1']) {
    const peer = await actors.connect(person)
    const [error] = await answered(actors, peer, send(destination))
    t.same([headerOf(error, 'code'), peer.closeCode], ['403', 1008], destination)
  }
  const peer = await actors.connect(person)
  const [error] = await answered(actors, peer, subscribe('/app/call/1/leave'))
  t.equal(headerOf(error, 'code'), '403')
  t.same(actors.head(person).count, 0)
})

t.test('a refused SEND or SUBSCRIBE is reported on the own errors, and the connection lives', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  await answered(actors, peer, ERRORS)
  const [event] = await answered(actors, peer, send('/nowhere', 'x', 'receipt:r\n'))
  t.equal(headerOf(event, 'subscription'), 'errors')
  t.equal(headerOf(event, 'type'), 'error')
  const { problem, eventId, ...said } = JSON.parse(String(event?.body))
  t.match(said, {
    v: 1,
    type: 'error',
    destination: '/nowhere',
    receiptId: 'r',
    sentAt: actors.world.nowMs(),
  })
  t.equal(headerOf(event, 'message-id'), eventId)
  t.match(problem, { status: 404, code: 'NOT_FOUND', requestId: peer.id })
  t.equal((await answered(actors, peer, subscribe('/nowhere', 'receipt:r\n'))).length, 1)
  t.equal((await answered(actors, peer, send('/app/call/1/keys', '{', 'receipt:r\n'))).length, 1)
  t.notOk(peer.isClosed)
  t.same(receipts(await answered(actors, peer, send('/topic/dev.t', 'x', 'receipt:ok\n'))), ['ok'])
})

t.test('a breach of the protocol ends the connection, errors subscribed to or not', async t => {
  const actors = openTestActors(t)
  for (const frame of [
    'ACK\nid:1-1\n\n\0',
    'SEND\n\nx\0',
    'SUBSCRIBE\nid:errors\ndestination:/topic/dev.t\n\n\0',
  ]) {
    const peer = await actors.connect(newPerson())
    const [error] = await answered(actors, peer, ERRORS + frame)
    t.same([error?.command, peer.closeCode], ['ERROR', 1002])
  }
})

t.test('a call hears a device’s command, and its refusal is the frame’s', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  await answered(actors, peer, ERRORS)
  const frames = await answered(
    actors,
    peer,
    send('/app/call/42/decline', '{"reason":"busy"}', 'receipt:r\n'),
  )
  t.same(actors.calls.commands, ['42 decline {"reason":"busy"}'])
  t.same(receipts(frames), ['r'])
  actors.calls.refusal = 'CALL_ENDED'
  const [event] = await answered(actors, peer, send('/app/call/42/leave', '', 'receipt:q\n'))
  t.match(JSON.parse(String(event?.body)), { receiptId: 'q', problem: { code: 'CALL_ENDED', status: 410 } })
  t.notOk(peer.isClosed)
})

t.test('a call topic is joined before its receipt, and refused without an end', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  await answered(actors, peer, ERRORS)
  const [receipt] = await answered(actors, peer, subscribe('/topic/call.7', 'receipt:r\n'))
  t.equal(receipt?.command, 'RECEIPT')
  const session = actors.calls.subscribers.get('7')!
  const broadcast = new Broadcast('e-1', ['type', 'call_status'], Buffer.from('{}'))
  session.tell({ kind: 'topic-message', topic: 'call.7', broadcast })
  session.tell({ kind: 'topic-message', topic: 'call.8', broadcast })
  await actors.settle()
  const [event, ...more] = peer.take()
  t.same([headerOf(event, 'destination'), headerOf(event, 'message-id')], ['/topic/call.7', 'e-1'])
  t.same(more, [])
  actors.calls.refusal = 'NOT_PARTICIPANT'
  const [refusal, ...rest] = await answered(actors, peer, subscribe('/topic/call/8', 'receipt:q\n'))
  t.match(JSON.parse(String(refusal?.body)).problem, { status: 403 })
  t.same(rest, [])
  t.notOk(peer.isClosed)
  actors.calls.refusal = undefined
  t.same(receipts(await answered(actors, peer, subscribe('/topic/call/8', 'receipt:again\n'))), ['again'])
  await answered(actors, peer, 'UNSUBSCRIBE\nid:/topic/call.7\n\n\0')
  t.same([...actors.calls.subscribers.keys()], ['8'])
  peer.drop()
  await actors.settle()
  t.equal(actors.calls.subscribers.size, 0, 'whoever is gone is subscribed to nothing')
})

t.test('a subscription withdrawn before its call has answered ends, and is answered', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  const tags: number[] = []
  actors.calls.subscribe = (_call, _by, _session, tag) => {
    tags.push(tag)
    return new Promise(() => {})
  }
  const frames = `${subscribe('/topic/call.7', 'receipt:r\n')}UNSUBSCRIBE\nid:/topic/call.7\nreceipt:q\n\n\0`
  t.same(receipts(await answered(actors, peer, frames)), ['r', 'q'])
  connectionOf(actors, peer).tell({ kind: 'topic-joined', tag: tags[0]! })
  connectionOf(actors, peer).tell({ kind: 'topic-refused', tag: tags[0]!, error: new Error('too late') })
  await actors.settle()
  t.same(peer.take(), [])
  t.notOk(peer.isClosed)
})

t.test('a room that took a subscription in has said so, whatever becomes of its answer', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  actors.calls.subscribe = async (_call, _by, session, tag) => {
    session.tell({ kind: 'topic-joined', tag })
    throw new SignalError('DEADLINE_EXCEEDED', 'no answer')
  }
  t.same(receipts(await answered(actors, peer, subscribe('/topic/call.7', 'receipt:r\n'))), ['r'])
  t.notOk(peer.isClosed)
})

t.test('a topic without a room is reported, and nothing is lost in silence', async t => {
  const full = {
    kind: 'dev-topic',
    id: 't',
    tell: () => 'overloaded',
    tellControl() {},
    ask: () => new Promise(() => {}),
  }
  const actors = openTestActors(t, { deps: { topics: () => full as never } })
  for (const frame of [send('/topic/dev.t', 'x', 'receipt:r\n'), subscribe('/topic/dev.t', 'receipt:r\n')]) {
    const peer = await actors.connect(newPerson())
    const [error] = await answered(actors, peer, frame)
    t.same([headerOf(error, 'code'), headerOf(error, 'receipt-id'), peer.closeCode], ['503', 'r', 1013])
  }
})

t.test('a subscription gets nothing published before it', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  const topic = '/topic/dev.t'
  const again = `UNSUBSCRIBE\nid:${topic}\n\n\0${subscribe(topic)}`
  const frames = await answered(
    actors,
    peer,
    send(topic, '1') + subscribe(topic) + send(topic, '2') + again + send(topic, '3'),
  )
  t.same(
    frames.map(({ body }) => body.toString()),
    ['3'],
    'the second subscription of that id begins anew, and the first is over before 2 is out',
  )
})

t.test('E-22: receipts of durable frames come in order, none before its message is durable', async t => {
  const commits: { change: InboxChange; end: () => void }[] = []
  const actors = openTestActors(t, {
    deps: {
      inbox: {
        head: () => ({ epoch: 0, nextOffset: 1, givenBelow: 1, lostOffset: 0, count: 0 }),
        after: () => [],
        isSettling: () => false,
        markDelivered: async () => undefined,
        settleSoon: () => undefined,
        settleNow: async () => undefined,
        failedSettles: 0,
        change: (_user, _device, change) => new Promise(resolve => commits.push({ change, end: resolve })),
      },
    },
  })
  const peer = await actors.connect(newPerson())
  const three = ['r1', 'r2', 'r3'].map(r => send('/user/queue/dev.t', r, `receipt:${r}\n`)).join('')
  t.same(await answered(actors, peer, three + send('/topic/dev.t', 'x', 'receipt:r4\n')), [])
  t.equal(commits.length, 3)
  commits[1]!.end()
  await actors.settle()
  t.same(peer.take(), [], 'the second waits for the first')
  commits[0]!.end()
  await actors.settle()
  t.same(receipts(peer.take()), ['r1', 'r2'])
  t.same(await answered(actors, peer, 'FOO\n'), [], 'and so does an ERROR')
  commits[2]!.end()
  await actors.settle()
  const frames = peer.take()
  t.same(commands(frames), ['RECEIPT', 'RECEIPT', 'ERROR'])
  t.equal(peer.closeCode, 1002)
})

t.test(
  'the receipt of a COMMIT precedes receipts of later frames, even when a command delays it',
  async t => {
    const actors = openTestActors(t)
    const peer = await actors.connect(newPerson())
    let endCommand = () => {}
    actors.calls.command = () => new Promise(resolve => (endCommand = resolve))
    const inTransaction = (destination: string, body = '') => send(destination, body, 'transaction:t\n')
    const commit = `${inTransaction('/app/call/1/leave')}${inTransaction('/user/queue/dev.t', 'x')}COMMIT\ntransaction:t\nreceipt:commit\n\n\0`
    const later = send('/user/queue/dev.t', 'y', 'receipt:later\n')
    t.same(await answered(actors, peer, `BEGIN\ntransaction:t\n\n\0${commit}${later}`), [])
    endCommand()
    await actors.settle()
    t.same(receipts(peer.take()), ['commit', 'later'])
  },
)

t.test('what the store can not keep has no receipt, and 1013', async t => {
  const actors = openTestActors(t, {
    deps: {
      inbox: {
        head: () => ({ epoch: 0, nextOffset: 1, givenBelow: 1, lostOffset: 0, count: 0 }),
        after: () => [],
        isSettling: () => false,
        markDelivered: async () => undefined,
        settleSoon: () => undefined,
        settleNow: async () => undefined,
        failedSettles: 0,
        change: () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'the store could not write')),
      },
    },
  })
  const peer = await actors.connect(newPerson())
  const frames = await answered(actors, peer, send('/user/queue/dev.t', 'x', 'receipt:r\n'))
  t.same([commands(frames), headerOf(frames[0], 'receipt-id')], [['ERROR'], 'r'])
  t.same([headerOf(frames[0], 'retry'), peer.closeCode], ['after', 1013])
  t.same(actors.failures, [], 'the session lives to say so')
})

t.test('a fault of ours behind a frame is for the log; the peer hears that there was one', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  actors.calls.command = () => Promise.reject(new Error('secret detail'))
  const [error] = await answered(actors, peer, send('/app/call/1/leave', '', 'receipt:r\n'))
  t.same([headerOf(error, 'code'), headerOf(error, 'receipt-id'), peer.closeCode], ['500', 'r', 1011])
  t.notMatch(error?.octets.toString(), 'secret')
  t.same(actors.faults, [`${peer.id} Error: secret detail`])
})

t.test('H-04: a DISCONNECT’s receipt comes when everything before it is stored', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  const frames = Array.from({ length: 500 }, (_, at) => send('/user/queue/dev.t', String(at))).join('')
  const answers = await answered(actors, peer, `${frames}DISCONNECT\nreceipt:r\n\n\0`)
  t.same(receipts(answers), ['r'])
  t.equal(peer.closeCode, 1000)
  t.equal(actors.head(person).count, 500)
})

t.test('H-05: frames received before the socket broke take effect', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  peer.write(Array.from({ length: 500 }, (_, at) => send('/user/queue/dev.t', String(at))).join(''))
  peer.drop()
  await actors.settle()
  t.equal(actors.head(person).count, 500)
  t.same(actors.failures, [])
})

t.test('G-04: a transaction ends with its connection', async t => {
  const actors = openTestActors(t)
  const [peer, other] = [await actors.connect(newPerson()), await actors.connect(newPerson())]
  await answered(actors, other, subscribe('/topic/dev.t'))
  await answered(actors, peer, `BEGIN\ntransaction:t\n\n\0${send('/topic/dev.t', 'x', 'transaction:t\n')}`)
  peer.drop()
  await actors.settle()
  t.same(other.take(), [])
})

/** An acknowledgement, a SEND of each kind, and their COMMIT. */
function transactionAbout(given: ClientFrame | undefined): string {
  const inT = 'transaction:t\n'
  return [
    'BEGIN\ntransaction:t\n\n\0',
    send('/topic/dev.t', 'live', inT),
    `ACK\nid:${headerOf(given, 'ack')}\n${inT}\n\0`,
    send('/user/queue/dev.t', 'new', `${inT}receipt:taken\n`),
    send('/app/call/3/leave', '', inT),
    'COMMIT\ntransaction:t\nreceipt:done\n\n\0',
  ].join('')
}

t.test('a COMMIT does all of its frames, in one transaction of the store', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  await actors.keep(person, 'dev.t', 'old')
  const [old] = await answered(
    actors,
    peer,
    subscribe('/user/queue/dev.t', 'ack:client\n') + subscribe('/topic/dev.t'),
  )
  let commits = 0
  const change = actors.database.change.bind(actors.database)
  actors.database.change = write => {
    commits += 1
    return change(write)
  }
  const frames = await answered(actors, peer, transactionAbout(old))
  t.same(receipts(frames), ['taken', 'done'])
  t.same(
    frames
      .filter(({ command }) => command === 'MESSAGE')
      .map(({ body }) => body.toString())
      .sort(),
    ['live', 'new'],
  )
  t.same(actors.calls.commands, ['3 leave {}'])
  t.equal(actors.head(person).count, 1)
  t.equal(commits, 1 + 2, 'one, and those of the test itself')
})

t.test('a COMMIT with a refused command settles, keeps and publishes nothing', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const peer = await actors.connect(person)
  await actors.keep(person, 'dev.t', 'old')
  const [old] = await answered(
    actors,
    peer,
    subscribe('/user/queue/errors') +
      subscribe('/user/queue/dev.t', 'ack:client\n') +
      subscribe('/topic/dev.t'),
  )
  actors.calls.refusal = 'CALL_NOT_FOUND'
  const frames = await answered(actors, peer, transactionAbout(old))
  const [taken, problem, ...others] = frames
  t.same(receipts([taken!]), ['taken'])
  t.match(JSON.parse(`${problem?.body}`), { receiptId: 'done' })
  t.same(others, [])
  peer.drop()
  await actors.settle()
  const next = await actors.connect(person)
  const again = await answered(actors, next, subscribe('/user/queue/dev.t'))
  t.same(
    again.map(({ body }) => body.toString()),
    ['old'],
  )
})

t.test('open transactions hold a bounded number of octets', async t => {
  const actors = openTestActors(t)
  for (const destination of ['/topic/dev.t', '/user/queue/dev.t', '/app/call/1/ringing']) {
    const peer = await actors.connect(newPerson())
    const large = send(destination, `{"k":"${'x'.repeat(200_000)}"}`, 'transaction:t\n')
    const frames = await answered(actors, peer, `BEGIN\ntransaction:t\n\n\0${large.repeat(6)}`)
    t.same([headerOf(frames[0], 'reason'), peer.closeCode], ['transaction_too_large', 1008], destination)
  }
})

t.test('a topic with a full mailbox still hears of an UNSUBSCRIBE', async t => {
  let isFull = false
  const told: string[] = []
  const topics = (name: string): Ref<DevTopicMessage> => {
    const topic = actors.topics(name)
    return {
      kind: topic.kind,
      id: topic.id,
      ask: topic.ask.bind(topic),
      tell: message => (isFull ? 'overloaded' : topic.tell(message)),
      tellControl: message => void told.push(message.kind),
      tellOr: (message, instead) => void (isFull ? told.push(instead.kind) : topic.tell(message)),
    }
  }
  const actors = openTestActors(t, { deps: { topics } })
  const peer = await actors.connect(newPerson())
  await answered(actors, peer, subscribe('/topic/dev.t'))
  isFull = true
  await answered(actors, peer, 'UNSUBSCRIBE\nid:/topic/dev.t\n\n\0')
  t.same(told, ['unsubscribe'])
})

t.test('headers of frames in open transactions are bounded like their bodies', async t => {
  const actors = openTestActors(t)
  const long = 'x'.repeat(8_000)
  const headers = Array.from({ length: 20 }, (_, at) => `h${at}:${long}\n`).join('')
  for (const destination of ['/topic/dev.t', '/user/queue/dev.t']) {
    const peer = await actors.connect(newPerson())
    const frame = send(destination, '', `transaction:t\n${headers}`)
    const frames = await answered(actors, peer, `BEGIN\ntransaction:t\n\n\0${frame.repeat(8)}`)
    t.same([headerOf(frames[0], 'reason'), peer.closeCode], ['transaction_too_large', 1008], destination)
  }
  const peer = await actors.connect(newPerson())
  const [given] = await answered(
    actors,
    peer,
    subscribe('/topic/dev.t', 'ack:client\n') + send('/topic/dev.t', 'x'),
  )
  const ack = `ACK\nid:${headerOf(given, 'ack')}\nsubscription:${long}\ntransaction:t\n\n\0`
  const frames = await answered(actors, peer, `BEGIN\ntransaction:t\n\n\0${ack.repeat(140)}`)
  t.same([headerOf(frames[0], 'reason'), peer.closeCode], ['transaction_too_large', 1008], 'ACK')
})

t.test('octets of a transaction that has ended are free again', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  const large = send('/topic/dev.t', 'x'.repeat(200_000), 'transaction:t\n').repeat(5)
  const rounds = Array.from(
    { length: 6 },
    (_, at) => `BEGIN\ntransaction:t\n\n\0${large}${at % 2 ? 'ABORT' : 'COMMIT'}\ntransaction:t\n\n\0`,
  )
  t.same(await answered(actors, peer, `${rounds.join('')}DISCONNECT\n\n\0`), [])
  t.equal(peer.closeCode, 1000)
})

t.test('E-29: a burst above the limit ends with 1008, what came before it is done', async t => {
  const actors = openTestActors(t, { deps: { areRatesLimited: true } })
  const peer = await actors.connect(newPerson())
  await actors.pass(1_000)
  const burst = Array.from({ length: 300 }, (_, at) => send('/topic/dev.t', 'x', `receipt:${at}\n`)).join('')
  const frames = await answered(actors, peer, burst)
  t.equal(receipts(frames).length, 200)
  const error = frames.at(-1)
  t.same([headerOf(error, 'code'), headerOf(error, 'reason'), peer.closeCode], ['429', 'rate_limited', 1008])
  t.ok(Number(headerOf(error, 'retry-after')) >= 1_000)
})

t.test('fifty frames a second may go on for ever', async t => {
  const actors = openTestActors(t, { deps: { areRatesLimited: true } })
  const peer = await actors.connect(newPerson())
  for (let tenth = 0; tenth < 600; tenth++) {
    peer.write(send('/topic/dev.t').repeat(5))
    await actors.pass(100)
  }
  t.notOk(peer.isClosed)
})

t.test(
  'I-15: a subscriber that stops reading is cut, told if it reads again, and costs nobody else',
  async t => {
    const actors = openTestActors(t)
    const topic = '/topic/dev.t'
    const [stuck, late, fine, sender] = await Promise.all([1, 2, 3, 4].map(() => actors.connect(newPerson())))
    for (const peer of [stuck!, late!, fine!]) peer.write(subscribe(topic))
    await actors.settle()
    stuck!.kernelBytes = 0
    late!.kernelBytes = 0
    let heldMax = 0
    for (let round = 0; round < 240; round++) {
      sender!.write(send(topic, 'x'.repeat(100_000)))
      await actors.settle()
      heldMax = Math.max(heldMax, stuck!.bufferedBytes())
    }
    t.equal(fine!.take().length, 240)
    t.ok(heldMax < 1024 * 1024, `${heldMax} bytes are held`)
    late!.kernelBytes = Number.POSITIVE_INFINITY
    late!.flush()
    const frames = late!.take()
    t.same([headerOf(frames.at(-1), 'reason'), headerOf(frames.at(-1), 'retry')], ['slow', 'after'])
    t.equal(late!.closeCode, 4410)
    t.ok(frames.length < 12, 'no gap before it: what came came in order')
    t.notOk(stuck!.isClosed, 'that the transport sees to')
    t.same(actors.ended, ['slow', 'slow'])
  },
)

t.test('a client that lags for ten seconds is cut as slow', async t => {
  const actors = openTestActors(t)
  const person = newPerson()
  const [peer, sender] = [await actors.connect(person), await actors.connect(newPerson())]
  peer.write(subscribe('/user/queue/dev.t'))
  await answered(actors, peer, subscribe('/topic/dev.t'))
  peer.kernelBytes = 0
  await actors.keep(person, 'dev.t', ...Array.from({ length: 40 }, () => 'x'.repeat(10_000)))
  sender.write(send('/topic/dev.t', 'x'.repeat(250_000)))
  await actors.pass(9_500)
  t.same(actors.ended, [])
  await actors.pass(800)
  t.same(actors.ended, ['slow'])
  peer.kernelBytes = Number.POSITIVE_INFINITY
  peer.flush()
  t.equal(peer.closeCode, 4410)
  const next = await actors.connect(person)
  next.write(subscribe('/user/queue/dev.t'))
  await actors.pass(500)
  t.equal(next.take().length, 40, 'nothing is lost by it')
})

t.test('a client that lags gets no longer time as more arrives', async t => {
  const actors = openTestActors(t)
  const [peer, sender] = [await actors.connect(newPerson()), await actors.connect(newPerson())]
  await answered(actors, peer, subscribe('/topic/dev.t'))
  peer.kernelBytes = 0
  sender.write(send('/topic/dev.t', 'x'.repeat(250_000)).repeat(2))
  for (let second = 0; second < 9; second++) {
    await actors.pass(1_000)
    sender.write(send('/topic/dev.t', 'a little more'))
  }
  t.same(actors.ended, [])
  await actors.pass(1_500)
  t.same(actors.ended, ['slow'])
})

t.test('octets that come one by one, thousands in a turn, are read like any', async t => {
  const actors = openTestActors(t)
  const peer = await actors.connect(newPerson())
  await answered(actors, peer, subscribe('/topic/dev.t'))
  const body = 'x'.repeat(10_000)
  for (const octet of send('/topic/dev.t', body)) peer.write(octet)
  await actors.settle()
  t.equal(peer.take()[0]?.body.toString(), body)
  t.equal((await answered(actors, peer, send('/topic/dev.t')))[0]?.body.toString(), 'x', 'and so is the next')
})

t.test('a session that can not be told of more is ended, not given a gap', async t => {
  const actors = openTestActors(t)
  const [tooMuch, tooOften] = [await actors.connect(newPerson()), await actors.connect(newPerson())]
  for (let bytes = 0; bytes <= UNREAD_BYTES_MAX; bytes += 65_536) tooMuch.write('\n'.repeat(65_536))
  for (let at = 0; at < 5_000; at++) connectionOf(actors, tooOften).tell({ kind: 'news' })
  tooOften.write('\n')
  await actors.settle()
  for (const peer of [tooMuch, tooOften]) {
    t.same([headerOf(peer.take().at(-1), 'reason'), peer.closeCode], ['overloaded', 1013])
  }
})
