/** The figures of the index as Prometheus gets them. */

import t from 'tap'
import type { IndexFigures } from '../../src/keyserver/index/index-figures.ts'
import { observeIndex } from '../../src/operations/figures.ts'
import { Metrics } from '../../src/operations/metrics.ts'

async function shown(figures: IndexFigures | undefined): Promise<Readonly<Record<string, number>>> {
  const metrics = new Metrics()
  observeIndex(metrics, () => figures)
  const lines = (await metrics.text()).matchAll(/^callsign_index_(\w+(?:\{.*\})?) (\S+)$/gm)
  return Object.fromEntries([...lines].map(([, name, value]) => [name, Number(value)]))
}

const WELL: IndexFigures = {
  entries: 40,
  leaves: 7,
  lagEntries: 2,
  leafAgeSeconds: 12.5,
  held: undefined,
  building: undefined,
}

t.test('an index, as it does', async t => {
  t.match(await shown(WELL), {
    ...{ entries: 40, leaves: 7, lag_entries: 2, leaf_age_seconds: 12.5, held: 0, building: 0 },
    ...{
      witness_quorum_age_seconds: 0,
      witness_quorum_missing: 0,
      witness_conflict: 0,
      witnesses_failing: 0,
    },
  })
  t.match(await shown({ ...WELL, held: 'an older copy' }), { held: 1, building: 0 })
  t.match(await shown({ ...WELL, building: { done: 0, of: 9 } }), { held: 0, building: 1 })
})

t.test('its witnesses have figures of their own', async t => {
  const witnesses = {
    quorumAgeSeconds: 9,
    isQuorumLost: true,
    hasConflict: false,
    failing: 1,
    failures: new Map([['one', 3]]),
  }
  t.match(await shown({ ...WELL, witnesses }), {
    witness_quorum_age_seconds: 9,
    witness_quorum_missing: 1,
    witness_conflict: 0,
    witnesses_failing: 1,
    'witness_failures_total{witness="one"}': 3,
  })
})

t.test('without an index all are 0', async t => {
  const figures = await shown(undefined)
  t.ok(Object.keys(figures).length >= 10)
  t.same(
    Object.values(figures).filter(value => value !== 0),
    [],
  )
})
