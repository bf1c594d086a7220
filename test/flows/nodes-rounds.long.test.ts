/**
 * Rounds of faults over nodes on one PostgreSQL with a synchronous standby: nothing acknowledged is lost, doubled, stale or
 * forked. `CALLSIGN_DRILL_ROUNDS` sets their number, `CALLSIGN_DRILL_NODES` the nodes, `CALLSIGN_SEED` replays kinds and order.
 */

import t from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'
import { FAULT_KINDS } from '../support/fault-kinds.ts'
import { FaultRounds, type Round } from '../support/fault-rounds.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const ROUNDS = Number(process.env.CALLSIGN_DRILL_ROUNDS ?? 10)
const NODES = Number(process.env.CALLSIGN_DRILL_NODES ?? 2)

/** Each kind once before one comes again. */
function kindsOf(random: () => number): readonly string[] {
  const kinds: string[] = []
  while (kinds.length < ROUNDS) kinds.push(...shuffle(Object.keys(FAULT_KINDS), random))
  return kinds.slice(0, ROUNDS)
}

function lineOf({ kind, firstChangeMs, longestMs }: Round): string {
  return `${kind}: first change after ${seconds(firstChangeMs)}, the longest took ${seconds(longestMs)}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`
}

t.test(
  `nothing acknowledged is lost, doubled, stale or forked by ${ROUNDS} faults`,
  { skip: skipWithoutPostgres },
  async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const kinds = kindsOf(random)
    const rounds = await FaultRounds.start(t, NODES, random)
    for (const kind of kinds) {
      const before = new Map([...rounds.logs()].map(([node, log]) => [node, log.length]))
      const round = await rounds.round(kind)
      t.same(round.faults, [], lineOf(round), { seed })
      if (round.faults.length === 0) continue
      for (const [node, log] of rounds.logs()) {
        const lines = log
          .slice(before.get(node))
          .split('\n')
          .filter(line => /"level":"?(?:warn|error|fatal|[456]0)/.test(line))
        t.comment(`log of ${node}:\n${lines.slice(-LINES_MAX).join('\n')}`)
      }
    }
    t.comment(`seed ${seed}, ${JSON.stringify(rounds.counts)}`)
  },
)

const LINES_MAX = 30
