/**
 * Whether the application API slows down as users grow more, each with ten contacts and a device: reading oneself and a
 * page of contacts, asking somebody by their share token, starting, the disk and the memory. Each number of users is held
 * against the one before it.
 */

import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Parameters, Row } from './support/benchmark.ts'
import {
  collectedMegabytes,
  collectingArguments,
  collectingEnvironment,
  type Scales,
} from './support/collected-memory.ts'
import { compareHttp, type HttpSide } from './support/http-comparison.ts'
import { type RequestList, writeRequests } from './support/http-load.ts'
import type { PostLoadFigures, PostLoadProtocol } from './support/post-load.ts'
import { NEIGHBOURS, type PrefilledTown, prefilledTown } from './support/prefilled-town.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { measureStarts, type StartRows } from './support/starts.ts'
import { mean, rounded } from './support/statistics.ts'
import { comparedCosts, type Usage, withUsage } from './support/usage.ts'

const FEWER = 'the same with fewer users'
const READ = {
  limit: FEWER,
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.85 },
  notShown: '10,000 of the users ask in turn; the store is in the page cache.',
} as const
const USER: Row = { ...READ, name: 'users-user', project: 'GET /app/api/user, 10,000 users in turn' }
const FRIENDS: Row = {
  ...READ,
  name: 'users-friends',
  project: 'GET /app/api/friend, a page of ten contacts',
  notShown:
    'As many askers as have no contact in common where users are fewest, so that the same number of people is shown of each; with more than 65,536 at a time, names are read from the store again.',
}
const ASK: Row = {
  name: 'users-ask',
  project: 'POST /app/api/friend-request/by-token of somebody new',
  limit: FEWER,
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.8 },
  notShown: 'Rows of other users lie further apart, so that a commit writes more pages. Nobody is connected.',
}
const DISK: Row = {
  name: 'users-disk',
  project: 'bytes on disk for each user with ten contacts',
  limit: 'keys and values of all rows',
  unit: 'bytes',
  notShown: 'Pages that LMDB has freed and will use again are in the file too.',
}
const DISK_GROWTH: Row = {
  ...DISK,
  name: 'users-disk-growth',
  limit: FEWER,
  goal: { of: 'ratio', is: 'at most', value: 1.2 },
}
const MEMORY: Row = {
  name: 'users-memory',
  project: 'memory of its own after these requests, garbage collected',
  limit: FEWER,
  unit: 'MB',
  goal: { of: 'ratio', is: 'at most', value: 1.2 },
  notShown:
    'Pages of the store that are mapped are not among it: the system takes them back when it needs memory.',
}
const START_TIME: Row = {
  name: 'users-startup',
  project: 'start to ready line',
  limit: 'start of an empty Node process',
  unit: 's',
  goal: { of: 'project', is: 'at most', value: 3 },
  notShown: 'The page cache is warm, and nothing is overdue.',
}
const START_MEMORY: Row = {
  name: 'users-startup-memory',
  project: 'memory of its own when ready',
  limit: 'an empty Node process',
  unit: 'MB',
  notShown: MEMORY.notShown,
}
const STARTS: StartRows = {
  time: START_TIME,
  memory: START_MEMORY,
  timeGrowth: {
    name: 'users-startup-growth',
    project: START_TIME.project,
    limit: FEWER,
    unit: START_TIME.unit,
    notShown: START_TIME.notShown,
  },
  memoryGrowth: {
    ...START_MEMORY,
    name: 'users-startup-memory-growth',
    limit: FEWER,
    goal: { of: 'ratio', is: 'at most', value: 1.2 },
  },
}

const IN_FLIGHT = 64
const ASKED_PER_TURN = 1_000
const ASKED_PER_TURN_SMOKE = 64
/** Until everybody has asked once: a page of the store that the process never touched costs a fault. */
const WARM_UPS = 10
/** A user and their contacts on either side. */
const NEIGHBOURHOOD = 2 * NEIGHBOURS + 1

export const userGrowth: Benchmark = { name: 'user-growth', run }

async function run(context: BenchmarkContext): Promise<void> {
  const towns: PrefilledTown[] = []
  for (const users of context.scale.userCounts) {
    towns.push(await prefilledTown(context.storesFolder, context.folder, users))
  }
  recordDisk(context, towns)
  const stores = towns.map(({ users, dataFolder }) => ({ size: users, dataFolder }))
  await measureStarts(context, STARTS, 'users', stores)
  let [fresh] = towns
  for (const town of towns.slice(1)) {
    const [smaller, larger] = [await OpenTown.open(context, fresh!), await OpenTown.open(context, town)]
    await compare(context, smaller, larger)
    for (const each of [smaller, larger]) await each.end()
    // Who has been asked costs more to answer: the next comparison begins with a store in which nobody was.
    if (town !== towns.at(-1)) fresh = await prefilledTown(context.storesFolder, context.folder, town.users)
  }
}

function recordDisk(context: BenchmarkContext, towns: readonly PrefilledTown[]): void {
  for (const [at, { users, rowBytes, fileBytes }] of towns.entries()) {
    const parameters = { users }
    context.record(DISK, 1, { limit: rowBytes / users, project: fileBytes / users, parameters })
    const before = towns[at - 1]
    if (before === undefined) continue
    context.record(DISK_GROWTH, 1, {
      limit: before.fileBytes / before.users,
      project: fileBytes / users,
      parameters: { ...parameters, than: before.users },
    })
  }
}

async function compare(context: BenchmarkContext, smaller: OpenTown, larger: OpenTown): Promise<void> {
  const parameters = { users: larger.users, than: smaller.users }
  const strangers = Math.floor(smaller.people / NEIGHBOURHOOD)
  for (const [row, path, askers] of [
    [USER, '/app/api/user', smaller.people],
    [FRIENDS, '/app/api/friend', strangers],
  ] as const) {
    for (const town of [larger, smaller]) await town.readThrough()
    const [limit, project] = [smaller.sideOf(path, askers), larger.sideOf(path, askers)]
    await compareHttp(context, row, { limit, project, requests: project.requests, parameters })
  }
  await compareAsking(context, smaller, larger, parameters)
  const [limit, project] = [await smaller.megabytes(), await larger.megabytes()]
  context.record(MEMORY, 1, { limit, project, parameters })
}

async function compareAsking(
  context: BenchmarkContext,
  smaller: OpenTown,
  larger: OpenTown,
  parameters: Parameters,
): Promise<void> {
  for (const town of [larger, smaller]) await town.readThrough()
  for (let turn = 0; turn < (context.scale.isSmoke ? 1 : WARM_UPS); turn++) {
    for (const town of [smaller, larger]) await town.ask()
  }
  for (const round of context.rounds()) {
    const { limit, project } = await interleaved(
      round,
      context.scale.turns,
      () => smaller.ask(),
      () => larger.ask(),
    )
    const perSecond = (turns: readonly Asked[]) => mean(turns.map(({ figure }) => figure.perSecond))
    const workOf = (turns: readonly Asked[]) => ({ turns, operations: turns.length * larger.perTurn })
    context.record(ASK, round, {
      limit: perSecond(limit),
      project: perSecond(project),
      ...comparedCosts(workOf(limit), workOf(project)),
      parameters,
      details: { projectP99Ms: rounded(mean(project.map(({ figure }) => figure.latency.p99))) },
    })
  }
}

type Asked = Usage & { readonly figure: PostLoadFigures }

/** A server over a town, and a client that asks on behalf of its people. */
class OpenTown {
  readonly users: number
  readonly perTurn: number
  readonly #context: BenchmarkContext
  readonly #town: PrefilledTown
  readonly #server: Awaited<ReturnType<typeof startServer>>
  readonly #client: Program<PostLoadProtocol>
  /** How many have asked so far. */
  #asked = 0

  private constructor(
    context: BenchmarkContext,
    town: PrefilledTown,
    server: Awaited<ReturnType<typeof startServer>>,
    client: Program<PostLoadProtocol>,
  ) {
    this.users = town.users
    this.perTurn = context.scale.isSmoke ? ASKED_PER_TURN_SMOKE : ASKED_PER_TURN
    this.#context = context
    this.#town = town
    this.#server = server
    this.#client = client
  }

  static async open(context: BenchmarkContext, town: PrefilledTown): Promise<OpenTown> {
    const { profilesFolder } = context
    const { dataFolder } = town
    const [environment, nodeArguments] = [collectingEnvironment(scalesIn(dataFolder)), collectingArguments()]
    const server = await startServer({ dataFolder, profilesFolder, environment, nodeArguments })
    context.after(() => server.end())
    const client = await Program.start<PostLoadProtocol>('post-load', {})
    context.after(() => client.end())
    return new OpenTown(context, town, server, client)
  }

  end(): Promise<void> {
    return this.#server.end()
  }

  /** So that the store is in the page cache: some systems drop pages that nobody read lately. */
  async readThrough(): Promise<void> {
    const path = join(this.#town.dataFolder, 'store/data.mdb')
    for await (const _ of createReadStream(path, { highWaterMark: 1 << 20 }));
  }

  /** How many can ask. */
  get people(): number {
    return this.#town.people.length
  }

  /** GET of the path by so many in turn, as far from one another as they can be. */
  sideOf(path: string, askers: number): HttpSide & { readonly requests: RequestList } {
    const name = `users-${this.users}${path.replaceAll('/', '-')}`
    const { people } = this.#town
    const requests = Array.from({ length: askers }, (_, at) => ({
      path,
      token: people[Math.floor((at * people.length) / askers)]!.accessToken,
    }))
    const { http: url, pid } = this.#server
    return { url, pid, requests: writeRequests(this.#context.folder, name, requests) }
  }

  /** The next people each ask somebody whom nobody of them has asked or knows. */
  ask(): Promise<Asked> {
    const { people } = this.#town
    const requests = Array.from({ length: this.perTurn }, () => {
      const at = this.#asked++
      const [asker, further] = [at % people.length, Math.floor(at / people.length)]
      const asked = people[(asker + STRANGERS_FROM + further) % people.length]!
      const { accessToken: token } = people[asker]!
      return { path: ASK_PATH, body: JSON.stringify({ token: asked.shareToken }), token }
    })
    const load = { url: this.#server.http, requests, inFlight: IN_FLIGHT, status: 201 }
    return withUsage(this.#server.pid, () => this.#client.ask(load))
  }

  megabytes(): Promise<number> {
    return collectedMegabytes(this.#server.pid, scalesIn(this.#town.dataFolder))
  }
}

function scalesIn(dataFolder: string): Scales {
  return { path: join(dataFolder, 'memory.json'), collections: 3 }
}

const ASK_PATH = '/app/api/friend-request/by-token'
/** Further on than contacts are, and never coming round to those who asked before. */
const STRANGERS_FROM = 20
