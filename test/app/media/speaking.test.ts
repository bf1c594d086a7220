/** The active speaker, from how loud each voice is at each look. */

import t from 'tap'
import { Speaking } from '../../../src/app/media/speaking.ts'

/** The active speaker after each look. `A` is loud, `a` is neither loud nor quiet; a voice that is not named is quiet. */
function play(looks: string, speaking = new Speaking()): string {
  const active = looks.split(' ').map(loud => {
    const levelOf = (voice: string) =>
      loud.includes(voice.toUpperCase()) ? 0.2 : loud.includes(voice) ? 0.02 : 0
    const isTold = speaking.active
    const hasChanged = speaking.look(new Map(['a', 'b', 'c'].map(voice => [voice, levelOf(voice)])))
    t.equal(hasChanged, speaking.active !== isTold, 'each change is told')
    return speaking.active ?? '-'
  })
  return active.join(' ')
}

t.test('a voice is active from its second loud look to a second of silence', async t => {
  t.equal(play('A A A A - - - - -'), '- a a a a a a - -')
  t.equal(play('A - A - A'), '- - - - -', 'a cough is no speech')
  t.equal(play('A A A A a a a a a'), '- a a a a a a a a', 'nor is a soft word its end')
  t.equal(play('A A A A - - A A - - A A'), '- a a a a a a a a a a a', 'nor a pause for breath')
})

t.test('another takes over once the active speaker pauses, not by speaking too', async t => {
  t.equal(play('A A A A AB AB AB AB AB'), '- a a a a a a a a')
  t.equal(play('A A A A B B B B B'), '- a a a a a a b b')
  t.equal(play('A A A A AB AB AB AB B'), '- a a a a a a a b')
})

t.test('those who have spoken come latest first, without those who have gone', async t => {
  const speaking = new Speaking()
  play('C C C C B B B B B A A A A A', speaking)
  t.same(speaking.latest, ['a', 'b', 'c'])
  t.notOk(
    speaking.look(
      new Map([
        ['a', 0.2],
        ['c', 0],
      ]),
    ),
  )
  t.same(speaking.latest, ['a', 'c'])
  t.ok(speaking.look(new Map()))
  t.same([speaking.active, speaking.latest], [undefined, []])
})
