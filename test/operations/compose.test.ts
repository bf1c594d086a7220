/** The compose files with the balancer's and the relay's: each name in one is there in the other. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listSettings } from '../../src/server/settings/config.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const compose = read('compose.yaml')
const nodes = read('compose.nodes.yaml')
const patroni = read('compose.patroni.yaml')
const balancer = read('haproxy.cfg')
const relay = servicesOf(compose).get('coturn')!

function read(name: string): string {
  return readFileSync(join(PROJECT_ROOT, 'deploy', name), 'utf8')
}

/** The lines below each service's name. */
function servicesOf(text: string): ReadonlyMap<string, string> {
  const [, services = ''] = /^services:\n((?: .*\n|\n)+)/m.exec(text) ?? []
  return new Map(
    [...services.matchAll(/^ {2}([\w-]+):\n((?: {4}.*\n)+)/gm)].map(([, name, lines]) => [name!, lines!]),
  )
}

/** Names in a list of a service, or in the map at the end of the file. */
function secretsOf(service: string): string[] {
  const [, flow] = /^ {4}secrets: \[(.*)\]$/m.exec(service) ?? []
  const [, block = ''] = /^ {4}secrets:\n((?: {6}- .*\n)+)/m.exec(service) ?? []
  return flow?.split(', ') ?? [...block.matchAll(/- (.*)$/gm)].map(([, name]) => name!)
}

t.test('the relay finds its certificates where its file looks for them', async t => {
  const files = [...read('turnserver.conf.example').matchAll(/^(?:cert|pkey)=(.*)$/gm)].map(
    ([, path]) => path!,
  )
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
  const bound = / {6}options: \{ max-size: /
  for (const service of servicesOf(compose).values()) t.match(service, bound)
  for (const service of servicesOf(nodes).values()) t.match(service, /<<: \*node|logging: \*logging|extends:/)
  t.match(nodes, /^ {2}logging: &logging\n {4}driver: json-file\n {4}options: \{ max-size: /m)
  t.match(relay, /--log-file=stdout/)
  for (const service of servicesOf(patroni).values()) {
    t.match(service, /<<: \*(member|etcd)|CALLSIGN_DATABASE_KEPT_BY/)
  }
  t.match(patroni, /^ {2}logging: &logging\n {4}driver: json-file\n {4}options: \{ max-size: /m)
})

for (const [name, text] of Object.entries({ 'compose.yaml': compose, 'compose.nodes.yaml': nodes })) {
  t.test(`${name}: each variable is a setting, each secret is used and is there`, async t => {
    const settings = listSettings().flatMap(({ name, isSecret }) =>
      isSecret ? [name, `${name}_FILE`] : [name],
    )
    const set = [...text.matchAll(/^ +((?:CALLSIGN|KT|VRF)_\w+): /gm)].map(([, variable]) => variable!)
    t.ok(set.length > 5)
    t.same(
      set.filter(variable => !settings.includes(variable)),
      [],
    )
    const [, list = ''] = /^secrets:\n((?: .*\n)+)/m.exec(text) ?? []
    const secrets = [...list.matchAll(/^ {2}([\w.-]+): \{ file: secrets\/\1 \}$/gm)].map(([, each]) => each!)
    const named = new Set([...servicesOf(text).values()].flatMap(secretsOf))
    t.ok(secrets.length > 0)
    t.same([...named].sort(), secrets.toSorted())
    const files = [...text.matchAll(/\/run\/secrets\/(\S+)$/gm)].map(([, each]) => each!)
    t.same([...new Set(files)].sort(), secrets.toSorted(), 'each is named in a setting')
  })
}

t.test('the nodes differ in their names alone', async t => {
  const services = servicesOf(nodes)
  const [one, two] = ['node-1', 'node-2'].map(name =>
    services
      .get(name)!
      .replace(/ {4}depends_on:[\s\S]*/, '')
      .split('\n')
      .filter(line => !line.trim().startsWith('#')),
  )
  t.ok(one!.length > 20)
  t.same(
    two!.map(line => line.replaceAll(/(node|data|head)-2/g, '$1-1').replace(/:(808|907|909)2:/, ':$11:')),
    one,
  )
})

t.test('the balancer asks the readiness of each node, and knows all of them', async t => {
  const known = [...servicesOf(nodes).keys()].filter(name => name.startsWith('node-'))
  for (const port of [8080, 50051]) {
    const servers = [...balancer.matchAll(/^ {2}server (\S+) (\S+):(\d+)$/gm)].filter(
      ([, , , each]) => each === `${port}`,
    )
    t.same(
      servers.map(([, name, host]) => [name, host]),
      known.map(name => [name, name]),
    )
  }
  t.equal(balancer.match(/^ {2}http-check send meth GET uri \/readyz ver HTTP\/1\.1 /gm)?.length, 2)
  t.equal(balancer.match(/^ {2}default-server check port 9090 /gm)?.length, 2)
})

t.test(
  'the members of Patroni and etcd differ in their names alone, and find each other by these',
  async t => {
    const services = servicesOf(patroni)
    for (const kind of ['patroni', 'etcd']) {
      const members = [1, 2, 3].map(at => services.get(`${kind}-${at}`)!.replaceAll(`${kind}-${at}`, 'name'))
      t.ok(members[0]!.length > 100)
      t.equal(new Set(members).size, 1)
    }
    const names = [1, 2, 3].map(at => `etcd-${at}`)
    const settings = read('patroni/patroni.yaml')
    t.match(settings, `hosts: ${names.map(name => `${name}:2379`).join()}`)
    t.match(patroni, `ETCD_INITIAL_CLUSTER: ${names.map(name => `${name}=http://${name}:2380`).join()}`)
    const servers = [...read('patroni/haproxy.cfg').matchAll(/^ {2}server (\S+) (\S+):5432$/gm)]
    t.same(
      servers.map(([, name, host]) => [name, host]),
      [1, 2, 3].map(at => [`patroni-${at}`, `patroni-${at}`]),
    )
  },
)

t.test('Patroni never lets a commit go on without a standby, and its figures fit together', async t => {
  const settings = read('patroni/patroni.yaml')
  const figure = (name: string) => Number(new RegExp(`^ +${name}: (\\d+)$`, 'm').exec(settings)?.[1])
  t.match(settings, /^ {4}synchronous_mode: true\n {4}synchronous_mode_strict: true$/m)
  t.ok(figure('ttl') >= 20, 'the least that Patroni allows')
  t.ok(figure('loop_wait') + 2 * figure('retry_timeout') <= figure('ttl'))
})

t.test('Patroni takes the place of the single PostgreSQL, under its name', async t => {
  t.match(patroni, /^ {2}postgres: !override$/m)
  t.ok(servicesOf(nodes).has('postgres'))
  for (const node of ['node-1', 'node-2']) {
    t.match(servicesOf(patroni).get(node), /CALLSIGN_DATABASE_KEPT_BY: standbys/)
  }
  const secrets = [...patroni.matchAll(/_FILE: \/run\/secrets\/(\S+)$/gm)].map(([, name]) => name)
  const [, mounted = ''] = /^ {2}secrets: \[(.*)\]$/m.exec(patroni) ?? []
  t.same(secrets.toSorted(), mounted.split(', ').toSorted())
})
