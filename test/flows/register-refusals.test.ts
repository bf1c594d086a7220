/** Register by gRPC: every bad input gets its code and a sentence, and leaves no trace in the log. */

import { readFileSync } from 'node:fs'
import grpc from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { openServer } from '../support/open-server.ts'
import { freshPublicKey, type OpenServer, startServer } from '../support/server.ts'
import { long } from '../support/size.ts'
import { tlsFile, tlsPath } from '../support/tls.ts'

const UINT64_MAX = 2n ** 64n - 1n

async function start(t: Test, environment: Record<string, string> = {}): Promise<OpenServer> {
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  return server
}

function connect(t: Test, address: string, credentials?: grpc.ChannelCredentials): RegisterClient {
  const client = new RegisterClient(address, credentials)
  t.teardown(() => client.close())
  return client
}

async function treeSizeOf(server: OpenServer): Promise<number> {
  const checkpoint = await (await fetch(`${server.http}/checkpoint`)).text()
  return Number(checkpoint.split('\n')[1])
}

function bearer(token: string): grpc.Metadata {
  const metadata = new grpc.Metadata()
  metadata.set('authorization', token)
  return metadata
}

t.test('a key that is not canonical base64 of 1 to 1024 characters is refused and not logged', async t => {
  const server = await start(t)
  const client = connect(t, server.grpc)
  const badKeys = {
    missing: '',
    'not base64': 'not base64!',
    'without padding': 'AAA',
    'non-canonical bits': 'AAB=',
    'the URL alphabet': '-_-_',
    'a newline inside': 'AAAA\nAAAA',
    'a newline at the end': 'AAAA\n',
    'a space': 'AAAA AAAA',
    oversized: 'A'.repeat(1028),
    huge: 'A'.repeat(40_000),
  }
  for (const [what, publicKey] of Object.entries(badKeys)) {
    await t.rejects(client.register(1n, 1n, publicKey), { code: grpc.status.INVALID_ARGUMENT }, what)
  }
  t.equal(await treeSizeOf(server), 0)
})

t.test('bytes that are not a RegisterRequest are the caller’s fault', async t => {
  const server = await start(t)
  const client = connect(t, server.grpc)
  const notMessages = [Buffer.from('ff', 'hex'), Buffer.from([0x1a, 2, 0xc3, 0x28]), Buffer.alloc(100, 0x0a)]
  for (const bytes of notMessages) {
    await t.rejects(
      client.send(bytes),
      { code: grpc.status.INVALID_ARGUMENT },
      bytes.toString('hex').slice(0, 8),
    )
  }
  await t.rejects(
    client.send(Buffer.alloc(100_000)),
    { code: grpc.status.RESOURCE_EXHAUSTED },
    'over the message limit',
  )
  t.equal(await treeSizeOf(server), 0)
})

t.test('the smallest and the largest ids and keys are legal', async t => {
  const server = await start(t)
  const client = connect(t, server.grpc)
  const answers = [
    await client.register(0n, 0n, 'AA=='),
    await client.register(UINT64_MAX, UINT64_MAX, 'A'.repeat(1024)),
    await client.register(0n, UINT64_MAX, 'AAAA'),
  ]
  t.same(
    answers.map(({ index }) => index),
    [0n, 1n, 2n],
  )
  t.equal(new Set(answers.map(({ vrfHash }) => vrfHash)).size, 3, 'each identity has its own hash')
})

t.test(
  'the newest key again has the index it had, at once and after a restart; another key is appended',
  async t => {
    const dataFolder = t.testdir()
    const first = await startServer({ dataFolder })
    const client = connect(t, first.grpc)
    const [keyA, keyB] = [freshPublicKey(), freshPublicKey()]
    const together = await Promise.all(Array.from({ length: 50 }, () => client.register(7n, 7n, keyA)))
    t.ok(
      together.every(({ index }) => index === 0n),
      'fifty at once share one entry',
    )
    t.equal((await client.register(7n, 7n, keyB)).index, 1n, 'another key is appended')
    t.equal((await client.register(7n, 7n, keyB)).index, 1n, 'and is then the newest')
    t.equal((await client.register(7n, 7n, keyA)).index, 2n, 'the first key is not the newest any more')
    await first.end('SIGKILL')
    const second = await openServer({ dataFolder })
    t.teardown(() => second.end())
    t.equal((await connect(t, second.grpc).register(7n, 7n, keyA)).index, 2n, 'known after kill -9')
    t.equal(await treeSizeOf(second), 3)
  },
)

t.test('with a token set, calls without it are unauthenticated', async t => {
  const server = await start(t, { CALLSIGN_GRPC_TOKEN: 'correct horse' })
  const client = connect(t, server.grpc)
  const unauthenticated = { code: grpc.status.UNAUTHENTICATED }
  await t.rejects(client.register(1n, 1n, 'AAAA'), unauthenticated, 'missing')
  await t.rejects(client.register(1n, 1n, 'AAAA', bearer('Bearer wrong')), unauthenticated, 'wrong')
  await t.rejects(client.register(1n, 1n, 'AAAA', bearer('correct horse')), unauthenticated, 'no scheme')
  t.equal(await treeSizeOf(server), 0)
  t.equal((await client.register(1n, 1n, 'AAAA', bearer('Bearer correct horse'))).index, 0n)
  t.notMatch(server.stderr(), /correct horse/, 'the token is in no log line')
})

t.test('with mutual TLS, only a certificate of the authority with a pinned key may call', async t => {
  const server = await start(t, {
    CALLSIGN_GRPC_TLS_CERT: tlsPath('server.crt'),
    CALLSIGN_GRPC_TLS_KEY: tlsPath('server.key'),
    CALLSIGN_GRPC_TLS_CLIENT_CA: tlsPath('ca.crt'),
    CALLSIGN_GRPC_TLS_CLIENT_PINS: tlsFile('client.pin'),
  })
  const authority = readFileSync(tlsPath('ca.crt'))
  const as = (name: string) =>
    grpc.credentials.createSsl(
      authority,
      readFileSync(tlsPath(`${name}.key`)),
      readFileSync(tlsPath(`${name}.crt`)),
    )
  const address = server.grpc.replace('127.0.0.1', 'localhost')
  const pinned = connect(t, address, as('client'))
  t.equal((await pinned.register(1n, 1n, 'AAAA')).index, 0n, 'the pinned caller')
  await t.rejects(
    connect(t, address, as('other')).register(1n, 2n, 'AAAA'),
    { code: grpc.status.UNAUTHENTICATED },
    'another key of the same authority',
  )
  const anonymous = connect(t, address, grpc.credentials.createSsl(authority))
  await t.rejects(anonymous.register(1n, 2n, 'AAAA'), { code: grpc.status.UNAVAILABLE }, 'no certificate')
})

t.test('a frozen log refuses to register and serves everything else', async t => {
  const dataFolder = t.testdir()
  const open = await openServer({ dataFolder })
  await connect(t, open.grpc).register(1n, 1n, 'AAAA')
  await open.end()
  const frozen = await openServer({ dataFolder, environment: { CALLSIGN_LOG_FROZEN: '1' } })
  t.teardown(() => frozen.end())
  await t.rejects(connect(t, frozen.grpc).register(1n, 2n, 'AAAA'), { code: grpc.status.UNAVAILABLE })
  t.equal(await treeSizeOf(frozen), 1)
})

t.test(
  'more registrations than the queues hold are refused aloud, and every answered one is logged',
  long(),
  async t => {
    // A process of its own: clients beside it would send no faster than it answers.
    const environment = { CALLSIGN_LOG_LEVEL: 'error' }
    const server = await startServer({ dataFolder: t.testdir(), environment })
    t.teardown(() => server.end())
    // One connection may not have so many calls at once.
    const clients = Array.from({ length: 50 }, () => connect(t, server.grpc))
    const refusals = new Map<number, number>()
    const indexes = new Set<bigint>()
    let answered = 0
    const calls = Array.from({ length: 12_000 }, async (_, user) => {
      try {
        indexes.add((await clients[user % clients.length]!.register(BigInt(user), 1n, 'AAAA')).index)
        answered++
      } catch (error) {
        const { code } = error as { code: number }
        refusals.set(code, (refusals.get(code) ?? 0) + 1)
      }
    })
    await Promise.all(calls)
    const { RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED } = grpc.status
    // A slow machine answers some too late; they may be logged all the same.
    const late = refusals.get(DEADLINE_EXCEEDED) ?? 0
    refusals.delete(DEADLINE_EXCEEDED)
    t.same([...refusals.keys()], [RESOURCE_EXHAUSTED], 'otherwise only RESOURCE_EXHAUSTED')
    const treeSize = await treeSizeOf(server)
    t.equal(indexes.size, answered, 'each answer has an entry of its own')
    t.ok(
      [...indexes].every(index => index < treeSize),
      'which is logged',
    )
    t.ok(treeSize <= answered + late, `${treeSize} logged, ${answered} answered, ${late} too late`)
  },
)
