/** Which clients are too old: by number, per platform, and only those that say so. */

import t from 'tap'
import { clientRequirement } from '../../src/domain/client-version.ts'

const requirement = clientRequirement(['ios/1.4.0', 'android/2.0.10'])

t.test('a version below its platform’s minimum hears the minimum', async t => {
  for (const old of ['ios/1.3.99', 'ios/1.3', 'ios/1', 'ios/0.9.9 (7)', 'iOS/1.3.9', 'ios/1.3.10']) {
    t.equal(requirement(old), 'ios/1.4.0', old)
  }
  t.equal(requirement('android/2.0.9 (2000009)'), 'android/2.0.10')
})

t.test('the minimum and newer versions are served', async t => {
  for (const recent of ['ios/1.4.0', 'ios/1.4', 'ios/1.4.2 (214)', 'ios/1.10.0', 'ios/2', 'android/2.0.10']) {
    t.equal(requirement(recent), undefined, recent)
  }
})

t.test('a platform without a minimum and a text of another form are served', async t => {
  const others = [
    '',
    'ios',
    'ios/',
    'ios/1.3.x',
    'ios/1.3.0.0',
    'ios/-1',
    'ios/1.3.0-beta',
    'ios 1.3.0',
    '1.3.0',
  ]
  for (const other of [...others, 'web/0.1.0', 'constructor/0.0.1', `ios/${'1'.repeat(10)}`, 'ios/1.3.0 (']) {
    t.equal(requirement(other), undefined, other)
  }
})

t.test('without minimums everybody is served', async t => {
  t.equal(clientRequirement([])('ios/0.0.1'), undefined)
})
