/**
 * The manifests for Kubernetes: what they name is there, in each file and, where kubectl renders them, in the whole. No test
 * has a cluster.
 */

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { operatorRoutes } from '../../src/operations/health.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { listSettings } from '../../src/server/settings/config.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { parseRuleFile } from '../support/rule-file.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

interface Manifest {
  readonly kind: string
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the assertions are about.
  readonly [member: string]: any
}

const FOLDER = join(PROJECT_ROOT, 'deploy/kubernetes')
const KUBECTL = ['/usr/bin/kubectl', '/usr/local/bin/kubectl'].find(existsSync) ?? '/usr/bin/kubectl'
const SETTINGS = new Set(
  listSettings().flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name])),
)
const PROBE_PATHS = operatorRoutes({ notReady: () => undefined }, new Metrics()).map(({ path }) => path)

function manifestsIn(text: string): readonly Manifest[] {
  return text
    .split(/^---\n/m)
    .filter(each => each.trim() !== '')
    .map(each => parseRuleFile(each) as unknown as Manifest)
}

function readManifests(...names: readonly string[]): readonly Manifest[] {
  return names.flatMap(name => manifestsIn(readFileSync(join(FOLDER, name), 'utf8')))
}

const named = (manifests: readonly Manifest[], kind: string, name = 'callsign') =>
  manifests.find(each => each.kind === kind && each.metadata.name === name)!
const containerOf = (set: Manifest) => set.spec.template.spec.containers[0]
const namesOf = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name)

/** Checks whole manifests: those of the base, or rendered ones. `secrets` are the files of the secret. */
function check(t: Test, manifests: readonly Manifest[], secrets: readonly string[]): void {
  const set = named(manifests, 'StatefulSet')
  const container = containerOf(set)
  const ports = namesOf(container.ports)
  const { labels } = set.spec.template.metadata
  t.same(set.spec.selector.matchLabels, labels)
  t.equal(set.spec.serviceName, named(manifests, 'Service', 'callsign-pods').metadata.name)
  for (const service of manifests.filter(({ kind }) => kind === 'Service')) {
    t.same(service.spec.selector, labels, service.metadata.name)
    for (const { targetPort } of service.spec.ports) t.ok(ports.includes(targetPort), targetPort)
  }
  for (const policy of manifests.filter(({ kind }) => kind === 'NetworkPolicy')) {
    t.same(policy.spec.podSelector.matchLabels, labels, policy.metadata.name)
    for (const rule of policy.spec.ingress) {
      for (const { port } of rule.ports) t.ok(ports.includes(port), port)
    }
  }
  for (const budget of manifests.filter(({ kind }) => kind === 'PodDisruptionBudget')) {
    t.same(budget.spec.selector.matchLabels, labels)
    t.ok(Number(budget.spec.maxUnavailable) < Number(set.spec.replicas) || set.spec.replicas === '0')
  }
  const [rule] = named(manifests, 'Ingress').spec.rules
  t.equal(rule.http.paths[0].backend.service.name, named(manifests, 'Service').metadata.name)
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const { path, port } = container[probe].httpGet
    t.ok(PROBE_PATHS.includes(path) && port === 'operators', `${probe}: ${path}`)
  }
  t.equal(set.spec.template.spec.securityContext.runAsNonRoot, 'true')
  t.equal(container.securityContext.readOnlyRootFilesystem, 'true')
  t.same(namesOf(container.volumeMounts), ['data', 'head', 'secrets'])
  t.same(namesOf(set.spec.volumeClaimTemplates.map((claim: Manifest) => claim.metadata)), ['data', 'head'])
  checkSettings(t, container.env, secrets)
}

/** Each variable is a setting, each file one of the secret. */
function checkSettings(t: Test, env: readonly Manifest[], secrets: readonly string[]): void {
  const strangers = namesOf(env as never).filter(name => !SETTINGS.has(name) && name !== 'POD_NAMESPACE')
  t.same(strangers, [])
  const files = env.flatMap(({ value }) => /^\/secrets\/(.+)$/.exec(value ?? '')?.[1] ?? [])
  t.same(
    files.filter(file => !secrets.includes(file)),
    [],
  )
}

const [site] = readManifests('site/kustomization.yaml') as [Manifest]
const generated: readonly string[] = site.secretGenerator[0].files.map((path: string) =>
  path.replace('secrets/', ''),
)
const NODE_SECRETS = ['node.crt', 'node.key', 'authority.crt', 'database-url']

t.test('the base is one server with volumes of its own', async t => {
  const manifests = readManifests('base/server.yaml', 'base/services.yaml', 'base/network.yaml')
  check(t, manifests, generated)
  t.equal(named(manifests, 'StatefulSet').spec.replicas, '1')
})

t.test('nodes add settings, and a port that they alone reach', async t => {
  const [set] = readManifests('nodes/server.yaml') as [Manifest]
  checkSettings(t, containerOf(set).env, NODE_SECRETS)
  const added = readManifests('nodes/network.yaml')
  const rule = named(added, 'NetworkPolicy', 'callsign-nodes').spec.ingress[0]
  t.same(rule.from, [{ podSelector: added[0]!.spec.selector }])
  t.same(rule.ports, [{ port: namesOf(containerOf(set).ports)[0] }])
})

t.test('the site has settings that there are, and each folder names its files', async t => {
  const lines = readFileSync(join(FOLDER, 'site/callsign.env'), 'utf8').split('\n')
  const names = lines.flatMap(line => /^(\w+)=/.exec(line)?.[1] ?? [])
  t.ok(names.length > 4)
  t.same(
    names.filter(name => !SETTINGS.has(name)),
    [],
  )
  for (const folder of ['base', 'nodes', 'site', 'migrate']) {
    const [kustomization] = readManifests(join(folder, 'kustomization.yaml')) as [Manifest]
    for (const path of kustomization.resources) t.ok(existsSync(join(FOLDER, folder, path)), path)
    const own = readdirSync(join(FOLDER, folder)).filter(name => name.endsWith('.yaml'))
    const used = [
      ...kustomization.resources,
      ...(kustomization.patches ?? []).map(({ path }: Manifest) => path),
    ]
    t.same(
      own.filter(name => name !== 'kustomization.yaml' && !used.includes(name)),
      [],
    )
  }
})

/** A copy of the folder whose site has secrets, for nodes if so. */
function newSite(t: Test, isOfNodes: boolean): string {
  const folder = join(t.testdir(), 'kubernetes')
  cpSync(FOLDER, folder, { recursive: true })
  mkdirSync(join(folder, 'site/secrets'))
  for (const name of [...generated, ...NODE_SECRETS]) writeFileSync(join(folder, 'site/secrets', name), name)
  const file = join(folder, 'site/kustomization.yaml')
  const text = readFileSync(file, 'utf8')
  const ofNodes = text.replace('- ../base', '- ../nodes').replaceAll('# - secrets/', '- secrets/')
  if (isOfNodes) writeFileSync(file, ofNodes)
  return folder
}

async function render(folder: string): Promise<readonly Manifest[]> {
  const { code, stdout, stderr } = await runProgram(KUBECTL, ['kustomize', folder])
  if (code !== 0) throw new Error(stderr)
  return manifestsIn(stdout)
}

const skip = skipWithout([KUBECTL], 'kubectl')

for (const isOfNodes of [false, true]) {
  t.test(`kubectl renders a site of ${isOfNodes ? 'nodes' : 'one server'}`, { skip }, async t => {
    const manifests = await render(join(newSite(t, isOfNodes), 'site'))
    const { data: secrets } = manifests.find(({ kind }) => kind === 'Secret')!
    check(t, manifests, Object.keys(secrets))
    const set = named(manifests, 'StatefulSet')
    t.equal(set.spec.replicas, isOfNodes ? '2' : '1')
    t.match(containerOf(set).image, /^registry\.example\.org\/callsign:\d/)
    t.equal(manifests.filter(({ kind }) => kind === 'PodDisruptionBudget').length, isOfNodes ? 1 : 0)
    for (const { metadata } of manifests) t.equal(metadata.namespace, 'callsign')
    const config = manifests.find(({ kind }) => kind === 'ConfigMap')!
    t.equal(containerOf(set).envFrom[0].configMapRef.name, config.metadata.name)
  })
}

t.test('the move to nodes stops the server, and has its volume', { skip }, async t => {
  const manifests = await render(join(newSite(t, true), 'migrate'))
  t.equal(named(manifests, 'StatefulSet').spec.replicas, '0')
  const job = named(manifests, 'Job', 'callsign-migrate')
  const [volume, secret] = job.spec.template.spec.volumes
  t.equal(volume.persistentVolumeClaim.claimName, 'data-callsign-0')
  t.equal(secret.secret.secretName, manifests.find(({ kind }) => kind === 'Secret')!.metadata.name)
  t.equal(containerOf(job).image, containerOf(named(manifests, 'StatefulSet')).image)
  checkSettings(t, containerOf(job).env, NODE_SECRETS)
})
