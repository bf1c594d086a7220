/** Figures of several processes in one text: each sample is there once, with its process, below one HELP and TYPE. */

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { mergeMetrics } from '../../src/operations/merged-metrics.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { checkProperty } from '../support/property.ts'

const PROMTOOL = '/usr/bin/promtool'
const noPromtool = skipWithout([PROMTOOL], 'prometheus')

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: string
}

interface Family {
  readonly help: string
  readonly type: string
  readonly samples: readonly Sample[]
}

/** Reads the text form strictly, character by character where labels are; throws where it is broken. */
function parse(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family & { samples: Sample[] }>()
  const lines = text.split('\n').filter(line => line !== '')
  let name = ''
  for (let at = 0; at < lines.length; at++) {
    const [, helpName, help] = /^# HELP (\S+) (.*)$/.exec(lines[at]!) ?? []
    if (helpName !== undefined) {
      const [, typeName, type] = /^# TYPE (\S+) (\w+)$/.exec(lines[++at]!) ?? []
      if (typeName !== helpName || families.has(helpName)) throw new Error(`head of ${helpName}`)
      name = helpName
      families.set(name, { help: help!, type: type!, samples: [] })
      continue
    }
    const sample = parseSample(lines[at]!)
    if (!sample.name.startsWith(name)) throw new Error(`${sample.name} stands below ${name}`)
    families.get(name)!.samples.push(sample)
  }
  return families
}

function parseSample(line: string): Sample {
  const [head = '', name = ''] = /^([a-z_:]+)/.exec(line) ?? []
  const labels: Record<string, string> = {}
  let rest = line.slice(head.length)
  while (/^[{,]/.test(rest)) {
    const [whole, label, value] = /^[{,]([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"/.exec(rest) ?? []
    if (whole === undefined || label! in labels) throw new Error(`labels of ${line}`)
    labels[label!] = value!.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter))
    rest = rest.slice(whole.length)
  }
  const [, value] =
    (head === line.slice(0, line.length - rest.length) ? /^ (\S+)$/ : /^} (\S+)$/).exec(rest) ?? []
  if (value === undefined) throw new Error(`value of ${line}`)
  return { name, labels, value }
}

/** As prom-client writes it. */
function format(families: ReadonlyMap<string, Family>): string {
  const texts = Array.from(families, ([name, { help, type, samples }]) =>
    [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples.map(formatSample)].join('\n'),
  )
  return `${texts.join('\n\n')}\n`
}

function formatSample({ name, labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

const record = <T>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record<T>(members, { noNullPrototype: true })
const label = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({
    unit: fc.constantFrom('\\', '"', '\n', '\r', '{', '}', ',', '=', ' ', '#', 'n'),
    maxLength: 8,
  }),
)
const value = fc.oneof(fc.double().map(String), fc.constantFrom('NaN', '+Inf', '-Inf', '0'))

/** The samples of a metric that a process may lack, or may not have used yet. */
function family(name: string, type: string, labels: fc.Arbitrary<Sample['labels']>, suffixes = ['']) {
  const sample = record({ name: fc.constantFrom(...suffixes.map(each => name + each)), labels, value })
  const samples = fc.array(sample, { maxLength: 5 })
  const whole = samples.map((samples): [string, Family][] => [
    [name, { help: `Help {of} ${name}`, type, samples }],
  ])
  return fc.oneof(whole, fc.constant<[string, Family][]>([]))
}

const families = fc
  .tuple(
    family('a_gauge', 'gauge', record({ kind: label })),
    family('a_total', 'counter', fc.constant({})),
    family('a_time', 'histogram', record({ route: label, le: label }), ['_bucket', '_sum', '_count']),
    family('other', 'summary', fc.oneof(fc.constant({}), record({ quantile: label })), ['', '_sum']),
  )
  .map(all => new Map(all.flat()))

/** The part of merged figures that is of one process. */
function shownBy(process: string, merged: ReadonlyMap<string, Family>): ReadonlyMap<string, Family> {
  const own = Array.from(merged, ([name, { samples, ...head }]): [string, Family] => {
    const mine = samples.filter(({ labels }) => labels.process === process)
    return [
      name,
      { ...head, samples: mine.map(sample => ({ ...sample, labels: omitProcess(sample.labels) })) },
    ]
  })
  return new Map(own)
}

function omitProcess({ process: _, ...labels }: Sample['labels']): Sample['labels'] {
  return labels
}

/** Metrics by name, without those that have no sample. */
function used(families: ReadonlyMap<string, Family>): unknown {
  const entries = [...families].filter(([, { samples }]) => samples.length > 0)
  return entries.sort(([one], [other]) => (one < other ? -1 : 1))
}

t.test('each sample is there once, with its process', async t => {
  const processes = fc.uniqueArray(fc.tuple(label, families), {
    selector: ([name]) => name,
    minLength: 2,
    maxLength: 4,
  })
  checkProperty(t, [processes], all => {
    const merged = parse(mergeMetrics(all.map(([process, each]) => ({ process, text: format(each) }))))
    const names = new Set(all.flatMap(([, each]) => [...each.keys()]))
    const isWhole = all.every(([process, each]) =>
      isDeepStrictEqual(used(shownBy(process, merged)), used(each)),
    )
    return isWhole && isDeepStrictEqual([...merged.keys()].sort(), [...names].sort())
  })
})

t.test('the figures of one process stay as they are', async t => {
  checkProperty(
    t,
    [families],
    each => mergeMetrics([{ process: 'writer', text: format(each) }]) === format(each),
  )
})

t.test('figures of running processes are read by Prometheus', { skip: noPromtool }, async t => {
  const metrics = new Metrics()
  metrics.grpcCalls.observe({ status: 'OK' }, 0.1)
  metrics.gauge('callsign_nothing', 'Unreadable', () => Number.NaN)
  const text = await metrics.text()
  const input = mergeMetrics(['writer', 'front-1', 'front-2'].map(process => ({ process, text })))
  t.match(input, /^callsign_nothing\{process="front-2"\} Nan$/m)
  t.match(input, /^callsign_grpc_call_seconds_bucket\{process="writer",le="0.1",status="OK"\} 1$/m)
  const { code, stdout, stderr } = await runProgram(PROMTOOL, ['check', 'metrics'], { input })
  t.same([code, stdout + stderr], [0, ''])
})
