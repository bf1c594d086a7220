/** The process as an operator meets it: settings, refusals to start, the ready line, the lock, the stop. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseEnv, promisify } from 'node:util'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { vapidPublicKey } from '../../src/delivery/vapid-key.ts'
import { userTokenKeyTexts } from '../../src/domain/accounts/user-token.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/nodes.ts'
import { openRefused, openServer } from '../support/open-server.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { freshPublicKey, postJson, startRefused, startServer } from '../support/server.ts'
import { bySize, sized } from '../support/size.ts'

const run = promisify(execFile)
const KEYGEN = startedProgram('scripts/keygen')

function keysOf(origin: string) {
  const keys = generateKeys(origin, length => randomBytes(length))
  return {
    CALLSIGN_ORIGIN: origin,
    KT_PRIVATE_KEY: keys.ktPrivateKey,
    VRF_PRIVATE_KEY: keys.vrfPrivateKey,
    CALLSIGN_SECRET: keys.secret,
    CALLSIGN_PUBLIC_URL: `https://${origin}`,
  }
}

t.test('keygen makes the environment that production starts with', async t => {
  const origin = 'kt.example.org/log'
  const { stdout } = await run(process.execPath, [KEYGEN, '--origin', origin])
  const { KT_PUBLIC_KEY, VRF_PUBLIC_KEY, KT_INDEX_PUBLIC_KEY, ...environment } = parseEnv(stdout) as Record<
    string,
    string
  >
  const server = await startServer({
    dataFolder: t.testdir(),
    dev: false,
    environment: {
      ...environment,
      CALLSIGN_HTTP_HOST: '127.0.0.1',
      CALLSIGN_PUBLIC_URL: 'https://kt.example.org/',
    },
  })
  t.teardown(() => server.end())
  t.match(server, { origin, vkey: KT_PUBLIC_KEY, vrfPublicKey: VRF_PUBLIC_KEY })
  const meta = await (await fetch(`${server.http}/app/api/meta`)).json()
  const index = { vkey: KT_INDEX_PUBLIC_KEY }
  const log = {
    origin,
    vkey: KT_PUBLIC_KEY,
    vrfPublicKey: VRF_PUBLIC_KEY,
    url: 'https://kt.example.org',
    index,
  }
  const features = { log: 'open', webPush: true }
  const webPush = { publicKey: vapidPublicKey(environment.CALLSIGN_VAPID_KEY!) }
  t.match(meta, { apiVersion: 1, limits: { targetsPerLookup: 64 }, features, webPush, log })
  for (const secret of [
    environment.KT_PRIVATE_KEY,
    environment.KT_INDEX_PRIVATE_KEY,
    environment.VRF_PRIVATE_KEY,
    environment.CALLSIGN_SECRET,
    environment.CALLSIGN_VAPID_KEY,
    environment.CALLSIGN_TOKEN_KEY,
  ]) {
    t.notOk(server.stderr().includes(secret!), 'no secret in the log output')
  }
})

t.test('keygen makes the key of the index, of pushes to browsers, of user tokens, each alone', async t => {
  const made = async (flag: string) => ({ ...parseEnv((await run(process.execPath, [KEYGEN, flag])).stdout) })
  const { CALLSIGN_VAPID_KEY = '', ...others } = await made('--vapid')
  t.ok(vapidPublicKey(CALLSIGN_VAPID_KEY))
  const { CALLSIGN_TOKEN_KEY = '', ...more } = await made('--token')
  t.same(userTokenKeyTexts(CALLSIGN_TOKEN_KEY), [CALLSIGN_TOKEN_KEY])
  t.same([others, more], [{}, {}])
  const index = await run(process.execPath, [KEYGEN, '--index', '--origin', 'kt.example.org/log'])
  t.match(
    index.stdout,
    /^KT_INDEX_PRIVATE_KEY=PRIVATE\+KEY\+kt\.example\.org\/log\/index\+.*\nKT_INDEX_PUBLIC_KEY=kt\.example\.org\/log\/index\+.*\n$/,
  )
  for (const wrong of [['--vapid', '--origin', 'x'], ['--index'], ['--index', '--vapid', '--origin', 'x']])
    await t.rejects(run(process.execPath, [KEYGEN, ...wrong]), { code: 2 }, wrong.join(' '))
})

t.test('keygen refuses an origin that no checkpoint can carry', sized(), async t => {
  const origins = ['', 'has space', 'has+plus', `${'x'.repeat(256)}`, 'two\nlines']
  for (const origin of origins.slice(0, bySize({ short: 2, long: origins.length }))) {
    await t.rejects(
      run(process.execPath, [KEYGEN, '--origin', origin]),
      { code: 2 },
      JSON.stringify(origin.slice(0, 20)),
    )
  }
  await t.rejects(run(process.execPath, [KEYGEN]), { code: 2 }, 'none given')
})

t.test('production names everything that is missing, at once', async t => {
  const { code, stderr } = await openRefused({ dataFolder: t.testdir(), dev: false })
  t.equal(code, 1)
  for (const name of [
    'KT_PRIVATE_KEY',
    'VRF_PRIVATE_KEY',
    'CALLSIGN_ORIGIN',
    'CALLSIGN_SECRET',
    'CALLSIGN_PUBLIC_URL',
  ]) {
    t.match(stderr, new RegExp(`${name} is missing`))
  }
})

t.test('an unsafe or unknown setting is refused at the start, by name and without its value', async t => {
  const keys = keysOf('kt.example.org/log')
  const other = keysOf('other.example.org/log')
  const cases: [string, boolean, Record<string, string>, RegExp[]][] = [
    [
      'settings of production',
      false,
      {
        ...keys,
        CALLSIGN_GRPC_HOST: '0.0.0.0',
        CALLSIGN_RATE_LIMITS: 'off',
        CALLSIGN_SECRET: 'AAAA',
        CALLSIGN_SMTP_URL_FILE: '/no/such/file',
      },
      [
        /CALLSIGN_GRPC_HOST.*CALLSIGN_GRPC_TOKEN/,
        /CALLSIGN_RATE_LIMITS/,
        /CALLSIGN_SECRET/,
        /CALLSIGN_SMTP_URL_FILE/,
      ],
    ],
    [
      'a key of another origin',
      false,
      { ...keys, KT_PRIVATE_KEY: other.KT_PRIVATE_KEY! },
      [/KT_PRIVATE_KEY is of/],
    ],
    [
      'a damaged key',
      false,
      { ...keys, KT_PRIVATE_KEY: `${keys.KT_PRIVATE_KEY!.slice(0, -4)}AAA=` },
      [/KT_PRIVATE_KEY/],
    ],
    ['a damaged VRF key', false, { ...keys, VRF_PRIVATE_KEY: 'AAAA' }, [/VRF_PRIVATE_KEY/]],
    [
      'settings of development',
      true,
      {
        CALLSIGN_HTTP_PROT: '1',
        CALLSIGN_GRPC_PORT: '70000',
        CALLSIGN_HTTP_HOST: '0.0.0.0',
        CALLSIGN_ORIGIN: 'x.example',
      },
      [
        /CALLSIGN_HTTP_PROT is not a setting/,
        /CALLSIGN_GRPC_PORT/,
        /CALLSIGN_DEV_EXPOSE/,
        /KT_PRIVATE_KEY is missing/,
      ],
    ],
  ]
  for (const [what, dev, environment, sentences] of cases) {
    const { code, stderr } = await openRefused({ dataFolder: t.testdir(), dev, environment })
    t.equal(code, 1, what)
    for (const sentence of sentences) t.match(stderr, sentence, what)
    t.notMatch(stderr, /\n {4}at /, `${what}: no stack`)
    for (const secret of [keys.KT_PRIVATE_KEY!, keys.VRF_PRIVATE_KEY!, keys.CALLSIGN_SECRET!]) {
      if (stderr.includes(secret)) t.fail(`${what}: a secret is shown`)
    }
  }
})

t.test('development makes its keys once, for the owner’s eyes, and keeps them', async t => {
  const dataFolder = join(t.testdir(), 'new', 'folder')
  const first = await openServer({ dataFolder })
  const path = join(dataFolder, 'development-keys.env')
  t.equal(statSync(path).mode & 0o777, 0o600)
  const { KT_PRIVATE_KEY } = parseEnv(readFileSync(path, 'utf8'))
  t.notOk(first.stderr().includes(KT_PRIVATE_KEY!), 'not shown')
  await first.end()
  const second = await openServer({ dataFolder })
  t.equal(second.vkey, first.vkey)
  await second.end()
  const kept = readFileSync(path, 'utf8').replace(/^KT_INDEX_.*\n/gm, '')
  writeFileSync(path, kept)
  const third = await openServer({ dataFolder })
  const { log } = (await (await fetch(`${third.http}/app/api/meta`)).json()) as {
    log: { vkey: string; index?: object }
  }
  t.same([log.vkey, log.index], [first.vkey, undefined], 'a folder without a key of the index has no index')
  await third.end()
})

t.test('a store refuses other keys and another origin than its own', async t => {
  const dataFolder = t.testdir()
  const [keys, otherKeys, otherOrigin] = [
    keysOf('kt.example.org/log'),
    keysOf('kt.example.org/log'),
    keysOf('other.example.org/log'),
  ]
  const local = { CALLSIGN_HTTP_HOST: '127.0.0.1' }
  const server = await openServer({ dataFolder, dev: false, environment: { ...keys, ...local } })
  await server.end()
  const wrong = [otherKeys, otherOrigin, { ...keys, VRF_PRIVATE_KEY: otherKeys.VRF_PRIVATE_KEY }]
  for (const environment of wrong) {
    const { code, stderr } = await openRefused({
      dataFolder,
      dev: false,
      environment: { ...environment, ...local },
    })
    t.equal(code, 1)
    t.match(stderr, /log-head-file-unset/)
    t.match(stderr.trimEnd().split('\n').at(-1), /the data directory was made with/, 'the last line')
  }
})

t.test('a second server on the same data is refused; after kill -9 the next one starts', async t => {
  const dataFolder = t.testdir()
  const first = await startServer({ dataFolder })
  const { code, stderr } = await openRefused({ dataFolder })
  t.equal(code, 1)
  t.match(stderr, /is in use by process \d+/)
  await first.end('SIGKILL')
  const next = await openServer({ dataFolder })
  t.equal(next.vkey, first.vkey)
  await next.end()
})

t.test('where uWebSockets.js does not load, that is one line and exit 1', async t => {
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WITHOUT_BINARY)}` }
  const { code, stderr } = await startRefused({ dataFolder: t.testdir(), environment })
  t.equal(code, 1)
  t.match(stderr, /^callsign: uWebSockets\.js does not run here \(Node v[^\n]+GLIBC_9 not found\)\n$/)
})

async function takePort(t: Test): Promise<number> {
  const blocker = createServer().listen(0, '127.0.0.1')
  t.teardown(() => blocker.close())
  await once(blocker, 'listening')
  return (blocker.address() as AddressInfo).port
}

t.test('in production a taken port is one line and exit 1', sized(), async t => {
  const port = await takePort(t)
  const keys = keysOf('kt.example.org/log')
  const listeners = ['HTTP', 'GRPC', 'ADMIN'].map(name => `CALLSIGN_${name}_HOST, CALLSIGN_${name}_PORT`)
  // Each goes the way of the first, by its own names.
  const more = bySize({ short: 1, long: listeners.length })
  for (const names of [...listeners.slice(0, more), 'CALLSIGN_STOMP_TCP_PORT']) {
    const environment = {
      ...keys,
      CALLSIGN_HTTP_HOST: '127.0.0.1',
      [names.split(', ').at(-1)!]: String(port),
      CALLSIGN_LOG_LEVEL: 'error',
    }
    const { code, stderr } = await startRefused({ dataFolder: t.testdir(), environment, dev: false })
    t.equal(code, 1, names)
    t.match(stderr, new RegExp(`\n  ${names}: 127.0.0.1:${port} is taken \\(EADDRINUSE\\): .*\n$`), names)
  }
})

t.test('in development each server takes the next port instead, and says so', async t => {
  const servers = ['HTTP', 'GRPC', 'ADMIN', 'SERVER_API', 'STOMP_TCP']
  const names = servers.map(name => `CALLSIGN_${name}_PORT`)
  const ports = await Promise.all(names.map(async name => [name, await takePort(t)] as const))
  const environment = Object.fromEntries(ports.map(([name, port]) => [name, String(port)]))
  const server = await openServer({ dataFolder: t.testdir(), environment })
  for (const [name, port] of ports) {
    const said = new RegExp(
      `^callsign: port ${port} is taken: using (\\d+) \\(${name} chooses another\\)$`,
      'm',
    )
    await until(async () => said.test(server.stderr()))
    const [, used] = said.exec(server.stderr())!
    t.ok(Number(used) > port && Number(used) <= port + 20, `${name}: ${used}`)
    const addresses = [server.http, server.grpc, server.admin, server.serverApi, server.stompTcp ?? '']
    t.ok(
      addresses.some(address => address.endsWith(`:${used}`)),
      'the ready line has it',
    )
  }
  t.equal((await fetch(`${server.admin}/readyz`)).status, 200)
  await server.end()
})

t.test('an address that is not of this machine is said to be none', sized(), async t => {
  for (const name of ['GRPC', 'HTTP', 'ADMIN'].slice(0, bySize({ short: 1, long: 3 }))) {
    const environment = {
      [`CALLSIGN_${name}_HOST`]: '192.0.2.1',
      CALLSIGN_DEV_EXPOSE: '1',
      CALLSIGN_GRPC_TOKEN: 'token',
    }
    // That of gRPC is the first to be listened at; the others leave listeners behind.
    const refuse = name === 'GRPC' ? openRefused : startRefused
    const { code, stderr } = await refuse({ dataFolder: t.testdir(), environment })
    t.equal(code, 1, name)
    t.match(stderr, new RegExp(`CALLSIGN_${name}_PORT: 192.0.2.1:0 is not an address of this machine`))
  }
})

t.test('a restart gets its ports back at once, also with connections left from before', sized(), async t => {
  const dataFolder = t.testdir()
  const names = ['HTTP', 'GRPC', 'ADMIN', 'SERVER_API'].map(name => `CALLSIGN_${name}_PORT`)
  const ports = await Promise.all(names.map(freePort))
  const environment = Object.fromEntries(names.map((name, at) => [name, String(ports[at])]))
  for (let round = 1; round <= bySize({ short: 2, long: 3 }); round++) {
    const server = await startServer({ dataFolder, environment })
    for (const url of [
      `${server.http}/checkpoint`,
      `${server.admin}/healthz`,
      `${server.serverApi}/server/openapi.json`,
    ])
      await (await fetch(url)).text()
    t.equal(await server.end(), 0, `round ${round}`)
  }
})

t.test('the process is not ready before the public port listens', async t => {
  const [httpPort, adminPort] = [await freePort(), await freePort()]
  // The server looks whether the port is another's, and hears nothing while this one is mute.
  const mute = await muteListener(t, httpPort)
  const environment = { CALLSIGN_HTTP_PORT: String(httpPort), CALLSIGN_ADMIN_PORT: String(adminPort) }
  const starting = openServer({ dataFolder: t.testdir(), environment })
  const readyz = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).text()
  const early = await eventually(readyz)
  mute.kill('SIGKILL')
  const server = await starting
  t.teardown(() => server.end())
  t.same([early, await readyz()], ['starting\n', 'ready\n'])
})

t.test('the operators’ port tells health, readiness and figures, and nothing else', async t => {
  // With fronts a label names the process.
  const environment = { CALLSIGN_FRONTS: '0' }
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  const client = new RegisterClient(server.grpc)
  const { vrfHash } = await client.register(1n, 2n, freshPublicKey())
  client.close()
  await postJson(`${server.http}/api/get-public-keys`, { targets: [{ publicKeyHash: vrfHash }] })
  t.equal((await fetch(`${server.admin}/healthz`)).status, 200)
  t.equal((await fetch(`${server.admin}/readyz`)).status, 200)
  const metrics = await (await fetch(`${server.admin}/metrics`)).text()
  t.match(metrics, /^callsign_log_tree_size 1$/m)
  t.match(metrics, /^callsign_log_registrations_total 1$/m)
  t.match(metrics, /^callsign_http_request_seconds_count\{route="\/api\/get-public-keys",status="200"\} 1$/m)
  t.match(metrics, /^callsign_grpc_call_seconds_count\{status="OK"\} 1$/m)
  t.match(metrics, /^callsign_actors_live\{kind="log-appender"\} 1$/m)
  t.notOk(metrics.includes(vrfHash.slice(0, 20)), 'no hash in a label')
  t.equal((await fetch(`${server.admin}/checkpoint`)).status, 404)
})

t.test('every log line is JSON with an event, and holds no user, key or hash', async t => {
  const dataFolder = t.testdir()
  const server = await startServer({ dataFolder })
  const client = new RegisterClient(server.grpc)
  const publicKey = freshPublicKey()
  const { vrfHash } = await client.register(1234567890123n, 9876543210987n, publicKey)
  await client.register(1n, 1n, 'not base64').catch(() => undefined)
  client.close()
  await server.end()
  const lines = server
    .stderr()
    .split('\n')
    .filter(line => line.startsWith('{'))
  const events = lines.map(line => JSON.parse(line))
  t.ok(events.every(({ event, level, time }) => event && level && time))
  t.match(events.map(({ event }) => event).join(), /checkpoint,.*registered,.*refused,.*stopped/s)
  for (const secret of [publicKey, vrfHash, '1234567890123', '9876543210987']) {
    t.notOk(
      lines.some(line => line.includes(secret)),
      'not in the log output',
    )
  }
})

t.test('a server goes on when nothing reads its log, or the log’s disk is full', async t => {
  const readNoMore = await startServer({ dataFolder: t.testdir() })
  readNoMore.process.stderr!.destroy()
  const wrapper = ['bash', '-c', 'exec "$@" 2> /dev/full', '-']
  const withFullDisk = await startServer({ dataFolder: join(t.testdirName, 'full'), wrapper })
  for (const server of [readNoMore, withFullDisk]) {
    // Each is a line of the log; forty are more than it gathers.
    for (let count = 0; count < 100; count++) {
      const { status } = await postJson(`${server.http}/api/get-public-keys`, { targets: [] })
      t.equal(status, 422)
    }
    t.equal(await server.end(), 0)
  }
})

t.test('SIGTERM answers open requests, then exits 0', async t => {
  const dataFolder = t.testdir()
  const server = await startServer({ dataFolder, environment: { CALLSIGN_LOG_LEVEL: 'error' } })
  const client = new RegisterClient(server.grpc)
  let answered = 0
  const refusals: number[] = []
  const calls = Array.from({ length: 400 }, (_, user) =>
    client.register(BigInt(user), 1n, freshPublicKey()).then(
      () => {
        answered++
        if (answered === 20) server.process.kill('SIGTERM')
      },
      (error: { code: number }) => refusals.push(error.code),
    ),
  )
  await Promise.all(calls)
  client.close()
  t.equal(await server.end(), 0)
  t.same(
    [...new Set(refusals)].filter(code => code !== 14),
    [],
    'what came too late is UNAVAILABLE',
  )
  const next = await openServer({ dataFolder })
  t.teardown(() => next.end())
  const checkpoint = await (await fetch(`${next.http}/checkpoint`)).text()
  t.ok(Number(checkpoint.split('\n')[1]) >= answered, `${answered} answered, all there`)
})

t.test('so do Ctrl-C and a terminal that is closed', async t => {
  for (const signal of ['SIGINT', 'SIGHUP'] as const) {
    const server = await startServer({ dataFolder: t.testdir() })
    t.equal(await server.end(signal), 0, signal)
  }
})

t.test('a data directory that can’t be written is a sentence, not a stack', sized(), async t => {
  const folder = t.testdir()
  const blocked = join(folder, 'file')
  writeFileSync(blocked, '')
  const closed = join(folder, 'closed')
  mkdirSync(closed, { mode: 0o500 })
  const store = join(folder, 'store-of-another')
  const server = await openServer({ dataFolder: store })
  await server.end()
  chmodSync(store, 0o755)
  chmodSync(join(store, 'development-keys.env'), 0o644)
  for (const file of ['store/data.mdb', 'store/lock.mdb', 'lock/data.mdb', 'lock/lock.mdb'])
    chmodSync(join(store, file), 0o444)
  const inTheWay = /a file is in the way/
  const notOurs = /chown it/
  const cases: [string, RegExp][] = [
    [blocked, inTheWay],
    [join(blocked, 'data'), inTheWay],
    [closed, notOurs],
    [store, notOurs],
    [join(closed, 'data'), notOurs],
  ]
  for (const [dataFolder, sentence] of cases.slice(0, bySize({ short: 4, long: cases.length }))) {
    const { code, stderr } =
      sentence === inTheWay
        ? await openRefused({ dataFolder })
        : await startRefused({ dataFolder, wrapper: AS_ANOTHER })
    t.equal(code, 1, dataFolder)
    t.match(stderr, sentence)
    t.ok(stderr.includes(`CALLSIGN_DATA_DIR ${dataFolder} can't be used`), stderr)
    t.notMatch(stderr, /\n {4}at /)
  }
  t.same(readdirSync(closed), [])
})

t.test('a lock that was damaged is said to hold nothing, and goes when it is removed', async t => {
  const dataFolder = t.testdir()
  const first = await openServer({ dataFolder })
  await first.end()
  const lock = join(dataFolder, 'lock')
  writeFileSync(join(lock, 'data.mdb'), '')
  const { code, stderr } = await openRefused({ dataFolder })
  t.equal(code, 1)
  t.ok(stderr.includes(`nothing is kept there: remove ${lock} while no server runs`), stderr)
  t.notMatch(stderr, /backup/)
  rmSync(lock, { recursive: true })
  const next = await openServer({ dataFolder })
  t.equal(next.vkey, first.vkey)
  await next.end()
})

t.test('a store that was damaged is a sentence to the server, and no signal', async t => {
  const dataFolder = t.testdir()
  await (await openServer({ dataFolder })).end()
  const path = join(dataFolder, 'store', 'data.mdb')
  const whole = readFileSync(path)
  const pageBytes = whole.readUInt32LE(48)
  const withoutPageKinds = Buffer.from(whole)
  for (let at = 2 * pageBytes; at < whole.length; at += pageBytes) withoutPageKinds.writeUInt16LE(0, at + 18)
  const cases: [Buffer, string, typeof startRefused][] = [
    [Buffer.alloc(whole.length, 7), `${path} does not begin as a store does`, openRefused],
    [withoutPageKinds, 'is damaged: it is no leaf', startRefused],
  ]
  for (const [bytes, sentence, refused] of cases) {
    writeFileSync(path, bytes)
    const { code, stderr } = await refused({ dataFolder })
    t.equal(code, 1)
    t.ok(stderr.includes(sentence), stderr)
    t.match(stderr, /restore a backup/)
    t.notMatch(stderr, /\n {4}at /)
  }
})

t.test('--dev on data of a server in production says that it never had development keys', async t => {
  const dataFolder = t.testdir()
  const environment = { ...keysOf('kt.example.org/log'), CALLSIGN_HTTP_HOST: '127.0.0.1' }
  const server = await openServer({ dataFolder, dev: false, environment })
  await server.end()
  const { code, stderr } = await openRefused({ dataFolder })
  t.equal(code, 1)
  t.match(
    stderr,
    /development-keys\.env is missing: .*in production never had such a file: start that without --dev/,
  )
})

t.test('usage is printed on request, and for an unknown command or flag', async t => {
  const callsign = (...args: string[]) =>
    runProgram(process.execPath, [startedProgram('scripts/callsign'), ...args])
  const help = await callsign('serve', '--help')
  t.match(help, { code: 0, stdout: /^usage: .*--dev[\s\S]*--known-checkpoint FILE/, stderr: '' })
  const flag = await callsign('serve', '--hlep')
  t.match(flag, { code: 2, stdout: '', stderr: /^callsign: Unknown option '--hlep'.*\n\nusage: /s })
  const command = await callsign('frob')
  t.match(command, { code: 2, stderr: /^callsign: there is no command frob\n\nusage: callsign serve\|/ })
  t.match(await callsign('--help'), { code: 0, stdout: /^usage: callsign serve\|/ })
  for (const args of [['--version'], ['serve', '--version']]) {
    t.match(await callsign(...args), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
  }
  t.match(await callsign(), { code: 2, stderr: /^usage: / })
})

/** A process that listens on the port with its queue full: the kernel answers no connection. */
async function muteListener(t: Test, port: number): Promise<ChildProcess> {
  const listen = `require('net').createServer().listen({ port: ${port}, host: '127.0.0.1', backlog: 1 }, () => console.log())`
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  for (let at = 0; at < 4; at++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
  }
  return child
}

const PAUSE_MS = 5
/** Its value, once it does not reject. */
async function eventually<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (;;) {
    const value = await attempt().catch(() => undefined)
    if (value !== undefined) return value
    await setTimeout(PAUSE_MS)
  }
}

t.test('config check tells every fault of file and environment, and touches nothing', async t => {
  const folder = t.testdir()
  const path = join(folder, 'settings.json')
  const check = (environment = {}) => {
    const args = [startedProgram('scripts/callsign'), 'config', 'check', '--config', path]
    return runProgram(process.execPath, args, { environment })
  }
  const keys = keysOf('kt.example.org/log')
  const data = { CALLSIGN_DATA_DIR: join(folder, 'data') }
  const wrong = { CALLSIGN_HTTP_PROT: 1, CALLSIGN_GRPC_PORT: 'x' }
  writeFileSync(path, JSON.stringify({ ...keys, ...data, ...wrong }), { mode: 0o600 })
  t.match(await check(), {
    code: 1,
    stdout: /^fault .*CALLSIGN_GRPC_PORT is a number.*\nfault .*PROT .*did you mean CALLSIGN_HTTP_PORT\?\n$/,
  })
  writeFileSync(path, JSON.stringify({ ...keys, ...data }))
  t.match(await check(), {
    code: 0,
    stdout:
      /^warning .*CALLSIGN_LOG_HEAD_FILE.*\nwarning .*CALLSIGN_SMTP_URL.*\nnote .*KT_INDEX_PRIVATE_KEY.*\nok .*production/,
  })
  t.match(await check({ CALLSIGN_HTTP_PORT: 'y' }), { code: 1 }, 'the environment wins')
  t.notOk(existsSync(data.CALLSIGN_DATA_DIR))
  const server = await startServer({
    dataFolder: data.CALLSIGN_DATA_DIR,
    dev: false,
    args: ['--config', path],
    environment: { CALLSIGN_HTTP_HOST: '127.0.0.1' },
  })
  t.match(server, { origin: 'kt.example.org/log' })
  await until(async () => server.stderr().includes('"event":"nobody-can-sign-in"'))
  t.equal(await server.end(), 0)
})

/** A user other than the owner of the tests' files, where tests run as root, who may write anywhere. */
const AS_ANOTHER =
  process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []

/** As the library says it on a system that is too old for its binary. */
const WITHOUT_BINARY = `
  import Module from 'node:module'
  const load = Module._load
  Module._load = (name, ...rest) => {
    if (name === 'uWebSockets.js') throw new Error('This version supports Node.js 20.\\n\\nError: GLIBC_9 not found')
    return load(name, ...rest)
  }`
