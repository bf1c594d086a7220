/** The listener for events of Janus, against strangers and bodies of any kind. */

import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { eventLoginsOf, listenForEvents } from '../../src/media/events-listener.ts'

const GOOD = `Basic ${Buffer.from('janus:secret').toString('base64')}`

async function open(t: Test) {
  const taken: unknown[] = []
  /** Each with the gateway that was answered. */
  const statuses: [number, string | undefined][] = []
  const logins = eventLoginsOf([
    { name: 'one', eventsLogin: { user: 'janus', password: 'secret' } },
    { name: 'two', eventsLogin: { user: 'two', password: 'other' } },
    { name: 'silent' },
  ])
  const listener = await listenForEvents(
    { host: '127.0.0.1', port: 0 },
    () => logins,
    (gateway, events) => void taken.push(gateway === 'one' ? events : { gateway, events }),
    (status, gateway) => void statuses.push([status, gateway]),
  )
  t.teardown(() => listener.close())
  const { port } = listener
  const post = async (body: string, authorization = GOOD, method = 'POST') => {
    const init = { method, headers: { authorization }, ...(method === 'GET' ? {} : { body }) }
    return (await fetch(`http://127.0.0.1:${port}/events`, init)).status
  }
  return { port, post, taken, statuses }
}

t.test('events come through with the password, and without it nothing does', async t => {
  const { post, taken } = await open(t)
  const wrong = ['', 'Basic', 'Basic anVuaw==', `${GOOD}x`, GOOD.replace('Basic', 'basic'), 'Bearer secret']
  for (const authorization of wrong) t.equal(await post('[{"type":2}]', authorization), 401)
  t.same(taken, [])
  t.equal(await post('[{"type":2}]'), 200)
  t.same(taken, [[{ type: 2 }]])
})

t.test('events are of the gateway whose login they came with', async t => {
  const { post, taken, statuses } = await open(t)
  const loginOf = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  t.equal(await post('{}', loginOf('two', 'other')), 200)
  t.same(taken, [{ gateway: 'two', events: {} }])
  for (const [user, password] of [
    ['two', 'secret'],
    ['one', 'secret'],
    ['silent', ''],
    ['silent', 'undefined'],
  ] as const)
    t.equal(await post('{}', loginOf(user, password)), 401, `${user} with ${password}`)
  t.equal(taken.length, 1)
  t.same(statuses[0], [200, 'two'])
  t.same(statuses[1], [401, undefined])
})

t.test('bodies that are no JSON, or too long, are refused, and good ones still come', async t => {
  const { post, taken, statuses } = await open(t)
  t.equal(await post(''), 400)
  t.equal(await post('{'), 400)
  t.equal(await post('[', GOOD, 'PUT'), 405)
  t.equal(await post('', GOOD, 'GET'), 405)
  const long = `"${'x'.repeat(2 * 1024 * 1024)}"`
  t.equal(await post(long).catch(() => 413), 413)
  t.equal(await post('{}'), 200)
  t.same(taken, [{}])
  t.same(
    statuses.map(([status]) => status),
    [400, 400, 405, 405, 413, 200],
  )
})

t.test('a client that breaks off, or speaks no HTTP, leaves the listener whole', async t => {
  const { port, post, taken } = await open(t)
  for (const text of [
    `POST /events HTTP/1.1\r\nhost: x\r\nauthorization: ${GOOD}\r\ncontent-length: 100\r\n\r\n[`,
    '\0\0\0\0\r\n\r\n',
    `POST / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
  ]) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined).resume()
    await once(socket, 'connect')
    socket.end(text)
    if (text.startsWith('POST /events')) socket.destroy()
    await once(socket, 'close')
  }
  t.equal(await post('[]'), 200)
  t.same(taken, [[]])
})
