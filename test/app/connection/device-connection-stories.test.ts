/** The connection of a device by its stories, `test/vectors/device-connection.jsonl`: each state meets each input. */

import t from 'tap'
import type { Input } from '../../../src/app/connection/input.ts'
import type { Phase, Purpose } from '../../../src/app/connection/phase.ts'
import { ConnectionPlayer, readStories } from '../../support/device-connection-story.ts'
import { comparePairs } from '../../support/story-file.ts'

/** Complete by its type. */
const PHASES: Record<Phase['kind'], true> = {
  off: true,
  elsewhere: true,
  leading: true,
  waiting: true,
  token: true,
  opening: true,
  subscribing: true,
  connected: true,
  renewing: true,
  registering: true,
  pausing: true,
}
const ALONE: Record<Exclude<Input['on'], 'done' | 'failed'>, true> = {
  connect: true,
  disconnect: true,
  watch: true,
  unwatch: true,
  send: true,
  online: true,
  over: true,
  behind: true,
  lost: true,
  connected: true,
  message: true,
  closed: true,
  time: true,
}
const PURPOSES: Record<Purpose['for'], true> = {
  queue: true,
  watch: true,
  handle: true,
  ack: true,
  send: true,
  disconnect: true,
}
const OUTCOMES = ['lead', 'token', 'renew', 'register', ...Object.keys(PURPOSES)]

/** Left after a story. */
const NOTHING = {
  ...{ phase: 'off', next: null, watches: [], waiting: [], messages: [], notAnsweredOnce: [] },
  isLeading: false,
}

const file = readStories()
const met = new Set<string>()

t.test('the acts of each story are as listed, and it ends where a person can leave', async t => {
  for (const story of file.stories) {
    const player = ConnectionPlayer.of(story, file)
    const acts = story.steps.map(step => player.play(step))
    const end = { phase: player.connection.phase.kind, next: player.nextMs }
    for (const pair of player.met) met.add(pair)
    t.same(
      { acts, end, rest: player.leave() },
      {
        acts: story.steps.map(step => ('in' in step ? (step.acts ?? []) : [])),
        end: { phase: story.phase, next: story.next },
        rest: NOTHING,
      },
      story.name!,
    )
  }
})

t.test('each state meets each input, but for the pairs that are listed as impossible', async t => {
  const inputs = [
    ...Object.keys(ALONE),
    'connect: take over',
    ...OUTCOMES.flatMap(outcome => [`done: ${outcome}`, `failed: ${outcome}`]),
  ]
  const pairs = comparePairs(file, met, Object.keys(PHASES), inputs)
  t.same(pairs, { unmet: [], metAfterAll: [], unknown: [] })
  t.comment(`${file.stories.length} stories, ${met.size} pairs`)
})
