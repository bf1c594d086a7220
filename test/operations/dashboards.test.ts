/**
 * The files for Prometheus and Grafana name figures that a server shows: each metric, label and value in them is looked
 * for in the `/metrics` of a server on which people have called each other.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { observeDatabase, observeIndex, observeMedia } from '../../src/operations/figures.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { friends, rehearse, startCall } from '../support/call-story.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { parseRuleFile } from '../support/rule-file.ts'
import { freshPublicKey } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const RULES = join(PROJECT_ROOT, 'deploy/prometheus/alerts.yaml')
const DASHBOARD = join(PROJECT_ROOT, 'deploy/grafana/callsign.json')
const ALARMS = join(PROJECT_ROOT, 'test/operations/alarms.yaml')
const PROMTOOL = '/usr/bin/promtool'
const noPromtool = skipWithout([PROMTOOL], 'prometheus')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

function readRules(): readonly Rule[] {
  const file = parseRuleFile(readFileSync(RULES, 'utf8')) as unknown as { groups: { rules: Rule[] }[] }
  return file.groups.flatMap(({ rules }) => rules)
}

function readDashboard(): {
  readonly panels: readonly Panel[]
  readonly annotations: { list: { expr: string }[] }
} {
  return JSON.parse(readFileSync(DASHBOARD, 'utf8'))
}

/** Each expression with the place it stands in. */
function expressions(): { readonly where: string; readonly expr: string }[] {
  const { panels, annotations } = readDashboard()
  return [
    ...readRules().map(({ alert, expr }) => ({ where: alert, expr })),
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expr }))),
    ...annotations.list.map(({ expr }) => ({ where: 'annotation', expr })),
  ]
}

/** The values of each label of each metric. */
type Shown = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

/** The `/metrics` of a server once two people have talked, and one request was refused. */
async function metricsAfterCall(t: Test): Promise<string> {
  const story = await rehearse(t)
  const [ann, bob] = await friends(story)
  await bob.connect()
  const { callId } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await bob.get(200, `POST /app/api/call/${callId}/join`)
  await ann.get(200, 'POST /app/api/call/end', { callId })
  await bob.next('call_ended')
  await bob.get(404, 'POST /app/api/call/1/join')
  await bob.disconnect()
  await bob.closed()
  const { grpc, admin } = story.server
  const client = new RegisterClient(grpc)
  await client.register(1n, 1n, freshPublicKey())
  client.close()
  return (await fetch(`${admin}/metrics`)).text()
}

/** Further figures, of a node, of an index, and of a server with media gateways. */
async function metricsOfOthers(): Promise<string> {
  const metrics = new Metrics()
  observeDatabase(metrics, () => ({}))
  observeIndex(metrics, () => undefined)
  observeMedia(metrics, () => [{ name: 'one', isUp: true, isDraining: false, rooms: 0, calls: 0 }])
  return await metrics.text()
}

/** The text form of Prometheus; names that are only declared count as shown, without labels. */
function parseFigures(text: string): Shown {
  const shown = new Map<string, Map<string, Set<string>>>()
  for (const line of text.split('\n')) {
    const [, declared, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? []
    const suffixes =
      type === 'histogram'
        ? ['_bucket', '_sum', '_count']
        : type === 'summary'
          ? ['', '_sum', '_count']
          : ['']
    for (const suffix of declared === undefined ? [] : suffixes)
      if (!shown.has(declared + suffix)) shown.set(declared + suffix, new Map())
    const [, name, labels = ''] = /^([a-z_]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const ofName = shown.get(name) ?? new Map<string, Set<string>>()
    shown.set(name, ofName)
    for (const [, label, value] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      ofName.set(label!, (ofName.get(label!) ?? new Set()).add(value!))
    }
  }
  return shown
}

interface Selector {
  readonly metric: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

/** The metrics of an expression with their matchers, and the labels that it groups by. */
function takeApart(expr: string): { selectors: Selector[]; groupedBy: string[] } {
  const groupedBy: string[] = []
  const bare = expr
    .replace(/\b(?:by|on|without|ignoring|group_left|group_right) *\(([^)]*)\)/g, (_, labels: string) => {
      groupedBy.push(
        ...labels
          .split(',')
          .map(label => label.trim())
          .filter(label => label !== ''),
      )
      return ' '
    })
    .replace(/\[[^\]]*\]/g, ' ')
  const found = bare.matchAll(/([a-zA-Z_]\w*)\b *(\{(?:[^}"]|"[^"]*")*\}|\()?/g)
  const selectors = [...found]
    .filter(([, word, rest]) => rest !== '(' && !OPERATORS.has(word!))
    .map(([, metric, rest = '']) => ({ metric: metric!, matchers: matchersOf(rest) }))
  return { selectors, groupedBy }
}

function matchersOf(text: string): Selector['matchers'] {
  const found = text.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)
  return [...found].map(([, label, operator, value]) => ({
    label: label!,
    operator: operator!,
    value: value!,
  }))
}

/** Names in an expression that the server does not show. */
function missingFrom(shown: Shown, expr: string): string[] {
  const { selectors, groupedBy } = takeApart(expr)
  const known = selectors.filter(({ metric }) => shown.has(metric))
  const labels = new Set(known.flatMap(({ metric }) => [...shown.get(metric)!.keys()]))
  return [
    ...selectors.filter(({ metric }) => !shown.has(metric) && metric !== 'up').map(({ metric }) => metric),
    ...known.flatMap(selector => unknownMatchers(shown, selector)),
    ...groupedBy.filter(label => !OF_SCRAPES.has(label) && !labels.has(label)).map(label => `by ${label}`),
  ]
}

function unknownMatchers(shown: Shown, { metric, matchers }: Selector): string[] {
  const missing: string[] = []
  for (const { label, operator, value } of matchers) {
    if (OF_SCRAPES.has(label)) continue
    const values = shown.get(metric)!.get(label)
    if (values === undefined) missing.push(`${metric}{${label}}`)
    const isList = operator === '=' || (operator === '=~' && /^[\w|-]+$/.test(value))
    for (const one of isList ? value.split('|') : []) {
      if (!values?.has(one) && !RARE.has(one)) missing.push(`${metric}{${label}="${one}"}`)
    }
  }
  return missing
}

t.test('every figure that an alarm or the dashboard names is shown by a server', async t => {
  const text = await metricsAfterCall(t)
  const all = (await metricsOfOthers()) + text
  const shown = parseFigures(all)
  await t.test('promtool finds no fault with them', { skip: noPromtool }, async t => {
    const { code, stdout, stderr } = await runProgram(PROMTOOL, ['check', 'metrics'], { input: text })
    t.equal(stdout + stderr, '')
    t.equal(code, 0)
  })
  const counters = new Set([...all.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name!))
  const named = [...shown.keys()].filter(name => name.endsWith('_total'))
  t.same(named.sort(), [...counters].sort(), 'counters, and nothing else, end in _total')
  const asked = expressions()
  t.ok(asked.length > 60, 'the expressions were found')
  const missing = asked.flatMap(({ where, expr }) =>
    missingFrom(shown, expr).map(what => `${where}: ${what}`),
  )
  t.same(missing, [])
})

t.test('a figure, a label or a value that no server shows would be noticed', async t => {
  const shown = parseFigures('# TYPE a_total counter\na_total{kind="x"} 1\n# TYPE b histogram\n')
  t.same(missingFrom(shown, 'sum by (kind, job) (rate(a_total{kind="x"}[5m])) / sum(b_count)'), [])
  t.same(missingFrom(shown, 'rate(a_totals[5m]) > 1'), ['a_totals'])
  t.same(missingFrom(shown, 'a_total{kinds=~"..."}'), ['a_total{kinds}'])
  t.same(missingFrom(shown, 'a_total{kind="y"} or a_total{kind=~"x|z"}'), [
    'a_total{kind="y"}',
    'a_total{kind="z"}',
  ])
  t.same(missingFrom(shown, 'sum by (channel) (a_total)'), ['by channel'])
})

t.test('each alarm says how bad it is, what happened, and where to read what to do', async t => {
  const rules = readRules()
  t.ok(rules.length > 10, 'the rules were found')
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length, 'names are used once')
  const faulty = rules.filter(
    rule =>
      !/^Callsign[A-Za-z]+$/.test(rule.alert) ||
      !/^(critical|warning)$/.test(rule.labels.severity) ||
      !/^(\d+[smhd])?$/.test(rule.for ?? '') ||
      !rule.annotations.summary.includes('{{ $labels.instance }}') ||
      Object.keys(rule).some(member => !RULE_MEMBERS.has(member)),
  )
  t.same(
    faulty.map(({ alert }) => alert),
    [],
  )
})

t.test('each alarm has its page section, and each section its alarm', async t => {
  const rules = readRules()
  const [page = ''] = rules[0]!.annotations.runbook.split('#')
  const headings = [...readFileSync(join(PROJECT_ROOT, page), 'utf8').matchAll(/^### (Callsign\w+)$/gm)]
  t.same(
    headings.map(([, heading]) => `${page}#${heading!.toLowerCase()}`).sort(),
    rules.map(({ annotations }) => annotations.runbook).sort(),
  )
})

t.test('panels have ids of their own, and none lies on another', async t => {
  const { panels } = readDashboard()
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const cells = panels.flatMap(({ title, gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => ({ title, cell: `${x + (at % w)},${y + Math.floor(at / w)}` })),
  )
  const taken = new Set<string>()
  const twice = cells.filter(({ cell }) => taken.size === taken.add(cell).size)
  t.same([...new Set(twice.map(({ title }) => title))], [])
  t.same(
    panels.filter(({ type, targets = [] }) => (type === 'row') !== (targets.length === 0)),
    [],
  )
})

t.test('promtool takes the rules, and they go off when they should', { skip: noPromtool }, async t => {
  for (const [command, file] of [
    ['check', RULES],
    ['test', ALARMS],
  ] as const) {
    const { code, stdout, stderr } = await runProgram(PROMTOOL, [command, 'rules', file])
    t.equal(code, 0, stdout + stderr)
  }
})

/** Words of an expression that are no metrics. */
const OPERATORS = new Set(['and', 'or', 'unless', 'bool', 'offset'])
/** Labels that come from Prometheus, `le` of every histogram, and `process` where there are fronts. */
const OF_SCRAPES = new Set(['job', 'instance', 'le', 'process'])
/** Values that a healthy server does not show. */
const RARE = new Set(['slow'])
const RULE_MEMBERS = new Set(['alert', 'expr', 'for', 'labels', 'annotations'])
