/** The index of several nodes, cosigned: each shows it from its own copy, and whichever of them writes goes on with it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { parseVerifierKey, readNote } from '../../src/log/note.ts'
import { Cluster, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { quorumOf, startWitnessOf, type WitnessedLog, witnessedLog } from '../support/witnessed-log.ts'

/** Leaves that the node shows; 0 where it has no index yet. */
async function leavesAt({ server }: TestNode, { indexVkey }: WitnessedLog): Promise<number> {
  const answer = await fetch(`${server.http}/index/checkpoint`)
  if (!answer.ok) return 0
  const note = await answer.text()
  const names = readNote(note).signatures.map(({ name }) => name)
  if (!names.includes('one.example')) throw new Error(`cosigned by ${names.join()}`)
  return openCheckpoint(note, parseVerifierKey(indexVkey!)).treeSize
}

t.test('whichever node writes goes on with the index', { skip: skipWithoutPostgres }, async t => {
  const log = witnessedLog(t, 'quorum none\n', { hasIndex: true })
  const witness = await startWitnessOf(t, log, 'one.example')
  log.setPolicy(quorumOf(1, [witness]))
  const cluster = await Cluster.start(t, {
    folder: join(log.dataFolder, '..', 'nodes'),
    environment: { ...log.environment, CALLSIGN_LOG_LEVEL: 'info' },
  })
  const bothHave = (leaves: number) =>
    until(async () => {
      const sizes = await Promise.all(cluster.nodes.map(node => leavesAt(node, log).catch(() => 0)))
      return Math.min(...sizes) >= leaves
    })
  await register(cluster.one)
  await bothHave(1)
  await register(cluster.two)
  await bothHave(2)
  const { dataFolder } = cluster.two
  const recorded = readFileSync(join(dataFolder, INDEX_LOG.shownHeadFile), 'utf8')
  t.ok(openCheckpoint(recorded, parseVerifierKey(log.indexVkey!)).treeSize >= 2, 'who follows records it')

  const writer = (await cluster.writer())!
  const other = cluster.nodes.find(node => node !== writer)!
  const before = await leavesAt(other, log)
  await writer.end('SIGKILL')
  await other.said('writer')
  await register(other)
  await until(async () => (await leavesAt(other, log)) > before)
  await writer.start()
  await bothHave(before + 1)
  for (const node of cluster.nodes) t.notOk(node.hasSaid('index-held'))
})
