/** Requests to LiveKit's API are those of LiveKit's server SDK; good, wrong and hostile answers. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { jwtVerify } from 'jose'
import { RoomServiceClient } from 'livekit-server-sdk'
import t, { type Test } from 'tap'
import { LiveKitApi } from '../../src/media/livekit-api.ts'
import { keyed } from '../support/livekit-settings.ts'

interface Asked {
  readonly path: string
  readonly body: unknown
  readonly grants: unknown
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A server in the place of LiveKit, which answers `{}` unless the test says otherwise. */
async function standIn(t: Test) {
  const asked: Asked[] = []
  let answer: Answer = response => response.end('{}')
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const token = request.headers.authorization!.replace('Bearer ', '')
    const { payload } = await jwtVerify(token, Buffer.from(settings.apiSecret), { issuer: settings.apiKey })
    const body = JSON.parse(Buffer.concat(chunks).toString())
    asked.push({ path: `${request.method} ${request.url}`, body, grants: payload.video })
    answer(response, request)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const settings = keyed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const outcomes: string[] = []
  return {
    settings,
    outcomes,
    api: new LiveKitApi(settings, outcome => outcomes.push(outcome)),
    take: () => asked.splice(0),
    answers(status: number, text: string, type = 'application/json') {
      answer = response => response.writeHead(status, { 'content-type': type }).end(text)
    },
    answersBy(next: Answer) {
      answer = next
    },
  }
}

t.test('it asks as LiveKit’s own SDK does', async t => {
  const { settings, api, take, answers } = await standIn(t)
  const { apiUrl, apiKey, apiSecret } = settings
  const sdk = new RoomServiceClient(apiUrl, apiKey, apiSecret)
  const form = { empty_timeout: 90, departure_timeout: 80, max_participants: 64 }
  await api.createRoom({ name: '7', metadata: '9' }, form)
  const [made] = take()
  await sdk.createRoom({
    ...{ name: '7', metadata: '9' },
    ...{ emptyTimeout: 90, departureTimeout: 80, maxParticipants: 64 },
  })
  const [theirs] = take()
  t.same([made!.path, made!.grants], [theirs!.path, theirs!.grants])
  // JSON of protocol buffers has both names of a member.
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())
  const members = Object.entries(made!.body as object).map(([name, value]) => [camel(name), value])
  t.same(Object.fromEntries(members), theirs!.body)
  answers(200, '{"rooms":[],"participants":[]}')
  for (const [ours, other] of [
    [() => api.deleteRoom('7'), () => sdk.deleteRoom('7')],
    [() => api.listRooms(['7']), () => sdk.listRooms(['7'])],
    [() => api.listParticipants('7'), () => sdk.listParticipants('7')],
    [() => api.removeParticipant('7', 'x'), () => sdk.removeParticipant('7', 'x')],
  ] as const) {
    await ours()
    const asked = take()
    await other()
    t.same(asked, take())
  }
})

t.test('it reads rooms, and participants who are connected', async t => {
  const { api, answers } = await standIn(t)
  answers(200, '{"rooms":[{"name":"7","metadata":"9","turn_password":"x"},{"name":"8"},{"sid":1},null,7]}')
  t.same(await api.listRooms(), [
    { name: '7', metadata: '9' },
    { name: '8', metadata: '' },
  ])
  const states = ['JOINING', 'JOINED', 'ACTIVE', 'DISCONNECTED', 9, null]
  const participants = states.map((state, at) => ({ identity: `p${at}`, state }))
  answers(200, JSON.stringify({ participants: [...participants, { state: 'ACTIVE' }, 'x'] }))
  t.same(await api.listParticipants('7'), ['p1', 'p2'])
  answers(200, '{}')
  t.same([await api.listRooms(), await api.listParticipants('7')], [[], []], 'an empty list may be left out')
})

t.test('what it refuses or answers wrongly has a name, and none of its text gets further', async t => {
  const { api, answers, answersBy, outcomes } = await standIn(t)
  const failed = async () => {
    const error = await api.deleteRoom('7').then(
      () => undefined,
      error => error,
    )
    return [error.failure, error.message]
  }
  answers(404, '{"code":"not_found","msg":"requested room does not exist"}')
  t.same(await failed(), ['no-such-room', 'livekit refused DeleteRoom: not_found'])
  answers(500, '{"code":"internal","msg":"secret"}')
  t.same(await failed(), ['refused', 'livekit refused DeleteRoom: internal'])
  answers(500, '{"code":"<b>secret</b>"}')
  t.same(await failed(), ['refused', 'livekit refused DeleteRoom: status 500'])
  answers(408, '{"code":"deadline_exceeded"}')
  t.same(await failed(), ['timeout', 'livekit refused DeleteRoom: deadline_exceeded'])
  t.same(new Set(outcomes.splice(0)), new Set(['ok']), 'it answers')
  for (const [status, text, failure] of [
    [401, 'invalid authorization token', 'refused'],
    [403, '{}', 'refused'],
    [502, '<html>', 'network'],
    [503, '{"code":"unavailable"}', 'network'],
    [200, '<html>', 'malformed'],
    [200, '[]', 'malformed'],
  ] as const) {
    answers(status, text)
    t.match((await failed())[0], failure, `${status} ${text}`)
    t.same(outcomes.splice(0), [failure])
  }
  answersBy(response => response.writeHead(307, { location: '/elsewhere' }).end())
  t.match(await failed(), ['network', 'livekit can not be reached'], 'it follows nobody with its token')
  answersBy(response => response.destroy())
  t.match(await failed(), ['network'])
  answers(200, '{"rooms":{}}')
  await t.rejects(api.listRooms(), { message: 'livekit listed no rooms' })
})

t.test('an answer without end, or that never comes, is given up', async t => {
  const { api, answersBy, outcomes } = await standIn(t)
  const chunk = Buffer.alloc(1024 * 1024, ' ')
  let sent = 0
  answersBy(response => {
    const more = () => {
      while (!response.destroyed) {
        sent += chunk.length
        if (!response.write(chunk)) return void response.once('drain', more)
      }
    }
    more()
  })
  await t.rejects(api.listRooms(), { failure: 'malformed', message: 'livekit answers without end' })
  t.ok(sent < 64 * chunk.length)
  answersBy(() => {})
  await t.rejects(api.listRooms(), { failure: 'timeout', message: 'livekit does not answer' })
  t.same(outcomes, ['malformed', 'timeout'])
})

t.test('so many requests are under way, and the rest waits', async t => {
  const { api, answersBy, take } = await standIn(t)
  const held: ServerResponse[] = []
  answersBy(response => void held.push(response))
  const asking = Promise.all(Array.from({ length: 40 }, () => api.listRooms()))
  while (held.length < 32) await new Promise(setImmediate)
  t.equal(take().length, 32)
  answersBy(response => response.end('{}'))
  for (const response of held) response.end('{}')
  await asking
  t.equal(take().length, 8)
})
