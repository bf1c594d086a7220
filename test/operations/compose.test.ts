/** The compose file and the pages that go with it: what one names, the other has. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_ROOT } from '../support/vectors.ts'

const compose = readFileSync(join(PROJECT_ROOT, 'deploy/compose.yaml'), 'utf8')
const [, relay = ''] = /^ {2}coturn:\n((?: {4}.*\n)+)/m.exec(compose) ?? []

t.test('the relay finds its certificates where the documented lines look for them', async t => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/operator.md'), 'utf8')
  const files = [...page.matchAll(/^(?:cert|pkey)=(.*)$/gm)].map(([, path]) => path!)
  const mounted = [...relay.matchAll(/^ +- \.\/[\w.]+:([\w./]+):ro$/gm)].map(([, path]) => path!)
  t.equal(files.length, 2)
  t.same(
    files.filter(file => !mounted.some(path => file.startsWith(`${path}/`))),
    [],
  )
})

t.test('the relay may have the one right that its program carries, or it could not be run', async t => {
  t.match(relay, /cap_drop: \[ALL\]/)
  t.match(relay, /cap_add: \[NET_BIND_SERVICE\]/)
})

t.test('what the containers log has a bound', async t => {
  const services = compose.match(/^ {4}image: /gm)?.length
  t.equal(compose.match(/^ {6}options: \{ max-size: /gm)?.length, services)
  t.match(relay, /--log-file=stdout/)
})
