/** The routes of a front: its own are answered by itself, and those of the writer as long as there is one. */

import t, { type Test } from 'tap'
import { COMMANDS, OPERATIONS, READS, WRITES } from '../../../src/api/operations.ts'
import { SignalError } from '../../../src/errors.ts'
import { nameOfRoute } from '../../../src/fronts/messages.ts'
import { frontRoutes, serverApiForwarded } from '../../../src/server/fronts/front-routes.ts'
import { RemoteWriter } from '../../../src/server/fronts/remote-writer.ts'
import { openCommands, openReads } from '../../../src/server/reads.ts'
import type { HttpRequest } from '../../../src/transport/route.ts'
import { makeStage } from '../../support/actors.ts'
import { newDevice, newSession, newUser, openWorld } from '../../support/application.ts'
import { TEST_CONFIG } from '../../support/test-api.ts'

interface Opened {
  readonly isFresh?: boolean
  readonly authorization?: string
}

async function open(t: Test, { isFresh, authorization }: Opened = {}) {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const stage = makeStage()
  const { desk, actors, liveCallsOf } = new RemoteWriter(stage.system, stage.world, 'front-1')
  const serving = { ...world, config: TEST_CONFIG, liveCallsOf }
  const reads = openReads(serving)
  const asked: string[] = []
  const askRoom: typeof actors.rooms.ask = (callId, command, idempotent) => {
    asked.push(command.kind)
    return actors.rooms.ask(callId, command, idempotent)
  }
  const commands = openCommands({ ...serving, askRoom })
  const readLease = isFresh === undefined ? undefined : { isFresh, mayRead: () => undefined }
  const gates = { readLease, shownLog: { mayRead: () => undefined } }
  const { userId } = await newUser(world)
  const { deviceId } = await newDevice(world, userId)
  const { token } = await newSession(world, userId, deviceId)
  const headers = new Map([['authorization', authorization ?? `Bearer ${token}`]])
  const request: Omit<HttpRequest, 'method' | 'path'> = {
    params: ['7'],
    query: '',
    requestId: 'a request',
    contentType: 'application/json',
    header: name => headers.get(name) ?? '',
    network: 'a network',
    body: Buffer.from('{}'),
  }
  const routes = frontRoutes(reads.routes, commands, gates, [], desk)
  const ask = async (name: string, body = request.body) => {
    const route = routes.find(each => nameOfRoute(each) === name)!
    return route.handle({ ...request, method: route.method, path: route.path, body })
  }
  return { reads, routes, ask, asked }
}

t.test('a front has a route for every operation, and of writes no more than their heads', async t => {
  const { reads, routes } = await open(t)
  const served = new Set(routes.map(nameOfRoute))
  t.same(
    OPERATIONS.map(nameOfRoute).filter(name => !served.has(name)),
    [],
  )
  t.same(Object.keys(reads).toSorted(), ['features', 'loginMethods', 'routes'])
  // @ts-expect-error: nothing is sent from a front
  t.equal(reads.delivery, undefined)
  // @ts-expect-error: no device is registered there
  t.equal(reads.registration, undefined)
})

t.test('without a writer a front answers what it reads, and refuses each write', async t => {
  const { ask } = await open(t)
  t.match(await ask('GET /app/api/user'), { status: 200 })
  t.match(await ask('GET /app/api/call/history'), { status: 200 }, 'calls that are over')
  for (const { id, rates } of READS)
    t.equal(rates, undefined, `${id} has no rate that is counted in one place`)
  for (const write of WRITES) await t.rejects(ask(nameOfRoute(write)), { code: 'OVERLOADED' }, write.id)
})

t.test('a command is checked at the front, and the writer is asked for good ones alone', async t => {
  const { ask, asked } = await open(t)
  const name = (id: string) => nameOfRoute(COMMANDS.find(each => each.id === id)!)
  await t.rejects(ask(name('joinCall')), { code: 'OVERLOADED' })
  await t.rejects(ask(name('endCall'), Buffer.from('{"callId":"7"}')), { code: 'OVERLOADED' })
  await t.rejects(ask(name('endCall'), Buffer.from('{"callId":7.5}')), { code: 'VALIDATION_FAILED' })
  await t.rejects(ask(name('startCall'), Buffer.from('[')), { code: 'MALFORMED_JSON' })
  t.same(asked, ['join', 'end'])
  const stranger = await open(t, { authorization: 'Bearer nobody' })
  for (const command of COMMANDS)
    await t.rejects(stranger.ask(nameOfRoute(command)), { code: 'TOKEN_INVALID' }, command.id)
  t.same(stranger.asked, [])
})

t.test('where its copy may be old, a front passes the request on, which the writer checks', async t => {
  const stranger = await open(t, { authorization: 'Bearer nobody', isFresh: false })
  for (const command of COMMANDS)
    await t.rejects(stranger.ask(nameOfRoute(command)), { code: 'OVERLOADED' }, command.id)
  const fresh = await open(t, { authorization: 'Bearer nobody', isFresh: true })
  await t.rejects(fresh.ask(nameOfRoute(COMMANDS[0]!)), { code: 'TOKEN_INVALID' })
  t.same([...stranger.asked, ...fresh.asked], [])
})

t.test(
  'a front passes no request on to the server API that has no good key, unless its copy may be old',
  async t => {
    const stage = makeStage()
    const { desk } = new RemoteWriter(stage.system, stage.world, 'front-1')
    const refusal = new SignalError('SERVER_KEY_INVALID', 'no key')
    const keyholders = {
      assertKnown() {
        throw refusal
      },
    }
    const head = { header: () => '', network: 'a network' }
    const admitted = (readLease: { readonly isFresh: boolean } | undefined) =>
      serverApiForwarded(desk, keyholders, readLease).flatMap(({ admit }) =>
        admit === undefined ? [] : [admit],
      )
    for (const lease of [undefined, { isFresh: true }])
      for (const admit of admitted(lease)) t.throws(() => admit(head), refusal)
    for (const admit of admitted({ isFresh: false })) t.doesNotThrow(() => admit(head))
    t.not(admitted(undefined).length, 0)
  },
)
