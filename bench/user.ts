/**
 * How fast an authenticated `GET /app/api/user` is answered: token, session and user are read for each; held against
 * bare uWebSockets.js that sends the same bytes. Its peer is Fastify.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { deriveSecrets } from '../src/domain/secrets.ts'
import { developmentKeys } from '../src/server/development-keys.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { FastifyServerProtocol } from './support/fastify-server.ts'
import { type RecordedAnswer, recordAnswer } from './support/http-answer.ts'
import { compareHttp, type HttpSide } from './support/http-comparison.ts'
import { writeRequests } from './support/http-load.ts'
import { Program } from './support/program.ts'
import type { RawHttpProtocol } from './support/raw-http.ts'
import { startServer } from './support/server.ts'
import { signIn, testIdentifiers } from './support/sign-in.ts'

const USER: Row = {
  name: 'user',
  project: 'GET /app/api/user with an access token',
  limit: 'bare uWebSockets.js, same bytes',
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.5 },
  notShown: 'Users that were read lately; a store larger than memory would also wait for its disk.',
}

const USERS = 100
const PATH = '/app/api/user'

export const user: Benchmark = { name: 'user', run }

async function run(context: BenchmarkContext): Promise<void> {
  const dataFolder = join(context.storesFolder, 'users')
  rmSync(dataFolder, { recursive: true, force: true })
  const identifiers = testIdentifiers(USERS)
  const server = await startServer({
    dataFolder,
    environment: { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(identifiers) },
    profilesFolder: context.profilesFolder,
  })
  try {
    const tokens: string[] = []
    for (const [email, otp] of Object.entries(identifiers)) tokens.push(await signIn(server.http, email, otp))
    const answers = new Map<string, RecordedAnswer>()
    for (const token of tokens) answers.set(token, await recordAnswer(server.http + PATH, undefined, token))
    const answer = answers.get(tokens[0]!)!
    const raw = await Program.start<RawHttpProtocol>('raw-http', { answers: new Map([[PATH, answer]]) })
    context.after(() => raw.end())
    await compareHttp(context, USER, {
      limit: { url: await raw.ask('address'), pid: raw.pid },
      project: { url: server.http, pid: server.pid },
      requests: writeRequests(
        context.storesFolder,
        'user',
        tokens.map(token => ({ path: PATH, token })),
      ),
      parameters: { users: USERS },
      peers: await openFastify(context, dataFolder, answers),
    })
  } finally {
    await server.end()
  }
}

/** Fastify that checks the same tokens and answers with the same bytes; none when peers are not wanted. */
async function openFastify(
  context: BenchmarkContext,
  dataFolder: string,
  answers: ReadonlyMap<string, RecordedAnswer>,
): Promise<ReadonlyMap<string, HttpSide>> {
  if (!context.hasPeers) return new Map()
  const { secret } = developmentKeys(dataFolder).keys
  const [first] = answers.values()
  const server = await Program.start<FastifyServerProtocol>('fastify-server', {
    path: PATH,
    secret: deriveSecrets(Buffer.from(secret, 'base64')).accessToken.export(),
    tokens: [...answers].map(([token, { body }]) => [token, Buffer.from(body).toString()]),
    headers: (first?.headers ?? []).filter(([name]) => name !== 'content-type'),
  })
  context.after(() => server.end())
  const { url, name } = await server.ask('server')
  return new Map([[name, { url, pid: server.pid }]])
}
