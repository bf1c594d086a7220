/** Policies: who has to have cosigned a checkpoint, and when they all had. */

import fc from 'fast-check'
import t from 'tap'
import { witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { parsePolicy, quorumSeconds } from '../../src/log/policy.ts'
import { encodeBase64 } from '../../src/log/primitives-node.ts'
import { codeOf } from '../support/codes.ts'
import { checkProperty } from '../support/property.ts'
import { readVectors } from '../support/vectors.ts'

interface PolicyVectors {
  cases: { id: string; policy: string; ok: boolean; top_threshold?: number }[]
}

/** Go's library takes what the specification forbids: comments behind words, and a key twice. */
const FORBIDDEN = ['whitespace and comments', 'group numerical', 'group all', 'group any']

function vkeyOf(number: number): string {
  const { name, keyId, publicKey } = witnessKeyFromSeed(`w${number}.example`, new Uint8Array(32).fill(number))
  const bytes = Uint8Array.of(4, ...publicKey)
  return `${name}+${keyId.toString(16).padStart(8, '0')}+${encodeBase64(bytes)}`
}

const witnesses = (count: number) =>
  Array.from({ length: count }, (_, at) => `witness w${at + 1} ${vkeyOf(at + 1)}\n`).join('')

/** When the quorum of these lines had cosigned, where witness n did so at the n-th time. */
function secondsOf(lines: string, times: readonly (number | undefined)[]): number | undefined {
  const { quorum } = parsePolicy(witnesses(times.length) + lines)
  return quorumSeconds(quorum!, ({ name }) => times[Number(name.slice(1)) - 1])
}

t.test('published policies are read as Go reads them, but for what the specification forbids', async t => {
  for (const { id, policy, ok, top_threshold } of readVectors<PolicyVectors>('witness-policy').cases) {
    if (!ok || FORBIDDEN.includes(id)) {
      t.equal(
        codeOf(() => parsePolicy(policy)),
        'MALFORMED',
        id,
      )
      continue
    }
    const { quorum } = parsePolicy(policy)
    t.match(
      quorum,
      { kind: 'group', threshold: (top_threshold ?? quorum?.kind === 'group') ? Number : 0 },
      id,
    )
  }
})

t.test('a policy has its logs, its witnesses with their addresses, and perhaps no quorum', async t => {
  const log = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
  const text = `# ours\nlog ${log} https://kt.example\n\n\t# theirs\nwitness  a\t${vkeyOf(1)} https://w.example/a\nquorum none\n`
  t.match(parsePolicy(text), {
    logs: [{ key: { name: 'PeterNeumann' }, url: 'https://kt.example' }],
    witnesses: [{ name: 'a', key: { name: 'w1.example' }, url: 'https://w.example/a' }],
    quorum: undefined,
  })
})

t.test('a text that is no policy is refused, with the line', async t => {
  const [one, two] = [`witness a ${vkeyOf(1)}\n`, `witness b ${vkeyOf(2)}\n`]
  for (const [lines, line] of [
    [`${one}`, undefined],
    [`${one}quorum a\nquorum a\n`, 3],
    [`${one}quorum a b\n`, 2],
    [`quorum a\n${one}`, 1],
    [`${one}witness b ${vkeyOf(1)}\nquorum a\n`, 2],
    [`${one}witness a ${vkeyOf(2)}\nquorum a\n`, 2],
    [`witness any ${vkeyOf(1)}\nquorum none\n`, 1],
    [`${one}group none any a\nquorum a\n`, 2],
    [`${one}group g 0 a\nquorum g\n`, 2],
    [`${one}group g 2 a\nquorum g\n`, 2],
    [`${one}group g +1 a\nquorum g\n`, 2],
    [`${one}group g any\nquorum g\n`, 2],
    [`${one}${two}group g any a a\nquorum g\n`, 3],
    [`${one}${two}group g any a\ngroup h all a b\nquorum h\n`, 4],
    [`${one}group g any g\nquorum g\n`, 2],
    [`${one}quorum a # the only one\n`, 2],
    [`${one}\u00a0quorum a\n`, 2],
    [`witness a ${vkeyOf(1)}x\nquorum a\n`, 1],
    [`witness a ${vkeyOf(1)} https://a.example more\nquorum a\n`, 1],
    [`nonsense\n${one}quorum a\n`, 1],
    ['#'.repeat(70_000), undefined],
  ] as const) {
    const message = line === undefined ? /^policy / : new RegExp(`^policy, line ${line}: `)
    t.throws(() => parsePolicy(lines), { code: 'MALFORMED', message }, lines.slice(0, 60))
  }
})

t.test('a quorum is as old as its member that counts last', async t => {
  t.equal(secondsOf('quorum w1\n', [5]), 5)
  t.equal(secondsOf('quorum w1\n', [undefined]), undefined)
  t.equal(secondsOf('group g 2 w1 w2 w3\nquorum g\n', [5, 9, 7]), 7)
  t.equal(secondsOf('group g 2 w1 w2 w3\nquorum g\n', [5, undefined, undefined]), undefined)
  const nested = 'group g any w1 w2\ngroup h all w3 w4\ngroup both all g h\nquorum both\n'
  t.equal(secondsOf(nested, [1, 9, 8, 7]), 7)
  t.equal(secondsOf(nested, [1, undefined, 8, 7]), 1)
  t.equal(secondsOf(nested, [1, 9, 8, undefined]), undefined)
})

t.test('the quorum holds at its time, by the cosignatures until then, and at no later one', async t => {
  const time = fc.option(fc.nat(50), { nil: undefined })
  const times = fc.array(time, { minLength: 5, maxLength: 5 })
  checkProperty(t, [times, fc.integer({ min: 1, max: 3 })], (times, threshold) => {
    const lines = `group g ${threshold} w1 w2 w3\ngroup h any g w4\ngroup all-of all h w5\nquorum all-of\n`
    const seconds = secondsOf(lines, times)
    const holdsFrom = (from: number) => {
      const [w1, w2, w3, w4, w5] = times.map(each => each !== undefined && each >= from)
      return ([w1, w2, w3].filter(Boolean).length >= threshold || w4 === true) && w5 === true
    }
    return seconds === undefined ? !holdsFrom(0) : holdsFrom(seconds) && !holdsFrom(seconds + 1)
  })
})
