/** Hostile bodies of keys and their sets, by a member of the call, over HTTP and STOMP. */

import t from 'tap'
import { befriend, newCallKey, type Person } from '../support/call-people.ts'
import { framed, memberEntry, membersOf } from '../support/key-members.ts'
import { sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import type { SocketClient } from '../support/socket-client.ts'
import { deviceOf, WireServer } from '../support/wire-server.ts'

const nameOf = ({ userId, deviceId }: Person) => `${userId}_${deviceId}`

function keysFor(...people: readonly Person[]): Record<string, string> {
  return Object.fromEntries(people.map(person => [nameOf(person), newCallKey()]))
}

/** People who all know the first one, and a call of hers that all have joined. */
async function inCall(server: WireServer, count: number) {
  const people = await Promise.all(Array.from({ length: count }, () => server.signIn()))
  const [host, ...others] = people as [Person, ...Person[]]
  for (const other of others) await befriend(host, other)
  const start = { calleeIds: others.map(({ userId }) => userId), isVideo: false }
  const keys = { encryptedAESKeys: keysFor(...others), keyMembers: membersOf(people) }
  const { callId } = await host.app.get(201, 'POST /app/api/call/start', { ...start, ...keys })
  for (const { app } of others) await app.get(200, `POST /app/api/call/${callId}/join`)
  return { host, others, people, callId, path: `/app/api/call/${callId}` }
}

/** What the queue of errors says to a SEND. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of any form
async function refusalOf(peer: SocketClient, destination: string, body: unknown): Promise<any> {
  peer.write(sendFrame(destination, JSON.stringify(body)))
  for (;;) {
    const frame = await peer.message()
    if (headerOf(frame, 'type') === 'error') return JSON.parse(String(frame.body)).problem
  }
}

t.test('hostile sets, names, epochs and nonces are refused, and change nothing', async t => {
  const server = await WireServer.open(t, { people: 3 })
  const { host, others, people, callId, path } = await inCall(server, 3)
  const [bob, cat] = others as [Person, Person]
  const members = membersOf(people)
  const honest = {
    epoch: 2,
    reason: 'rotation',
    encryptedAESKeys: keysFor(bob, cat),
    keyMembers: members,
  }
  const octets = Buffer.from(members, 'base64')
  const entries = people.map(person => memberEntry(person)).sort(Buffer.compare)
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ userId: BigInt(at), deviceId: 1n }))
  const sets: Readonly<Record<string, unknown>> = {
    empty: '',
    'no octets of a set': 'AAAA',
    'of another alphabet': members.replaceAll('A', '-'),
    'with a line feed': `${members}\n`,
    'not padded': octets
      .subarray(0, 2 + 48)
      .toString('base64')
      .replaceAll('=', ''),
    'of another count': Buffer.concat([Buffer.of(0, 4), octets.subarray(2)]).toString('base64'),
    'of a count of octets that is cut': Buffer.concat([Buffer.of(1, 3), octets.subarray(2)]).toString(
      'base64',
    ),
    'in another order': framed(entries.toReversed()).toString('base64'),
    'with a device twice': framed([entries[0]!, entries[0]!, entries[1]!]).toString('base64'),
    'without the sender': membersOf(others),
    'with one more': membersOf([...people, { userId: '7', deviceId: '7' }]),
    'of 321': membersOf(many(321)),
    'of 322': membersOf(many(322)),
    'of a megabyte': Buffer.alloc(800_000).toString('base64'),
    'of another type': [members],
  }
  const bodies: Readonly<Record<string, object>> = {
    ...Object.fromEntries(
      Object.entries(sets).map(([what, keyMembers]) => [`a set ${what}`, { ...honest, keyMembers }]),
    ),
    ...Object.fromEntries(
      [0, -1, 65_536, 2 ** 32 + 2, 2 ** 53, 1.5, '2', null, [2], true, 1e300].map(epoch => [
        `epoch ${JSON.stringify(epoch)}`,
        { ...honest, epoch },
      ]),
    ),
    ...Object.fromEntries(
      [
        ['7_7'],
        [nameOf(host)],
        [nameOf(cat), nameOf(cat)],
        [`0${nameOf(cat)}`],
        [`${nameOf(cat)} `],
        ['__proto__'],
        [cat.userId],
        Array.from({ length: 321 }, (_, at) => `${at}_1`),
        nameOf(cat),
        [7],
      ].map((without, at) => [
        `without ${at}`,
        { ...honest, encryptedAESKeys: keysFor(bob), keyMembers: membersOf([host, bob]), without },
      ]),
    ),
    'a device that is left out and has a key': { ...honest, without: [nameOf(cat)] },
    'a name with another spelling': {
      ...honest,
      encryptedAESKeys: { ...keysFor(bob), [`0${nameOf(cat)}`]: newCallKey() },
    },
    'a device under two names': {
      ...honest,
      encryptedAESKeys: { ...honest.encryptedAESKeys, [`0${nameOf(cat)}`]: newCallKey() },
    },
    'an own key': { ...honest, encryptedAESKeys: keysFor(bob, cat, host) },
    'a key that is not sealed': {
      ...honest,
      encryptedAESKeys: { ...keysFor(bob), [nameOf(cat)]: Buffer.alloc(32, 1).toString('base64') },
    },
    'one text for two': {
      ...honest,
      encryptedAESKeys: Object.fromEntries(
        [bob, cat].map(one => [nameOf(one), Buffer.alloc(99).toString('base64')]),
      ),
    },
  }
  const peer = await server.connect('websocket', deviceOf(host))
  await peer.subscribe('/user/queue/errors', 'errors')
  for (const [what, body] of Object.entries(bodies)) {
    const { status, body: problem } = await host.app.send(`POST ${path}/keys`, body)
    t.ok([400, 409, 413, 422].includes(status), `${what}: ${status} ${problem?.code}`)
    t.type(problem?.code, 'string', what)
    if (JSON.stringify(body).length > 100_000) continue
    const refused = await refusalOf(peer, `/app/call/${callId}/keys`, body)
    t.same([refused.status, refused.code], [status, problem.code], `${what}, over STOMP`)
  }
  const nonces = ['', 'AAAA', Buffer.alloc(15).toString('base64'), Buffer.alloc(17).toString('base64'), 7, []]
  const loose = `${Buffer.alloc(16).toString('base64').slice(0, 21)}B==`
  for (const nonce of [...nonces, loose, `${Buffer.alloc(16).toString('base64')}\n`]) {
    const { status } = await bob.app.send(`POST ${path}/request-rejoin`, { nonce })
    t.ok([400, 422].includes(status), `nonce ${JSON.stringify(nonce)}: ${status}`)
  }
  t.match(await bob.app.get(200, `GET ${path}`), {
    keyEpoch: 1,
    keySets: [{ epoch: 1, keyMembers: members }],
  })
  await host.app.get(202, `POST ${path}/keys`, honest)
  t.match(await bob.app.get(200, `GET ${path}`), { keyEpoch: 2 })
})

t.test('of devices that send the next epoch at the same moment one wins', async t => {
  const server = await WireServer.open(t, { people: 3 })
  const { host, others, people, path } = await inCall(server, 3)
  const [bob, cat] = others as [Person, Person]
  const sends = Array.from({ length: 8 }, () =>
    host.app.send(`POST ${path}/keys`, {
      epoch: 2,
      reason: 'rotation',
      encryptedAESKeys: keysFor(bob, cat),
      keyMembers: membersOf(people),
    }),
  )
  const codes = (await Promise.all(sends)).map(({ status }) => status).sort()
  t.same(codes, [202, 409, 409, 409, 409, 409, 409, 409])
})

t.test('keys over HTTP and STOMP, and invitations, count as one, and asks likewise', async t => {
  const server = await WireServer.open(t, { people: 3, environment: { CALLSIGN_RATE_LIMITS: '' } })
  const { host, others, people, callId, path } = await inCall(server, 3)
  const [bob, cat] = others as [Person, Person]
  const peer = await server.connect('websocket', deviceOf(host))
  await peer.subscribe('/user/queue/errors', 'errors')
  // What is refused counts too: each of these is of the wrong epoch.
  const wrong = () => ({ epoch: 9, reason: 'rotation', encryptedAESKeys: keysFor(bob, cat) })
  const invite = () => ({ calleeIds: [bob.userId], keyMembers: membersOf(people), ...wrong() })
  const problems: { status: number; code: string }[] = []
  for (let round = 0; round < 4; round++) {
    problems.push((await host.app.send(`POST ${path}/keys`, wrong())).body)
    const { reason: _, ...body } = invite()
    problems.push((await host.app.send(`POST ${path}/invite`, body)).body)
    problems.push(await refusalOf(peer, `/app/call/${callId}/keys`, wrong()))
    problems.push(await refusalOf(peer, `/app/call/${callId}/keys`, wrong()))
  }
  t.same(
    problems.map(({ status }) => status),
    [...Array.from({ length: 12 }, () => 409), ...Array.from({ length: 4 }, () => 429)],
  )

  for (let at = 0; at < 6; at++)
    await bob.app.get(202, `POST ${path}/request-rejoin`, { nonce: Buffer.alloc(16, at).toString('base64') })
  await bob.app.get(429, `POST ${path}/request-rejoin`, {})
})
