/** Connections of `@callsign/sdk/app` with the real server: events, cuts, restarts, and all ways in which one is ended. */

import t, { type Test } from 'tap'
import { openConnection, register } from '../../support/app-connections.ts'
import { platformOf, rejectionOf, signIn, startApp } from '../../support/app-sessions.ts'
import { type Person, settingsFor, signInPerson, startCall } from '../../support/call-people.ts'
import { CuttingProxy } from '../../support/cutting-proxy.ts'
import { Deferred } from '../../support/deferred.ts'
import { freePort } from '../../support/free-port.ts'
import { openServer } from '../../support/open-server.ts'
import { startServer } from '../../support/server.ts'
import { shiftedClock } from '../../support/shifted-clock.ts'
import { long } from '../../support/size.ts'

const HOUR_MS = 3_600_000

async function open(t: Test, people = 1) {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(people) })
  t.teardown(() => server.end())
  return server
}

/** Person 0 with a registered device. */
async function startDevice(url: string) {
  const app = await startApp(url, { platform: platformOf() })
  await signIn(app)
  await register(app)
  return app
}

/** The same device in a program that starts anew. */
function restarted({ storage }: Awaited<ReturnType<typeof startApp>>, url: string) {
  return startApp(url, { storage, platform: platformOf() })
}

/** Sends the user a friend request, which is an event of their queue `contacts`. */
async function askToBeFriends(person: Person, userId: string | undefined): Promise<void> {
  await person.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: userId })
}

function connect(t: Test, ...args: Parameters<typeof openConnection>) {
  const opened = openConnection(...args)
  t.teardown(() => opened.connection.disconnect())
  opened.connection.connect()
  return opened
}

t.test('events come in order, once, also to a program that starts anew', async t => {
  const { http } = await open(t, 4)
  const app = await startDevice(http)
  const people = [await signInPerson(http, 1), await signInPerson(http, 2), await signInPerson(http, 3)]
  const { userId } = app.session
  await askToBeFriends(people[0]!, userId)
  const { connection, listener } = connect(t, app)
  await listener.until(({ events }) => events.length === 1)
  await askToBeFriends(people[1]!, userId)
  await listener.until(({ events }) => events.length === 2)
  await listener.connected()
  t.match(listener.events, [
    { type: 'friend_request', userId: people[0]!.userId },
    { type: 'friend_request', userId: people[1]!.userId },
  ])
  t.same(listener.mayHaveMissed, [true])
  t.match(connection.deviceId, /^\d+$/)
  // The acknowledgements are before it.
  await connection.send('/topic/dev.x', {})
  await connection.disconnect()
  t.same(listener.states, ['connecting', 'connected', 'off'])

  const again = connect(t, await restarted(app, http))
  await again.listener.connected()
  await askToBeFriends(people[2]!, userId)
  await again.listener.until(({ events }) => events.length > 0)
  t.match(again.listener.events, [{ userId: people[2]!.userId }])
})

t.test('an event that is being handled when the network breaks is handled once', async t => {
  const server = await open(t, 3)
  const people = [await signInPerson(server.http, 1), await signInPerson(server.http, 2)]
  const proxy = await CuttingProxy.open(t, Number(new URL(server.http).port))
  const url = `http://127.0.0.1:${proxy.port}`
  const app = await startDevice(url)
  const { connection, listener } = connect(t, app)
  const isHandled = new Deferred<void>()
  let handled = 0
  listener.handle = async () => {
    await isHandled
    handled += 1
  }
  await listener.connected()
  await askToBeFriends(people[0]!, app.session.userId)
  await listener.until(({ events }) => events.length === 1)
  proxy.cutAll()
  await listener.connected(2)
  await askToBeFriends(people[1]!, app.session.userId)
  // The answer to a SEND comes behind the messages.
  await connection.send('/topic/dev.x', {})
  t.equal(listener.events.length, 1)
  isHandled.resolve()
  await listener.until(({ events }) => events.length === 2)
  t.equal(handled, 1)
  t.match(
    listener.events.map(event => 'userId' in event && event.userId),
    people.map(({ userId }) => userId),
  )
  t.same(listener.troubles, [])
  t.same(listener.mayHaveMissed, [true, false])
})

t.test('an event is acknowledged when it was handled, also when that failed, and not before', async t => {
  const { http } = await open(t, 2)
  const person = await signInPerson(http, 1)
  const app = await startDevice(http)
  const hanging = connect(t, app)
  hanging.listener.handle = () => new Promise(() => {})
  await hanging.listener.connected()
  await askToBeFriends(person, app.session.userId)
  await hanging.listener.until(({ events }) => events.length === 1)
  await hanging.connection.disconnect()

  const failing = connect(t, await restarted(app, http))
  failing.listener.handle = () => Promise.reject(new Error('the disk is full'))
  await failing.listener.until(({ troubles }) => troubles.length === 1)
  t.same(failing.listener.events, hanging.listener.events)
  t.match(failing.listener.troubles, [{ message: 'the disk is full' }])
  await failing.listener.connected()
  await failing.connection.disconnect()

  const last = connect(t, await restarted(app, http))
  await last.listener.connected()
  await last.connection.send('/topic/dev.x', {})
  t.same(last.listener.events, [])
})

t.test('topics are watched again after a restart of the server, and left', async t => {
  const dataFolder = t.testdir()
  const environment = { ...settingsFor(1), CALLSIGN_HTTP_PORT: `${await freePort()}` }
  let server = await openServer({ dataFolder, environment })
  t.teardown(() => server.end())
  const app = await startDevice(server.http)
  const { connection, listener } = connect(t, app)
  const heard: string[] = []
  const isHeard = new Deferred<void>()
  // Asked for before there is a connection.
  const stop = await connection.watch('/topic/dev.a', ({ eventId }) => {
    heard.push(eventId)
    if (eventId === 'last') isHeard.resolve()
    if (eventId === 'bad') throw new Error('a mistake of the app')
  })
  const tell = (eventId: string) => connection.send('/topic/dev.a', { type: 'x', eventId })
  await tell('first')
  await server.end()
  await listener.until(({ states }) => states.at(-1) !== 'connected')
  t.equal(await rejectionOf(tell('lost')), 'OFFLINE')
  server = await openServer({ dataFolder, environment })
  await listener.connected(2)
  await tell('bad')
  await tell('last')
  await isHeard
  stop()
  const other = await connection.watch('/topic/dev.a', ({ eventId }) => heard.push(`again ${eventId}`))
  await tell('end')
  await connection.send('/topic/dev.b', {})
  other()
  t.same(heard, ['first', 'bad', 'last', 'again end'])
  t.match(listener.troubles, [{ message: 'a mistake of the app' }])
  t.same(listener.mayHaveMissed, [true, false])
})

t.test('a refusal has its code, and the connection goes on', async t => {
  const { http } = await open(t, 2)
  const app = await startDevice(http)
  const { connection, listener } = connect(t, app)
  await listener.connected()
  const refused = await connection.send('/app/call/1/ringing', {}).catch((error: unknown) => error)
  t.match(refused, { code: 'CALL_NOT_FOUND', message: /./, members: { status: 404 } })
  t.equal(await rejectionOf(connection.watch('/topic/call.1', () => {})), 'CALL_NOT_FOUND')
  t.equal(await rejectionOf(connection.send('/topic/call.1', {})), 'DESTINATION_FORBIDDEN')
  const large = 'é'.repeat(131_000)
  await connection.send('/topic/dev.x', { text: large })
  t.equal(await rejectionOf(connection.send('/topic/dev.x', { text: `${large}${large}` })), 'BODY_TOO_LARGE')
  const caller = await signInPerson(http, 1)
  t.equal(connection.state, 'connected')
  t.same(listener.mayHaveMissed, [true])
  t.equal((await startCall(caller, [])).status, 422)
})

t.test('a newer connection of the device takes over, until this one is asked to come back', async t => {
  const { http } = await open(t)
  const app = await startDevice(http)
  const first = connect(t, app)
  await first.listener.connected()
  const second = connect(t, await restarted(app, http))
  await first.listener.until(({ states }) => states.at(-1) === 'elsewhere')
  await second.listener.connected()
  first.connection.connect()
  await second.listener.until(({ states }) => states.at(-1) === 'elsewhere')
  await first.listener.connected(2)
  t.same(first.listener.states, ['connecting', 'connected', 'elsewhere', 'connecting', 'connected'])
  t.same(second.listener.states, ['connecting', 'connected', 'elsewhere'])
})

t.test('a removed device, or one with a revoked session, is signed out once', async t => {
  const { http } = await open(t)
  // The first device, which the list names: a device on no list may end none but itself.
  const other = await startDevice(http)
  for (const code of ['DEVICE_REMOVED', 'SESSION_REVOKED']) {
    const app = await startDevice(http)
    const over: string[] = []
    const isOver = new Deferred<void>()
    app.session.onOver(error => {
      over.push(error.code)
      isOver.resolve()
    })
    const { connection, listener } = connect(t, app)
    await listener.connected()
    if (code === 'SESSION_REVOKED') await other.session.logout({ allDevices: true })
    else
      await other.session.request('DELETE devices/{deviceId}', undefined, { deviceId: connection.deviceId! })
    await listener.until(({ states }) => states.at(-1) === 'off')
    t.equal(app.session.userId, undefined)
    await isOver
    connection.connect()
    await listener.until(({ states }) => states.length === 5)
    t.same(listener.states, ['connecting', 'connected', 'off', 'connecting', 'off'])
    t.same(over, [code])
    t.same(listener.troubles, [])
  }
})

t.test('a token that the server calls expired is renewed', long(), async t => {
  const dataFolder = t.testdir()
  const first = await startServer({ dataFolder, environment: settingsFor(1) })
  const before = await startDevice(first.http)
  const token = await before.session.accessToken()
  await first.end()
  const environment = { ...settingsFor(1), ...shiftedClock(2 * HOUR_MS) }
  const second = await startServer({ dataFolder, environment })
  t.teardown(() => second.end())
  const app = await restarted(before, second.http)
  const { listener } = connect(t, app)
  await listener.connected()
  t.same(listener.states, ['connecting', 'failed 1', 'connected'])
  t.not(await app.session.accessToken(), token)
  t.ok(app.server.nowMs() - Date.now() > HOUR_MS)
})

t.test('a session without a device gets one, and goes on', async t => {
  const { http } = await open(t)
  const app = await startApp(http, { platform: platformOf() })
  await signIn(app)
  const { connection, listener } = openConnection(app)
  t.teardown(() => connection.disconnect())
  listener.register = () => register(app)
  connection.connect()
  await listener.connected()
  t.equal(listener.devicesMissing, 1)
  t.same(listener.troubles, [])
})

t.test('the app hears when events were dropped', long(), async t => {
  const server = await open(t)
  const proxy = await CuttingProxy.open(t, Number(new URL(server.http).port))
  const { connection, listener } = connect(t, await startDevice(`http://127.0.0.1:${proxy.port}`))
  await listener.connected()
  // The badge is acknowledged then, and names a place in the inbox.
  await connection.send('/topic/dev.x', {})
  proxy.cutAll()
  await listener.connected(2)
  // No device reads this queue, so the oldest goes when the inbox is full.
  const sent = Array.from({ length: 501 }, () => connection.send('/user/queue/dev.x', {}))
  await Promise.all(sent)
  proxy.cutAll()
  await listener.connected(3)
  t.same(listener.mayHaveMissed, [true, false, true])
})

t.test('without a session there is no connection', async t => {
  const { connection, listener } = openConnection(await startApp('http://127.0.0.1:1'))
  connection.connect()
  await listener.until(({ states }) => states.at(-1) === 'off')
  t.equal(connection.state, 'off')
  t.same(listener.troubles, [])
})
