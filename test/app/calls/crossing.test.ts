/** Two apps of `@callsign/sdk/app` that call each other at the same instant. */

import t from 'tap'
import type { Call } from '../../../src/app/app.ts'
import { countOf, sized } from '../../support/size.ts'
import { newFriends, until } from '../../support/whole-apps.ts'

const CROSSINGS = countOf('CALLSIGN_CROSSINGS', { short: 10, long: 200 })

t.test(
  'two who call each other are in one call, with one key, however their starts cross',
  sized(),
  async t => {
    const [ann, bob] = await newFriends(t)
    const people = [ann!, bob!]
    for (let time = 0; time < CROSSINGS; time++) {
      const rung: Call[] = []
      const stops = people.map(({ me }) => me.on('ringing', call => void rung.push(call)))
      const starts = people.map(
        ({ me }, at) =>
          () =>
            me.call([people[1 - at]!.me.userId!]),
      )
      if (time % 2 === 1) starts.reverse()
      const calls = await Promise.all(starts.map(start => start().catch(error => error as Error)))
      for (const call of calls) if (call instanceof Error) throw call
      const [one, other] = calls as [Call, Call]
      t.equal(one.callId, other.callId)
      for (const call of [one, other]) await until(call, ({ state }) => state === 'active')
      t.equal(one.fingerprint, other.fingerprint)
      t.same(rung, [], 'nothing rang')
      for (const { me } of people) t.equal(me.calls.length, 1)
      const ended = other.once('ended')
      await one.end()
      await ended
      for (const stop of stops) stop()
    }
    for (const { errors } of people) t.same(errors, [])
  },
)
