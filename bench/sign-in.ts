/**
 * How many newcomers a second can sign in by their code, and how many devices be registered, 64 at a time over kept
 * connections. Each is durable when answered, so both are held against bare LMDB that commits rows of the same sizes in
 * as many transactions; a registration also against gRPC Register, which is its log without accounts.
 */

import { createECDH, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CommitLimitProtocol } from './support/commit-limit.ts'
import type { PostRequest } from './support/http-connection.ts'
import type { PostLoadFigures, PostLoadProtocol, Window } from './support/post-load.ts'
import { formatShares, readProfiles } from './support/profile.ts'
import { Program } from './support/program.ts'
import type { RegisterLoadProtocol } from './support/register-load.ts'
import { interleaved } from './support/rounds.ts'
import { type RunningServer, startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import {
  bytesBetween,
  type RowSize,
  readStoreSize,
  rowsBetween,
  type StoreSize,
} from './support/store-rows.ts'
import { comparedCosts, type Usage, type Work, withUsage } from './support/usage.ts'

const NOT_SHOWN =
  'The load client shares the cores; codes are fixed ones, so that nothing is sent. Rows that are written over are not among those of the limit.'

const VERIFY: Row = {
  name: 'verify-login',
  project: 'POST /app/api/verify-login of a newcomer',
  limit: 'LMDB alone, rows of the same sizes',
  unit: 'sign-ins/s',
  notShown: NOT_SHOWN,
}
const REGISTER: Row = {
  name: 'register-device',
  project: 'POST /app/api/register_device of a new key',
  limit: 'LMDB alone, rows of the same sizes in two transactions',
  unit: 'devices/s',
  notShown: NOT_SHOWN,
}
const REGISTER_AND_GRPC: Row = {
  ...REGISTER,
  name: 'register-device-and-grpc',
  limit: 'gRPC Register of the same server',
  notShown: 'The gRPC client costs more than the HTTP client, and both share the cores with the server.',
}

export const verifyLogin: Benchmark = { name: 'verify-login', run: runVerify }
export const registerDevice: Benchmark = { name: 'register-device', run: runRegister }

async function runVerify(context: BenchmarkContext): Promise<void> {
  const house = await House.open(context)
  const limit = await house.limitOf(
    async count => void (await house.signIn(count)),
    (before, after, count) => [rowsBetween(before, after, count)],
  )
  for (const round of context.rounds()) {
    const { limit: limits, project } = await interleaved(
      round,
      context.scale.turns,
      () => limit(house.perTurn),
      () => house.measure(() => house.signIn(house.perTurn)),
    )
    house.record(VERIFY, round, limits, project)
  }
  await house.end()
}

async function runRegister(context: BenchmarkContext): Promise<void> {
  const house = await House.open(context)
  const register = async (count: number) => house.register((await house.signIn(count)).bodies)
  const limit = await house.limitOf(async count => void (await register(count)), rowsOfRegistration)
  const grpc = await Program.start<RegisterLoadProtocol>('register-load', {})
  context.after(() => grpc.end())
  const { turnSeconds: seconds } = context.scale
  const grpcLoad = { address: house.server.grpc, inFlight: IN_FLIGHT, seconds }
  for (const round of context.rounds()) {
    const { limit: limits, project } = await interleaved(
      round,
      context.scale.turns,
      async () => ({
        bare: await limit(house.perTurn),
        grpc: await withUsage(house.server.pid, () => grpc.ask(grpcLoad)),
      }),
      async () => {
        const { bodies } = await house.signIn(house.perTurn)
        return house.measure(() => house.register(bodies))
      },
    )
    const bare = limits.map(({ bare }) => bare)
    house.record(REGISTER, round, bare, project)
    const turns = limits.map(({ grpc: { figure, ...turn } }) => ({
      ...turn,
      figure: { perSecond: figure.callsPerSecond, operations: figure.calls },
    }))
    house.record(REGISTER_AND_GRPC, round, turns, project)
  }
  await house.end()
}

/** Begun with the log's batch, then finished: the pending row is as large as the device's. */
function rowsOfRegistration(before: StoreSize, after: StoreSize, count: number): readonly RowSize[][] {
  const rows = rowsBetween(before, after, count).filter(({ table }) => !table.startsWith('log-'))
  const logTables = [...after.keys()].filter(table => table.startsWith('log-'))
  const logged = logTables.flatMap(table => bytesBetween(table, before, after, count))
  const device = rows.find(({ table }) => table === 'devices')
  if (device === undefined) throw new Error('a registration leaves no device')
  const pending = { ...device, table: 'devices-pending', puts: 1, removes: 0 }
  return [
    [...logged, pending],
    [...rows, { ...pending, puts: 0, removes: 1 }],
  ]
}

type MeasuredTurn = Usage & { readonly figure: PostLoadFigures }
type LimitTurn = Usage & { readonly figure: { readonly perSecond: number; readonly operations: number } }

/** A server, a client, and people who have not signed in yet. */
class House {
  readonly server: RunningServer
  /** Operations of one turn: about as many as a second takes. */
  readonly perTurn: number
  readonly #context: BenchmarkContext
  readonly #client: Program<PostLoadProtocol>
  readonly #dataFolder: string
  readonly #windows: Window[] = []
  #people = 0

  private constructor(
    context: BenchmarkContext,
    parts: { server: RunningServer; client: Program<PostLoadProtocol>; dataFolder: string },
  ) {
    this.#context = context
    this.server = parts.server
    this.#client = parts.client
    this.#dataFolder = parts.dataFolder
    this.perTurn = context.scale.isSmoke ? PER_TURN_SMOKE : PER_TURN
  }

  static async open(context: BenchmarkContext): Promise<House> {
    const { folder, profilesFolder } = context
    const [dataFolder, codesFile] = [join(folder, 'data'), join(folder, 'codes.json')]
    const codes = Array.from({ length: PEOPLE_MAX }, (_, at) => [emailOf(at), OTP])
    writeFileSync(codesFile, JSON.stringify(Object.fromEntries(codes)))
    const environment = { CALLSIGN_TEST_IDENTIFIERS_FILE: codesFile }
    const server = await startServer({ dataFolder, environment, profilesFolder })
    context.after(() => server.end())
    const client = await Program.start<PostLoadProtocol>('post-load', {})
    context.after(() => client.end())
    return new House(context, { server, client, dataFolder })
  }

  /** Has so many newcomers ask for a code, and then signs them in, which is what the figures are of. */
  async signIn(count: number): Promise<PostLoadFigures> {
    const emails = Array.from({ length: count }, () => emailOf(this.#people++))
    if (this.#people > PEOPLE_MAX) throw new Error(`there are only ${PEOPLE_MAX} people`)
    const asked = emails.map(email => ({ path: '/app/api/login', body: JSON.stringify({ email }) }))
    const { bodies } = await this.#post(asked, 200)
    const codes = bodies.map(body => {
      const { challengeId } = JSON.parse(body)
      return { path: '/app/api/verify-login', body: JSON.stringify({ challengeId, otp: OTP }) }
    })
    return this.#post(codes, 200)
  }

  /** Registers a device of each user who has signed in with this reply. */
  register(signedIn: readonly string[]): Promise<PostLoadFigures> {
    const requests = signedIn.map(body => {
      const { accessToken: token } = JSON.parse(body)
      const push = { apnsToken: randomBytes(32).toString('hex'), bundleId: 'org.example.callsign' }
      const deviceInfo = { platform: 'ios', model: 'iPhone15,2', name: 'A telephone', appVersion: '1.4.2' }
      const sent = { publicKey: newPublicKey(), deviceInfo, push }
      return { path: '/app/api/register_device', body: JSON.stringify(sent), token }
    })
    return this.#post(requests, 201)
  }

  /** Measures the load, and has the profile count the same time. */
  async measure(run: () => Promise<PostLoadFigures>): Promise<MeasuredTurn> {
    const measured = await withUsage(this.server.pid, run)
    this.#windows.push(measured.figure.window)
    return measured
  }

  /** A limit that commits as many rows as the operation leaves in the store. Warms the server up by the way. */
  async limitOf(
    operate: (count: number) => Promise<void>,
    rowsOf: (before: StoreSize, after: StoreSize, count: number) => readonly (readonly RowSize[])[],
  ): Promise<(operations: number) => Promise<LimitTurn>> {
    await operate(WARM_UP)
    const before = await readStoreSize(this.#dataFolder)
    await operate(WARM_UP)
    const after = await readStoreSize(this.#dataFolder)
    const transactions = rowsOf(before, after, WARM_UP)
    const folder = join(this.#context.folder, 'limit')
    const limit = await Program.start<CommitLimitProtocol>('commit-limit', { folder, transactions })
    this.#context.after(() => limit.end())
    await limit.ask({ operations: WARM_UP, inFlight: IN_FLIGHT })
    return operations =>
      withUsage(limit.pid, async () => ({
        ...(await limit.ask({ operations, inFlight: IN_FLIGHT })),
        operations,
      }))
  }

  record(row: Row, round: number, limits: readonly LimitTurn[], turns: readonly MeasuredTurn[]): void {
    const operations = turns.length * this.perTurn
    const limit: Work = { turns: limits, operations: sum(limits.map(({ figure }) => figure.operations)) }
    this.#context.record(row, round, {
      limit: mean(limits.map(({ figure }) => figure.perSecond)),
      project: mean(turns.map(({ figure }) => figure.perSecond)),
      ...comparedCosts(limit, { turns, operations }),
      parameters: { inFlight: IN_FLIGHT },
      details: {
        projectP50Ms: rounded(mean(turns.map(({ figure }) => figure.latency.p50))),
        projectP99Ms: rounded(mean(turns.map(({ figure }) => figure.latency.p99))),
        clientCpuMicroseconds: rounded(
          (sum(turns.map(({ figure }) => figure.clientCpuSeconds)) * 1e6) / operations,
        ),
      },
    })
  }

  /** Says where the measured time went, when the server was profiled. */
  async end(): Promise<void> {
    const { profilesFolder } = this.#context
    if (profilesFolder === undefined) return
    await this.server.end()
    const operations = this.#windows.length * this.perTurn
    process.stderr.write(`\n${formatShares(readProfiles(profilesFolder, this.#windows), PARTS, operations)}`)
  }

  #post(requests: readonly PostRequest[], status: number): Promise<PostLoadFigures> {
    return this.#client.ask({ url: this.server.http, requests, inFlight: IN_FLIGHT, status })
  }
}

function emailOf(at: number): string {
  return `user${at}@bench.example`
}

/** X9.63 of P-256, base64. */
function newPublicKey(): string {
  return createECDH('prime256v1').generateKeys('base64')
}

/** A module's part of the work, in the words of the table; the first that fits. */
const PARTS: readonly (readonly [part: string, modules: RegExp])[] = [
  [
    'HTTP: reading, writing, routing',
    /^src\/transport\/|uWebSockets|^src\/api\/operation-routes|^Node: (url|net)/,
  ],
  ['JSON and its checks', /^src\/schema\/|typebox|native: (parse|stringify)/],
  ['token', /^src\/api\/authentication|^src\/domain\/(token|session|secrets)/],
  ['operation and its rules', /^src\/(api|domain)\//],
  ['transaction: rows and commits', /^src\/store\/|lmdb|msgpackr|ordered-binary/],
  ['log batch', /^actors\/log-appender|^src\/log\/(?!vrf)/],
  ['VRF, its jobs handed over and back', /^src\/log\/vrf|libsodium|WebAssembly|native: postMessage/],
  ['actors', /^src\/runtime\/|^actors\//],
  ['is the key on its curve', /^Node: crypto\/keys/],
  ['random numbers', /^Node: crypto\/random/],
  ['hashes and MACs', /^Node: crypto|native: (hash|Hmac|update|digest)/],
  ['log lines and metrics', /^src\/operations\/|pino|sonic-boom|prom-client|quick-format/],
  ['garbage collector', /^garbage collector/],
  ['native code, system calls', /^native code/],
]

const IN_FLIGHT = 64
const OTP = '424242'
const WARM_UP = 512
const PER_TURN = 1_000
const PER_TURN_SMOKE = 64
/** Enough for three times the usual rounds. */
const PEOPLE_MAX = 60_000
