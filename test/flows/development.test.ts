/** What a development server does for those who write an app: pages of this machine, and what it says of a refusal. */

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { type RunningServer, startServer } from '../support/server.ts'

async function start(t: Test, environment: Record<string, string>): Promise<RunningServer> {
  const server = await startServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  return server
}

t.test(
  'in development pages of this machine may call and connect, and a refused one is named in the log',
  async t => {
    const server = await start(t, { CALLSIGN_LOG_LEVEL: 'info' })
    const page = 'http://localhost:5173'
    const ask = (origin: string) =>
      fetch(`${server.http}/app/api/login`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
    t.equal((await ask(page)).headers.get('access-control-allow-origin'), page)
    const socket = new WebSocket(`${server.http.replace('http', 'ws')}/ws`, { origin: page })
    await once(socket, 'open')
    socket.terminate()

    const elsewhere = ['https://a.example', 'https://b.example']
    t.equal((await ask(elsewhere[0]!)).headers.get('access-control-allow-origin'), null)
    const refused = new WebSocket(`${server.http.replace('http', 'ws')}/ws`, { origin: elsewhere[1]! })
    const [{ message }] = await once(refused, 'error')
    t.match(message, '403')
    await server.end()
    const lines = linesOf(server, 'origin-refused')
    t.same(
      lines.map(({ origin, setting }) => [origin, setting]),
      elsewhere.map(origin => [origin, 'CALLSIGN_CORS_ORIGINS']),
    )
  },
)

t.test(
  'a refusal has a log line with method, route, code and pointer, and without what was sent',
  async t => {
    const server = await start(t, { CALLSIGN_LOG_LEVEL: 'info' })
    const token = 'sk_do-not-repeat-this'
    await fetch(`${server.http}/app/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ email: `${token}@` }),
    })
    await fetch(`${server.http}/app/api/devices/${token}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    })
    await fetch(`${server.http}/nowhere/${token}`, { method: 'QUERY' })
    await server.end()
    const lines = linesOf(server, 'refused').map(({ method, route, code, pointer }) => [
      method,
      route,
      code,
      pointer,
    ])
    t.same(lines, [
      ['POST', '/app/api/login', 'VALIDATION_FAILED', '/email'],
      ['DELETE', '/app/api/devices/{deviceId}', 'TOKEN_INVALID', undefined],
      ['other', 'none', 'NOT_FOUND', undefined],
    ])
    t.notMatch(server.stderr(), token)
  },
)

/** The log lines of one event. */
function linesOf(server: RunningServer, event: string): Record<string, string>[] {
  const lines = server
    .stderr()
    .split('\n')
    .filter(line => line.startsWith('{'))
  return lines.map(line => JSON.parse(line)).filter(line => line.event === event)
}
