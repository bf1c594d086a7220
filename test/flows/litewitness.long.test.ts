/**
 * torchwood's litewitness, the witness that most operators run, cosigns our checkpoints, and our client accepts them. Skipped where Go
 * or the Go proxy is not to be had.
 */

import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import grpc from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { LogClient, MemoryStore } from '../../src/client/client.ts'
import { freePort } from '../support/free-port.ts'
import { buildGo } from '../support/go-program.ts'
import { lookUp, registerKey, registerUsers, startLog } from '../support/live-log.ts'
import { spawnBound } from '../support/programs.ts'
import { freshPublicKey, startServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { type WitnessedLog, witnessedLog } from '../support/witnessed-log.ts'

const NAME = 'litewitness.example'
const folder = t.testdir({})
const { skip } = await buildGo(join(PROJECT_ROOT, 'test/strangers/go-witness'), folder, {
  tools: ['filippo.io/torchwood/cmd/litewitness'],
})

interface Litewitness {
  readonly vkey: string
  readonly url: string
  start(): Promise<() => Promise<void>>
}

/** One that knows the log. Its key is kept by another process, as by an ssh-agent. */
async function litewitness(t: Test, { vkey }: WitnessedLog): Promise<Litewitness> {
  const [database, socket] = [join(folder, 'db'), join(folder, 'agent')]
  const keeper = spawnBound(join(folder, 'stranger'), [], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => keeper.kill())
  const origin = vkey.split('+')[0]
  keeper.stdin!.write(`${JSON.stringify({ name: NAME, socket, database, origin, vkey })}\n`)
  const [line] = await once(createInterface({ input: keeper.stdout! }), 'line')
  const kept = JSON.parse(line) as { fingerprint: string; vkey: string }
  const port = await freePort()
  const flags = ['-name', NAME, '-db', database, '-ssh-agent', socket, '-key', kept.fingerprint]
  return {
    vkey: kept.vkey,
    url: `http://127.0.0.1:${port}`,
    async start() {
      const program = spawnBound(join(folder, 'litewitness'), [...flags, '-listen', `127.0.0.1:${port}`], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const ended = once(program, 'close')
      const end = async () => {
        program.kill()
        await ended
      }
      t.teardown(end)
      for await (const text of createInterface({ input: program.stderr! }))
        if (text.includes('listening')) break
      program.stderr!.resume()
      return end
    },
  }
}

t.test('a litewitness cosigns, and without it nothing new is shown', { skip }, async t => {
  const log = witnessedLog(t)
  const { vkey, url, start } = await litewitness(t, log)
  const stop = await start()
  const policy = log.setPolicy(`witness lite ${vkey} ${url}\nquorum lite\n`)
  const server = await startLog(t, log.dataFolder, log.environment, startServer)
  const checkpoint = async () => await (await fetch(`${server.http}/checkpoint`)).text()
  await registerUsers(server.client, 0, 20)
  const [known] = await registerUsers(server.client, 100, 20)
  const shown = await checkpoint()
  const client = new LogClient({
    policy,
    vrfPublicKey: log.vrfPublicKey,
    url: server.http,
    store: new MemoryStore(),
    maxAgeMs: 60_000,
  })
  t.match(await client.lookUp(known!), { kind: 'verified' })

  await stop()
  const publicKey = freshPublicKey()
  await t.rejects(server.client.register(50n, 1n, publicKey), { code: grpc.status.UNAVAILABLE })
  t.equal(await checkpoint(), shown)
  t.equal((await lookUp(server.http, [known!.vrfHash]))[0]?.publicKey, known!.publicKey)

  await start()
  const registered = await untilRegistered(() => registerKey(server.client, 50n, 1n, publicKey))
  t.equal(registered.index, 40)
  t.match(await client.lookUp(registered), { kind: 'verified' })
})

async function untilRegistered<Key>(register: () => Promise<Key>): Promise<Key> {
  for (;;) {
    try {
      return await register()
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === grpc.status.UNAVAILABLE)) throw error
    }
  }
}
