/**
 * How fast an authenticated `GET /app/api/user` is answered: token, session and user are read for each; held against
 * bare uWebSockets.js that sends the same bytes.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { recordAnswer } from './support/http-answer.ts'
import { compareHttp } from './support/http-comparison.ts'
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
    const answer = await recordAnswer(server.http + PATH, undefined, tokens[0])
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
    })
  } finally {
    await server.end()
  }
}
