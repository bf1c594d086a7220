/** People behind one address who all come back after a restart, to a server with fronts and low rates. */

import { Agent, get } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { bySize } from '../support/size.ts'
import { deviceOf, WireServer } from '../support/wire-server.ts'

/** A front takes 200 handshakes at once from one address, and gives each back at its CONNECT. */
const PEOPLE = bySize({ short: 40, long: 200 })
const dataFolder = join(t.testdir(), 'data')

/** Everybody signs in while no rate counts. */
const before = await WireServer.start(t, { people: PEOPLE, dataFolder })
const people = await Promise.all(Array.from({ length: PEOPLE }, () => before.signIn()))
await before.running.end('SIGKILL')

const server = await WireServer.start(t, {
  people: PEOPLE,
  dataFolder,
  environment: {
    CALLSIGN_RATE_LIMITS: '',
    // For an address 10 at once, and 200 for those at it who are signed in; for a session 200 still. Lookups: 2, 40 and 2.
    CALLSIGN_RATES: '{"request":30,"lookup":2}',
    CALLSIGN_TRUSTED_PROXIES: '127.0.0.1',
    CALLSIGN_FRONTS: '2',
  },
})

/** Asks on one connection, so one front after the other is not asked; returns the statuses. */
async function statusesOf(asked: readonly Readonly<Record<string, string>>[], path = '/app/api/meta') {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  for (const headers of asked) {
    const url = `${server.running.http}${path}`
    statuses.push(
      await new Promise((resolve, reject) => {
        const request = get(url, { agent, headers }, answer => {
          answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
        })
        request.once('error', reject)
      }),
    )
  }
  agent.destroy()
  return statuses
}

t.test('no user who is signed in is refused, by HTTP or STOMP, while strangers there are', async t => {
  const strangers = statusesOf(Array(40).fill({}))
  const refused = await Promise.all(
    people.map(async person => {
      const device = deviceOf(person)
      const authorization = `Bearer ${device.token}`
      const socket = await server.connect('websocket', device)
      const statuses = await statusesOf(Array(12).fill({ authorization }), '/app/api/user')
      socket.socket.destroy()
      return statuses.filter(status => status !== 200)
    }),
  )
  t.same(refused.flat(), [])
  const ofStrangers = await strangers
  t.ok(ofStrangers.filter(status => status === 200).length >= 10)
  t.ok(ofStrangers.includes(429))
})

t.test('lookups count for their session; the answer does not tell a good token from none', async t => {
  const { publicKeyHash } = people[0]!
  const lookUp = async (network: string, authorization?: string) => {
    const answer = await fetch(`${server.running.http}/api/get-public-keys`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': network,
        ...(authorization !== undefined && { authorization }),
      },
      body: JSON.stringify({ targets: [{ publicKeyHash }] }),
    })
    const { status, headers } = answer
    return {
      status,
      cache: headers.get('cache-control'),
      vary: headers.get('vary'),
      text: await answer.text(),
    }
  }
  const bearers = people.map(({ app }) => `Bearer ${app.accessToken}`)
  const plain = await lookUp('192.0.2.1')
  t.match(plain, { status: 200, cache: 'no-store', text: publicKeyHash })
  t.same(await lookUp('192.0.2.2', 'Bearer nothing'), plain)
  t.same(await lookUp('192.0.2.3', bearers[0]), plain)
  const ofStrangers = await Promise.all(
    Array.from({ length: 12 }, () => lookUp('192.0.2.9', 'Bearer nothing')),
  )
  t.ok(ofStrangers.filter(({ status }) => status === 429).length >= 8, 'two at each front')
  const ofPeople = await Promise.all(bearers.map(bearer => lookUp('192.0.2.9', bearer)))
  t.same([...new Set(ofPeople.map(({ status }) => status))], [200])
})

t.test('a front counts the prefixes around an IPv6 address', async t => {
  const from = (at: number) => ({ 'x-forwarded-for': `2001:db8:0:${at.toString(16)}::1` })
  // Ten from each of eight networks of one /56, which has forty at once.
  const statuses = await statusesOf(Array.from({ length: 80 }, (_, at) => from(at % 8)))
  const admitted = statuses.filter(status => status === 200).length
  t.ok(admitted >= 40 && admitted < 60, `${admitted} of 80`)
  t.same(await statusesOf([{ 'x-forwarded-for': '2001:db8:0:100::1' }]), [200], 'the next /56')
})

t.test('everybody gets new tokens, and a false one counts for the address', async t => {
  const statusOf = async (refreshToken: string) => {
    const answer = await fetch(`${server.running.http}/app/api/refresh-token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ refreshToken }),
    })
    await answer.text()
    return answer.status
  }
  const ofNobody = await Promise.all(Array.from({ length: 60 }, () => statusOf('krt_none')))
  t.same([...new Set(ofNobody)].sort(), [401, 429])
  const ofPeople = await Promise.all(people.map(({ app }) => statusOf(app.refreshToken!)))
  t.same([...new Set(ofPeople)], [200])
  t.same(server.faults(), [])
})
