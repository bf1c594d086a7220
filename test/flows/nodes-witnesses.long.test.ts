/** Several nodes with a policy of witnesses: every front of every node shows cosigned checkpoints, also when the writer was killed. */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseVerifierKey, readNote } from '../../src/log/note.ts'
import { Cluster, finds, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { quorumOf, startWitnessOf, type WitnessedLog, witnessedLog } from '../support/witnessed-log.ts'

async function shownAt(
  { server }: TestNode,
  { vkey }: WitnessedLog,
): Promise<{ size: number; signers: string[] }> {
  const note = await (await fetch(`${server.http}/checkpoint`)).text()
  const signers = readNote(note).signatures.map(({ name }) => name)
  return { size: openCheckpoint(note, parseVerifierKey(vkey)).treeSize, signers }
}

async function isCosigned(t: Test, node: TestNode, log: WitnessedLog): Promise<number> {
  const { size, signers } = await shownAt(node, log)
  t.same(signers, ['log.example/witnessed', 'one.example'])
  return size
}

t.test(
  'nodes show what the quorum has cosigned, whichever of them writes',
  { skip: skipWithoutPostgres },
  async t => {
    const log = witnessedLog(t, undefined, { hasIndex: true })
    const one = await startWitnessOf(t, log, 'one.example')
    log.setPolicy(quorumOf(1, [one]))
    const cluster = await Cluster.start(t, {
      folder: join(log.dataFolder, '..', 'nodes'),
      environment: { ...log.environment, CALLSIGN_LOG_LEVEL: 'info' },
    })
    const keys = [await register(cluster.one), await register(cluster.two)]
    await finds(cluster.one, keys)
    await finds(cluster.two, keys)
    for (const node of cluster.nodes) t.equal(await isCosigned(t, node, log), 2)

    await one.end()
    const waiting = register(cluster.two)
    await until(async () => cluster.one.hasSaid('witness-quorum-missing'))
    for (const node of cluster.nodes) t.equal(await isCosigned(t, node, log), 2, 'nothing more is shown')
    await cluster.one.end('SIGKILL')
    await cluster.two.said('writer')
    await until(async () => cluster.two.hasSaid('witness-quorum-missing'))
    t.equal(await isCosigned(t, cluster.two, log), 2, 'nor by the next writer')

    await startWitnessOf(t, log, 'one.example', one.port)
    keys.push(await waiting)
    await cluster.one.start()
    await finds(cluster.one, keys)
    await finds(cluster.two, keys)
    for (const node of cluster.nodes) t.ok((await isCosigned(t, node, log)) >= 3)
  },
)
