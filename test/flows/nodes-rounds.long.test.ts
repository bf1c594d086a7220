/**
 * Rounds of faults over nodes on one PostgreSQL with a synchronous standby: nothing acknowledged is lost, doubled, stale or
 * forked. `CALLSIGN_DRILL_ROUNDS` sets their number, `CALLSIGN_DRILL_NODES` the nodes, `CALLSIGN_SEED` replays kinds and order.
 * Forty take ten minutes: set `TAP_TIMEOUT=1500` too.
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'
import { FAULT_KINDS } from '../support/fault-kinds.ts'
import { FaultRounds, type Round } from '../support/fault-rounds.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { TokenLedger } from '../support/token-ledger.ts'

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

/** The labels that a node lists, of those that it was asked for. */
const LISTED: Readonly<
  Record<string, (live: readonly string[], revoked: readonly string[]) => readonly string[]>
> = {
  '0 times, not 1': () => [],
  '2 times, not 1': live => [...live, ...live],
  '1 times, not 0': (live, revoked) => [...live, ...revoked],
}

for (const [fault, listed] of Object.entries(LISTED)) {
  t.test(`the ledger of tokens notices one that is there ${fault}`, async t => {
    const live = new Map<string, string>()
    const revoked: string[] = []
    const server = createServer(async (request, response) => {
      const body = JSON.parse((await text(request)) || '{}')
      const id = request.url!.split('/').at(-1)!
      if (request.method === 'DELETE') revoked.push(live.get(id)!)
      if (request.method === 'DELETE') live.delete(id)
      if ('label' in body) live.set(body.label.replace(' ', ''), body.label)
      const items = listed([...live.values()], revoked).map(label => ({ label }))
      const reply = { challengeId: '1', accessToken: 'a', id: body.label?.replace(' ', ''), items }
      const status = request.method === 'DELETE' ? 204 : 'label' in body ? 201 : 200
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(status === 204 ? undefined : JSON.stringify(reply))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const tokens = new TokenLedger([`http://127.0.0.1:${port}`], 0, Math.random)
    await tokens.start()
    await tokens.rest()
    t.match(tokens.faults[0], fault)
  })
}

const LINES_MAX = 30
