/** Invitations that cross, whose inviter dies on the way, and of people whose keys are new. */

import t from 'tap'
import type { Call } from '../../../src/app/app.ts'
import { callOf, DeceivedHouse, type DeceivedPerson } from '../../support/lying-server.ts'
import { until } from '../../support/whole-apps.ts'

type Four = [DeceivedPerson, DeceivedPerson, DeceivedPerson, DeceivedPerson]

const house = await DeceivedHouse.open(t, 4)

async function allHave(fingerprint: () => string | undefined, calls: readonly Call[]): Promise<void> {
  for (const call of calls)
    await until(call, one => one.state === 'active' && one.fingerprint === fingerprint())
}

t.test('two people invite at the same instant, and each try has a key of its own', async t => {
  const [ann, bob, cat, dan] = house.people as Four
  const [call, bobs] = (await callOf(ann, bob)) as [Call, Call]
  let count = 0
  let go = () => {}
  const both = new Promise<void>(resolve => {
    go = resolve
  })
  for (const { lies } of [ann, bob])
    lies.handle('POST call/{callId}/invite', async pass => {
      if (++count === 2) go()
      await both
      return pass()
    })
  const ringing = [cat, dan].map(({ me }) => me.once('ringing'))
  await Promise.all([call.invite([cat.me.userId!]), bobs.invite([dan.me.userId!])])
  const others = await Promise.all(ringing)
  for (const one of others) await one.answer()
  await allHave(() => call.fingerprint, [call, bobs, ...others])
  t.equal(call.keys[0]!.epoch, 3)
  t.equal(call.sealedFor.length, 4)
  const tries = [ann, bob].flatMap(({ lies }) => lies.sent('POST call/{callId}/invite'))
  t.same(tries.map(({ epoch }) => epoch).toSorted(), [2, 2, 3])
  const octets = call.keys.map(({ key }) => Buffer.from(key).toString('hex'))
  t.equal(new Set(octets).size, octets.length)
})

for (const [when, invites] of [
  ['before the server hears of it', false],
  ['before the answer', true],
  ['after the answer', true],
] as const) {
  t.test(
    `the inviter's app dies ${when}: the rest of the call goes on with one key, which the app comes back to`,
    async t => {
      const [ann, bob, cat] = house.people as Four
      const [call, bobs] = (await callOf(ann, bob)) as [Call, Call]
      const rung = cat.me.once('ringing')
      if (when !== 'after the answer')
        bob.lies.handle('POST call/{callId}/invite', async pass => {
          if (invites) await pass()
          await bob.me.close()
          // No app waits for it.
          return Response.json({ code: 'CALL_ENDED' }, { status: 409 })
        })
      const inviting = bobs.invite([cat.me.userId!])
      if (when === 'after the answer') {
        await inviting
        await bob.me.close()
      } else await t.rejects(inviting)
      const calls = [call]
      if (invites) {
        const incoming = await rung
        await incoming.answer()
        calls.push(incoming)
      }
      bob.lies.beHonest()
      const again = await house.restart(1)
      calls.push(await again.me.once('resumed'))
      await allHave(() => call.fingerprint, calls)
      t.equal(call.keys[0]!.epoch, invites ? 2 : 1)
      t.equal(call.sealedFor.length, calls.length)
      t.equal(cat.me.calls.length, invites ? 1 : 0)
    },
  )
}
