/** The calls of a device by their stories, `test/vectors/device-calls.jsonl`: each state meets each input. */

import t from 'tap'
import type { Waiting } from '../../../src/app/calls/device.ts'
import type { Input } from '../../../src/app/calls/input.ts'
import type { CallTopicEvent } from '../../../src/app/wire.ts'
import { leaveAll, QUEUE, readStories, StoryPlayer } from '../../support/device-call-story.ts'

const STATES = [
  'none',
  'starting',
  'ringing in',
  'ringing out',
  'key',
  'clearing',
  'joining',
  'opening',
  'active',
  'rejoining',
  'keyless',
  'ended',
]

/** Complete by its type. */
const ALONE: Record<Exclude<Input['on'], 'queue' | 'topic' | 'done' | 'failed'>, true> = {
  start: true,
  join: true,
  answer: true,
  'accept-device': true,
  decline: true,
  end: true,
  leave: true,
  renew: true,
  resend: true,
  use: true,
  ask: true,
  invite: true,
  remove: true,
  grant: true,
  close: true,
  invited: true,
  cancelled: true,
  time: true,
  restarted: true,
  connected: true,
  disconnected: true,
  clock: true,
}
const TOPIC: Record<CallTopicEvent['type'], true> = {
  participant_invited: true,
  participant_ringing: true,
  participant_joined: true,
  participant_left: true,
  participant_declined: true,
  participant_unreachable: true,
  media_changed: true,
  host_changed: true,
  call_status: true,
}
const PURPOSES: Record<Waiting['for'], true> = {
  'start: seal': true,
  start: true,
  'crossed: pending': true,
  'crossed: open': true,
  command: true,
  leave: true,
  end: true,
  'join: find': true,
  'invited: read': true,
  'invited: open': true,
  clear: true,
  join: true,
  'join: read': true,
  'joined: open': true,
  'kept leave': true,
  pending: true,
  restore: true,
  'give up': true,
  refresh: true,
  watch: true,
  'key update: read': true,
  'key update': true,
  'keyless: read': true,
  ask: true,
  return: true,
  'ask beside': true,
  'granted: open': true,
  'come back': true,
  'asked: read': true,
  'grant: seal': true,
  'keys: read': true,
  'keys: seal': true,
  keys: true,
  remove: true,
  'invite: read': true,
  'invite: seal': true,
  invite: true,
}

/** Left after a story. */
const NOTHING = { calls: [], next: null, notAnsweredOnce: [], keys: [] }

const stories = readStories()
const met = new Set<string>()

t.test('the acts of each story are as listed, and it ends where a person can leave', async t => {
  for (const { name, given, steps, calls, next } of stories.stories) {
    const player = new StoryPlayer(stories.me)
    if (given !== undefined) player.begin(given, stories)
    const acts = steps.map(step => player.play(step))
    const end = { calls: player.calls, next: player.nextMs }
    for (const pair of player.met) met.add(pair)
    leaveAll(player)
    t.same(
      { acts, end, rest: player.rest },
      { acts: steps.map(({ acts = [] }) => acts), end: { calls, next }, rest: NOTHING },
      name!,
    )
  }
})

t.test('each state meets each input, but for the pairs that are listed as impossible', async t => {
  const impossible = new Set(
    stories.impossible.flatMap(({ impossible, inputs }) =>
      impossible.flatMap(state => inputs.map(input => `${state} / ${input}`)),
    ),
  )
  const all = STATES.flatMap(state => inputs().map(input => `${state} / ${input}`))
  const unmet = all.filter(pair => !met.has(pair) && !impossible.has(pair))
  t.same(unmet, [], 'pairs that no story meets')
  t.same(
    [...impossible].filter(pair => met.has(pair) || !all.includes(pair)),
    [],
    'pairs that are met after all',
  )
  t.same(
    [...met].filter(pair => !all.includes(pair)),
    [],
    'each pair is known',
  )
  t.comment(
    `${stories.stories.length} stories, ${met.size} of ${all.length} pairs, ${impossible.size} impossible`,
  )
})

function inputs(): string[] {
  return [
    ...Object.keys(ALONE),
    ...[...QUEUE, 'other'].map(type => `queue: ${type}`),
    ...Object.keys(TOPIC).map(type => `topic: ${type}`),
    ...Object.keys(PURPOSES).flatMap(purpose => [`done: ${purpose}`, `failed: ${purpose}`]),
  ]
}
