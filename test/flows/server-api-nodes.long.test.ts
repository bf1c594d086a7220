/**
 * The server API of two nodes on one PostgreSQL, as one server to the operator's backend: also when the writer is killed in the
 * middle of an import that a front of the other node passes on. Every answered line is there, and every event of it comes.
 */

import t, { type Test } from 'tap'
import type { Scope } from '../../src/domain/operators/server-key.ts'
import { signInPerson } from '../support/call-people.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { Cluster, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { startSmsGateway } from '../support/sms-gateway.ts'
import { SocketClient } from '../support/socket-client.ts'
import { WEBHOOK_SECRET } from '../support/webhooks.ts'

const USERS = 10_000
const BYTES = 8 * 1024 * 1024
/** Lines that are answered before the writer is killed. */
const KILLED_BEHIND = 2_000
/** The rate of a key. */
const [BURST, SECOND_MAX] = [100, 50]
const ASKED = 600

interface ImportAnswer {
  readonly line: number
  readonly status: string
  readonly userId?: string
}

/** A key, made by the operator's command at this node. */
async function newKey({ server, environment }: TestNode, scopes: readonly Scope[]): Promise<string> {
  const args = ['create', '--name', 'backend', '--scopes', scopes.join(','), '--url', server.serverApi]
  const program = [builtProgram('scripts/server-key'), ...args]
  const { code, stdout, stderr } = await runProgram(process.execPath, program, { environment })
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

async function ask({ server }: TestNode, key: string, methodAndPath: string, body?: object) {
  const [method, path] = methodAndPath.split(' ') as [string, string]
  const answer = await fetch(`${server.serverApi}/server/api/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : JSON.parse(text) }
}

/** A file of as many lines and octets as an import takes. */
function importFile(): Uint8Array {
  const lineBytes = Math.floor(BYTES / USERS) - 1
  const lines = Array.from({ length: USERS }, (_, at) => {
    const text = JSON.stringify({ ref: `ext:user-${at}`, displayName: `User ${at}` })
    return `${text.padEnd(lineBytes)}\n`
  })
  return Buffer.from(lines.join(''))
}

/** Sends the file; resolves with the whole lines of the answer, and whether it came to its end. */
async function importAt(
  { server }: TestNode,
  key: string,
  file: Uint8Array,
  onLine: (count: number) => void = () => {},
): Promise<{ answers: ImportAnswer[]; isWhole: boolean }> {
  const answer = await fetch(`${server.serverApi}/server/api/v1/user-imports`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' },
    body: file as Uint8Array<ArrayBuffer>,
  })
  if (answer.status !== 200) throw new Error(await answer.text())
  const answers: ImportAnswer[] = []
  let text = ''
  try {
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (text + part).split('\n')
      text = lines.pop()!
      answers.push(...lines.map(line => JSON.parse(line)))
      onLine(answers.length)
    }
    return { answers, isWhole: true }
  } catch {
    return { answers, isWhole: false }
  }
}

async function startCluster(t: Test) {
  const receiver = await startSmsGateway()
  t.teardown(() => receiver.close())
  const cluster = await Cluster.start(t, {
    environment: {
      CALLSIGN_RATE_LIMITS: '',
      CALLSIGN_WEBHOOK_URL: receiver.url,
      CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET,
    },
  })
  return { cluster, receiver }
}

t.test(
  'an import that the writer does not survive, at a front of the other node',
  { skip: skipWithoutPostgres },
  async t => {
    const { cluster, receiver } = await startCluster(t)
    const { one, two } = cluster
    const key = await newKey(one, ['users'])
    const file = importFile()
    const first = await importAt(two, key, file, count => {
      if (count >= KILLED_BEHIND) one.kill('SIGKILL')
    })
    t.notOk(first.isWhole, 'it breaks off, and does not look as if it were whole')
    t.ok(first.answers.length >= KILLED_BEHIND && first.answers.length < USERS)

    await until(async () => {
      const { status, headers, body } = await ask(two, key, 'GET users/ext:user-0')
      if (status === 200) return true
      const isRetried = Number(headers.get('retry-after')) > 0
      if (status !== 503 || !isRetried || /front-/.test(body.detail)) t.fail(JSON.stringify(body))
      return false
    })
    const again = await importAt(two, key, file)
    t.equal(again.answers.length, USERS)
    const done = again.answers.slice(0, first.answers.length)
    t.strictSame(
      done,
      first.answers.map(answer => ({ ...answer, status: 'unchanged' })),
      'each line that was answered is there',
    )
    const third = await importAt(two, key, file)
    t.strictSame(
      third.answers,
      again.answers.map(answer => ({ ...answer, status: 'unchanged' })),
      'sent again, it changes nothing',
    )

    // The killed writer may have sent an event without writing its outcome.
    const eventOf = new Map<string, string>()
    let read = 0
    await until(async () => {
      for (; read < receiver.requests.length; read++) {
        const { body, headers } = receiver.requests[read]!
        const { type, data } = JSON.parse(body)
        if (type === 'user.created') eventOf.set(String(headers['webhook-id']), data.user.userId)
      }
      return eventOf.size >= USERS
    })
    t.equal(eventOf.size, USERS, 'an event that came twice has one id')
    t.strictSame(new Set(eventOf.values()), new Set(third.answers.map(({ userId }) => userId!)))
    t.equal(await two.end(), 0)
  },
)

t.test(
  'a suspension by one node ends sockets at the other, and both count one rate',
  { skip: skipWithoutPostgres },
  async t => {
    const { cluster } = await startCluster(t)
    const { one, two } = cluster
    const key = await newKey(two, ['users'])
    const { app, userId } = await signInPerson(one.server.http, 0)
    const socket = await SocketClient.connect('websocket', two.server.http, app.accessToken!)
    t.equal((await ask(one, key, `POST users/id:${userId}/suspend`, { reason: 'abuse' })).status, 200)
    await socket.until(() => socket.isClosed)
    t.equal(headerOf(socket.frames.at(-1), 'reason'), 'session_revoked')
    app.http = two.server.http
    t.equal(await app.outcome('GET /app/api/user'), '401 SESSION_REVOKED')

    const beganAt = performance.now()
    const asked = Array.from({ length: ASKED }, (_, at) =>
      ask(at % 2 === 0 ? one : two, key, `GET users/id:${userId}`),
    )
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    const seconds = (performance.now() - beganAt) / 1_000
    const taken = statuses.filter(status => status === 200).length
    t.ok(taken <= BURST + SECOND_MAX * Math.ceil(seconds), `${taken} of ${ASKED} in ${seconds} s`)
    t.strictSame(new Set(statuses), new Set(taken === ASKED ? [200] : [200, 429]))
    for (const node of [two, one]) t.equal(await node.end(), 0)
  },
)
