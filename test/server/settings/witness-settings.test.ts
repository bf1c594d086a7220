/** The policy of witnesses as a setting: the start names its faults. */

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { formatWitnessKey, witnessKeyFromSeed } from '../../../src/log/cosignature.ts'
import { generateIndexKey, generateKeys } from '../../../src/log/keys.ts'
import { ConfigError, readConfig } from '../../../src/server/settings/config.ts'

const [keys, others] = ['kt.example.org/log', 'kt.example.com/log'].map(origin =>
  generateKeys(origin, randomBytes),
) as [ReturnType<typeof generateKeys>, ReturnType<typeof generateKeys>]
const vkeyOf = (name: string) => formatWitnessKey(witnessKeyFromSeed(name, randomBytes(32)))
const log = `log ${keys.ktPublicKey}\n`
const one = `witness one ${vkeyOf('one.example')} https://one.example/w/\n`

function read(path: string, environment: Readonly<Record<string, string>> = {}) {
  return readConfig(
    {
      CALLSIGN_ORIGIN: keys.origin,
      KT_PRIVATE_KEY: keys.ktPrivateKey,
      VRF_PRIVATE_KEY: keys.vrfPrivateKey,
      CALLSIGN_SECRET: keys.secret,
      CALLSIGN_WITNESS_POLICY: path,
      ...environment,
    },
    { dev: true },
  ).log.witnesses
}

t.test('a policy of this log is taken, with its text and the addresses to ask at', async t => {
  const path = join(t.testdir(), 'policy')
  const text = `# ours\nlog ${others.ktPublicKey}\n${log}${one}quorum one\n`
  writeFileSync(path, text)
  t.match(read(path), {
    policyText: text,
    quorum: { name: 'one' },
    witnesses: [{ url: 'https://one.example/w' }],
  })
})

t.test('a policy that is none, of another log, or that can not be asked is named', async t => {
  const path = join(t.testdir(), 'policy')
  for (const [text, problem] of [
    ['', /CALLSIGN_WITNESS_POLICY: policy has no quorum line/],
    [`${log}${one}group g any one two\nquorum g\n`, /policy, line 3: no line before this one has two/],
    [`${log}${one}quorum none\n`, /asks for no quorum/],
    [`${log}witness one ${vkeyOf('one.example')}\nquorum one\n`, /witness one has no http or https address/],
    [`${log}${one.replace('https', 'ftp')}quorum one\n`, /witness one has no http or https address/],
    [`log ${others.ktPublicKey}\n${one}quorum one\n`, /has no line `log kt\.example\.org\/log\+/],
    [`${log}witness one nonsense https://one.example\nquorum one\n`, /policy, line 2: /],
  ] as const) {
    writeFileSync(path, text)
    t.throws(() => read(path), { message: problem }, text)
  }
  t.throws(
    () => read(`${path}-none`),
    new ConfigError(["CALLSIGN_WITNESS_POLICY: can't read the file that it names (ENOENT)"]),
  )
})

t.test('a policy has to name the index that there is, and no other', async t => {
  const path = join(t.testdir(), 'policy')
  const index = `log ${keys.ktIndexPublicKey}\n`
  const other = `log ${generateIndexKey(keys.origin, randomBytes).ktIndexPublicKey}\n`
  const withIndex = { KT_INDEX_PRIVATE_KEY: keys.ktIndexPrivateKey }
  const readWith = (logs: string, environment: Readonly<Record<string, string>>) => {
    writeFileSync(path, `${logs}${one}group rebuilders all one\nquorum rebuilders\n`)
    return read(path, environment)
  }
  t.match(readWith(`${log}${index}`, withIndex), { rebuilders: { name: 'rebuilders', threshold: 1 } })
  t.ok(readWith(`${log}${index}${other}`, withIndex), 'one that the index has had')
  const asked = `CALLSIGN_WITNESS_POLICY has no line \`log ${keys.ktIndexPublicKey}\`, which is the index of this server's log: add it below that of the log, and ask the witnesses to add it`
  t.throws(() => readWith(log, withIndex), new ConfigError([asked]))
  t.throws(() => readWith(`${log}${other}`, withIndex), new ConfigError([asked]))
  t.throws(() => readWith(`${log}${index}`, {}), {
    message:
      /names an index with `log kt\.example\.org\/log\/index\+.*`, and this server has none, .*: set KT_INDEX_PRIVATE_KEY, or take the line out/,
  })
  t.ok(readWith(`${log}log ${others.ktIndexPublicKey}\n`, {}), 'that of another log')
})
