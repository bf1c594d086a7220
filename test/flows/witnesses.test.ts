/**
 * A server with a policy of witnesses, which are programs of their own: nothing is shown without their quorum, answered
 * keys stay, and waiting keys appear once they are back.
 */

import { cpSync } from 'node:fs'
import grpc from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { LogClient, MemoryStore } from '../../src/client/client.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseVerifierKey, readNote } from '../../src/log/note.ts'
import { lookUp, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { openRefused, openServer } from '../support/open-server.ts'
import { freshPublicKey, startServer } from '../support/server.ts'
import { bySize, long, sized } from '../support/size.ts'
import { quorumOf, startWitnessOf, type WitnessedLog, witnessedLog } from '../support/witnessed-log.ts'

async function checkpointOf(http: string): Promise<{ note: string; etag: string | null }> {
  const answer = await fetch(`${http}/checkpoint`)
  return { note: await answer.text(), etag: answer.headers.get('etag') }
}

function sizeOf(note: string, { vkey }: WitnessedLog): number {
  return openCheckpoint(note, parseVerifierKey(vkey)).treeSize
}

function signersOf(note: string): string[] {
  return readNote(note).signatures.map(({ name }) => name)
}

function unavailable(t: Test, registration: Promise<unknown>): Promise<unknown> {
  return t.rejects(registration, { code: grpc.status.UNAVAILABLE })
}

t.test(
  'what is answered is covered by a checkpoint that the quorum cosigned, and the client accepts',
  sized(),
  async t => {
    const log = witnessedLog(t)
    const witnesses = [
      await startWitnessOf(t, log, 'one.example'),
      await startWitnessOf(t, log, 'two.example'),
    ]
    const policy = log.setPolicy(quorumOf(2, witnesses))
    const environment = { ...log.environment, CALLSIGN_FRONTS: '2' }
    const server = await startLog(t, log.dataFolder, environment, startServer)
    for (let round = 0; round < bySize({ short: 2, long: 3 }); round++) {
      const registered = await registerUsers(server.client, 100 * round, 40)
      const { note, etag } = await checkpointOf(server.http)
      t.ok(sizeOf(note, log) >= 40 * (round + 1))
      t.same(signersOf(note).sort(), ['log.example/witnessed', 'one.example', 'two.example'])
      t.match(etag, new RegExp(`-${sizeOf(note, log)}-[\\w-]{12}"$`))
      const { userId, deviceId, vrfHash, publicKey } = registered[7]!
      const store = new MemoryStore()
      const client = new LogClient({
        policy,
        vrfPublicKey: log.vrfPublicKey,
        url: server.http,
        store,
        maxAgeMs: 60_000,
      })
      t.match(await client.lookUp({ userId, deviceId, vrfHash, publicKey }), { kind: 'verified' })
    }
    const meta = (await (await fetch(`${server.http}/app/api/meta`)).json()) as {
      log: { witnessPolicy: string }
    }
    t.equal(meta.log.witnessPolicy, policy)
    const figures = await (await fetch(`${server.admin}/metrics`)).text()
    t.match(figures, /^callsign_witness_quorum_missing(?:\{.*\})? 0$/m)
    t.match(figures, /^callsign_witness_failures_total\{.*witness="two\.example".*\} 0$/m)
  },
)

t.test(
  'without the quorum nothing new is shown and Register is unavailable; found again, it has its index',
  async t => {
    const log = witnessedLog(t)
    const one = await startWitnessOf(t, log, 'one.example')
    const two = await startWitnessOf(t, log, 'two.example')
    log.setPolicy(quorumOf(2, [one, two]))
    const server = await startLog(t, log.dataFolder, log.environment)
    const [known] = await registerUsers(server.client, 0, 5)
    const shown = await checkpointOf(server.http)
    await two.end('SIGKILL')
    const publicKey = freshPublicKey()
    await unavailable(t, server.client.register(50n, 1n, publicKey))
    await unavailable(t, server.client.register(50n, 1n, publicKey))
    t.same(await checkpointOf(server.http), shown)
    t.equal((await fetch(`${server.http}/tile/entries/000.p/6`)).status, 404)
    t.equal((await lookUp(server.http, [known!.vrfHash]))[0]?.publicKey, known!.publicKey)
    t.equal((await fetch(`${server.admin}/readyz`)).status, 200, 'calls go on')
    t.match(
      await (await fetch(`${server.admin}/metrics`)).text(),
      /^callsign_witness_quorum_missing(?:\{.*\})? 1$/m,
    )

    await startWitnessOf(t, log, 'two.example', two.port)
    const found = await untilRegistered(server.client, 50n, publicKey)
    t.equal(found, 5)
    t.equal(sizeOf((await checkpointOf(server.http)).note, log), 6)
  },
)

t.test(
  'a quorum that comes and goes under load: each answered index is covered, and none is answered twice',
  long(),
  async t => {
    const log = witnessedLog(t)
    const [one, two] = [
      await startWitnessOf(t, log, 'one.example'),
      await startWitnessOf(t, log, 'two.example'),
    ]
    log.setPolicy(quorumOf(2, [one, two]))
    const server = await startLog(t, log.dataFolder, log.environment)
    const answered = new Map<number, { vrfHash: string; publicKey: string }>()
    let isOver = false
    let shownSize = 0
    const phone = async (firstUser: number) => {
      for (let userId = firstUser; !isOver; userId++) {
        const publicKey = freshPublicKey()
        const answer = await server.client.register(BigInt(userId), 1n, publicKey).catch(() => undefined)
        if (answer === undefined) continue
        const index = Number(answer.index)
        if (answered.has(index)) t.fail(`index ${index} twice`)
        answered.set(index, { vrfHash: answer.vrfHash, publicKey })
        const { note } = await checkpointOf(server.http)
        const size = sizeOf(note, log)
        if (size <= index || size < shownSize || signersOf(note).length !== 3)
          t.fail(`index ${index}, ${note}`)
        shownSize = Math.max(size, shownSize)
      }
    }
    const phones = Array.from({ length: 16 }, (_, at) => phone(10_000 * (at + 1)))
    let witness = two
    for (let round = 0; round < 3; round++) {
      const before = answered.size
      while (answered.size < before + 50) await lookUpAny(server.http)
      await witness.end('SIGKILL')
      while (!/quorum-missing/.test(server.stderr().split('"witness-quorum"').at(-1)!))
        await lookUpAny(server.http)
      witness = await startWitnessOf(t, log, 'two.example', two.port)
    }
    const before = answered.size
    while (answered.size < before + 50) await lookUpAny(server.http)
    isOver = true
    await Promise.all(phones)
    for (const { vrfHash, publicKey } of answered.values())
      if ((await lookUp(server.http, [vrfHash]))[0]?.publicKey !== publicKey)
        t.fail('an answered key is gone')
    t.ok(answered.size > 200)
  },
)

t.test(
  'killed while the quorum is missing, it goes on showing the last cosigned checkpoint',
  long(),
  async t => {
    const log = witnessedLog(t)
    const { dataFolder, environment } = log
    const one = await startWitnessOf(t, log, 'one.example')
    log.setPolicy(quorumOf(1, [one]))
    const first = await startServer({ dataFolder, environment })
    const client = new RegisterClient(first.grpc)
    await registerUsers(client, 0, 5)
    const shown = await checkpointOf(first.http)
    await one.end()
    const publicKey = freshPublicKey()
    await unavailable(t, client.register(50n, 1n, publicKey))
    client.close()
    await first.end('SIGKILL')

    const server = await startLog(t, dataFolder, environment, startServer)
    t.same(await checkpointOf(server.http), shown)
    await unavailable(t, server.client.register(51n, 1n, freshPublicKey()))
    await startWitnessOf(t, log, 'one.example', one.port)
    t.equal(await untilRegistered(server.client, 50n, publicKey), 5)
  },
)

t.test(
  'a server with an older copy, or with another tree, of a log that is signed elsewhere does not start',
  async t => {
    const log = witnessedLog(t)
    const { dataFolder, environment } = log
    const one = await startWitnessOf(t, log, 'one.example')
    log.setPolicy(quorumOf(1, [one]))
    const run = async (folder: string, firstUser: number, settings: typeof environment) => {
      const server = await openServer({ dataFolder: folder, environment: settings })
      const client = new RegisterClient(server.grpc)
      await registerUsers(client, firstUser, 5)
      client.close()
      await server.end()
    }
    await run(dataFolder, 0, environment)
    cpSync(dataFolder, `${dataFolder}-copy`, { recursive: true })
    await run(dataFolder, 10, environment)
    const older = await openRefused({ dataFolder: `${dataFolder}-copy`, environment })
    t.equal(older.code, 1)
    t.match(
      older.stderr,
      /^callsign: witness one\.example: it has cosigned size 10, and this log has 5\. Another server/m,
    )

    const shown = await openServer({
      dataFolder: `${dataFolder}-copy`,
      environment: { ...environment, CALLSIGN_LOG_FROZEN: '1' },
    })
    t.equal(sizeOf((await checkpointOf(shown.http)).note, log), 5, 'frozen, it may be looked at')
    await shown.end()

    const { CALLSIGN_WITNESS_POLICY: _, ...alone } = environment
    await run(`${dataFolder}-copy`, 20, alone)
    await run(`${dataFolder}-copy`, 30, alone)
    const forked = await openRefused({ dataFolder: `${dataFolder}-copy`, environment })
    t.match(forked.stderr, /^callsign: witness one\.example: it refuses the proof from size 10 to 15: /m)
    t.equal(
      (await openRefused({ dataFolder: `${dataFolder}-copy`, environment })).code,
      1,
      'nor the next time',
    )
  },
)

t.test('with a policy newly set, taken away and set again, the shown tree never shrinks', async t => {
  const log = witnessedLog(t)
  const { CALLSIGN_WITNESS_POLICY: _, ...alone } = log.environment
  const one = await startWitnessOf(t, log, 'one.example')
  log.setPolicy(quorumOf(1, [one]))
  let size = 0
  for (const environment of [alone, log.environment, alone, log.environment]) {
    const server = await openServer({ dataFolder: log.dataFolder, environment })
    const begun = await checkpointOf(server.http)
    t.equal(sizeOf(begun.note, log), size)
    const client = new RegisterClient(server.grpc)
    await registerUsers(client, size, 5)
    client.close()
    size += 5
    const { note } = await checkpointOf(server.http)
    t.same(
      signersOf(note),
      environment === alone ? ['log.example/witnessed'] : ['log.example/witnessed', 'one.example'],
    )
    t.equal(sizeOf(note, log), size)
    await server.end()
  }
  await one.end()
  const server = await startLog(t, log.dataFolder, log.environment)
  t.equal(
    sizeOf((await checkpointOf(server.http)).note, log),
    size,
    'without the quorum it shows what it showed',
  )
  await unavailable(t, server.client.register(90n, 1n, freshPublicKey()))
})

/** Asks until the witnesses are back; then the answer has the index. */
async function untilRegistered(client: RegisterClient, userId: bigint, publicKey: string): Promise<number> {
  for (;;) {
    try {
      return (await registerKey(client, userId, 1n, publicKey)).index
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === grpc.status.UNAVAILABLE)) throw error
    }
  }
}

async function lookUpAny(http: string): Promise<void> {
  await (await fetch(`${http}/checkpoint`)).text()
}
