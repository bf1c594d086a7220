/**
 * What the pages of docs/protocol say by name is there: destinations, messages, codes; and the code that
 * docs/check/crypto.md prints is the one that is used.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { EVENTS } from '../../src/schema/event.ts'
import { parseDestination } from '../../src/stomp/destination.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const read = (name: string) => readFileSync(join(PROJECT_ROOT, 'docs', name), 'utf8')
const cryptoPage = read('check/crypto.md')
/** Without the page of pushes, which has the codes of Apple and Google. */
const page = readdirSync(join(PROJECT_ROOT, 'docs/protocol'))
  .filter(name => name !== 'push.md')
  .map(name => read(`protocol/${name}`))
  .join('\n')
const pages = page + read('protocol/push.md') + read('build/push.md')
const errors = readFileSync(join(PROJECT_ROOT, 'src/errors.ts'), 'utf8')
/** They have the faults of device lists, which are codes in capitals. */
const faults = ['src/log/device-list.ts', 'src/api/devices/device-lists.ts']
  .map(name => readFileSync(join(PROJECT_ROOT, name), 'utf8'))
  .join('\n')

t.test('the construction it prints is the one that the stories use', async t => {
  const [, printed = ''] = /^```ts\n([\s\S]+?)^```$/m.exec(cryptoPage) ?? []
  const used = readFileSync(join(PROJECT_ROOT, 'test/support/call-key.ts'), 'utf8')
  t.ok(printed.length > 1_000)
  t.ok(used.endsWith(printed))
})

t.test('every destination it names is one', async t => {
  const named = [...pages.matchAll(/['`](\/(?:user|topic|app(?!\/api)|queue)\/[^'`\s]+)['`]/g)].map(
    ([, path]) => path!,
  )
  const destinations = new Set(
    named.map(path =>
      path
        .replace(/\$?\{callId\}/, '7')
        .replace('<name>', 't')
        .replace(/\$\{?queue\}?/, 'calls'),
    ),
  )
  t.ok(destinations.size > 7)
  const known = { userId: '1', hasTestTopics: true }
  t.same(
    [...destinations].filter(path => typeof parseDestination(path, known) === 'string'),
    [],
  )
})

t.test('every code and message it names exists', async t => {
  const codes = [...page.matchAll(/`(?!CALLSIGN_)([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, code]) => code!)
  t.ok(new Set(codes).size > 15)
  t.same(
    codes.filter(
      code =>
        !errors.includes(`'${code}'`) && !faults.includes(`'${code.toLowerCase().replaceAll('_', '-')}'`),
    ),
    [],
  )
  const events = [...page.matchAll(/`((?:call|participant|key|host)_[a-z_]+)`/g)].map(([, type]) => type!)
  t.ok(new Set(events).size > 7)
  t.same(
    events.filter(type => !(type in EVENTS) && type !== 'call_cancel'),
    [],
  )
})
