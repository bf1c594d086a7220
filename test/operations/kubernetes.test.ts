/** The manifests for Kubernetes: they parse, and what they name is there. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { operatorRoutes } from '../../src/operations/health.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { listSettings } from '../../src/server/settings/config.ts'
import { parseRuleFile } from '../support/rule-file.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

interface Manifest {
  readonly kind: string
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the assertions are about.
  readonly [member: string]: any
}

const text = readFileSync(join(PROJECT_ROOT, 'deploy/kubernetes.yaml'), 'utf8')
const manifests = text.split(/^---\n/m).map(each => parseRuleFile(each) as unknown as Manifest)
const [settings, service, operators, serverApi, set] = manifests

t.test('one server owns its volumes', async t => {
  t.same(
    manifests.map(({ kind }) => kind),
    ['ConfigMap', 'Service', 'Service', 'Service', 'StatefulSet'],
  )
  t.equal(set!.spec.replicas, '1')
  t.equal(set!.spec.serviceName, operators!.metadata.name)
  const mounted = set!.spec.template.spec.containers[0].volumeMounts
  t.same(
    mounted.map((mount: { name: string }) => mount.name),
    ['data', 'head', 'secrets'],
  )
  t.same(
    set!.spec.volumeClaimTemplates.map((claim: Manifest) => claim.metadata.name),
    ['data', 'head'],
  )
})

t.test('each variable is a setting', async t => {
  const names = listSettings().flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name]))
  const set1 = set!.spec.template.spec.containers[0].env.map(({ name }: { name: string }) => name)
  const used = [...Object.keys(settings!.data), ...set1]
  t.ok(used.length > 8)
  t.same(
    used.filter(name => !names.includes(name)),
    [],
  )
})

t.test('probes and services lead to ports and paths that there are', async t => {
  const [container] = set!.spec.template.spec.containers
  const ports = container.ports.map(({ name }: { name: string }) => name)
  for (const { spec } of [service!, operators!, serverApi!]) {
    for (const { targetPort } of spec.ports) t.ok(ports.includes(targetPort), targetPort)
    t.same(spec.selector, set!.spec.template.metadata.labels)
  }
  const paths = operatorRoutes({ notReady: () => undefined }, new Metrics()).map(({ path }) => path)
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const { path, port } = container[probe].httpGet
    t.ok(paths.includes(path), `${probe}: ${path}`)
    t.equal(port, 'operators')
  }
})
