/**
 * Programs that other people wrote for logs of this kind take ours as it is: torchwood, its vrf-r255, transparency-dev/formats,
 * Tessera's client and its fsck (`test/strangers/go-modules`). Skipped where Go or the Go proxy is not to be had.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cosignatureLine, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import type { SignerKey } from '../../src/log/note.ts'
import { toBase64 } from '../support/bytes.ts'
import { buildGo } from '../support/go-program.ts'
import { lookUp, registerKey, startLog } from '../support/live-log.ts'
import { startMirror } from '../support/mirror.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const KEYS = 300
const folder = t.testdir({ go: {}, log: {} })
const { skip, run } = await buildGo(join(PROJECT_ROOT, 'test/strangers/go-modules'), join(folder, 'go'))

const [near, far] = [2, 3].map(number =>
  witnessKeyFromSeed(`w${number}.example`, new Uint8Array(32).fill(number)),
) as [SignerKey, SignerKey]

function vkeyOf({ name, keyId, publicKey }: SignerKey): string {
  return `${name}+${keyId.toString(16).padStart(8, '0')}+${toBase64(Uint8Array.of(4, ...publicKey))}`
}

/** The log, with checkpoints that `witnesses` have cosigned. `change` may change answers. */
function startCosigned(
  t: Test,
  http: string,
  witnesses: readonly SignerKey[],
  change: (path: string, bytes: Buffer) => void = () => {},
): Promise<string> {
  return startMirror(t, http, (path, bytes) => {
    change(path, bytes)
    return path === '/checkpoint' ? cosigned(bytes.toString(), witnesses) : bytes
  })
}

function cosigned(note: string, witnesses: readonly SignerKey[]): string {
  const text = note.slice(0, note.indexOf('\n\n') + 1)
  const seconds = Math.floor(Date.now() / 1_000)
  return note + witnesses.map(witness => cosignatureLine(text, witness, seconds)).join('')
}

t.test('other people’s programs for transparency logs', { skip }, async t => {
  const log = await startLog(t, join(folder, 'log'))
  const { vkey, vrfPublicKey, http, client } = log
  const registerUser = (userId: number) => registerKey(client, BigInt(userId), 1n)
  const first = await Promise.all(Array.from({ length: 40 }, (_, at) => registerUser(at)))
  const checkpoint = await (await fetch(`${http}/checkpoint`)).text()
  const registered = [...first]
  for (let at = 40; at < KEYS; at++) registered.push(await registerUser(at))
  const found = await Promise.all(registered.map(({ vrfHash }) => lookUp(http, [vrfHash])))
  const lookups = found.map(([result], at) => ({
    name: `${at}_1`,
    entry: `${result!.vrfHash}\n${result!.publicKey}\n`,
    proof: result!.proof,
  }))
  const quorumOf = (members: string) =>
    `log ${vkey}\nwitness near ${vkeyOf(near)}\nwitness far ${vkeyOf(far)}\n${members}`
  const open = `log ${vkey}\nquorum none\n`
  const both = quorumOf('group both all near far\nquorum both\n')
  const ask = (task: object) =>
    run(JSON.stringify({ vkey, vrfPublicKey, checkpoint, policy: open, lookups, ...task }))

  t.test('take every proof, follow the log and rebuild it', async t => {
    const { code, stdout, stderr } = await ask({ url: http })
    t.equal(code, 0, stderr)
    const all = { proofs: KEYS, vrfProofs: KEYS, sameProofs: KEYS, followed: KEYS - 40, checked: KEYS }
    t.same(JSON.parse(stdout), { ...all, cosignatures: 0 })
  })

  t.test('count our cosignatures for a policy, and refuse a note that lacks one', async t => {
    const task = { lookups: [], policy: both }
    const whole = await ask({ ...task, url: await startCosigned(t, http, [near, far]) })
    t.equal(whole.code, 0, whole.stderr)
    t.match(JSON.parse(whole.stdout), { cosignatures: 2 })
    const half = await ask({ ...task, url: await startCosigned(t, http, [near]) })
    t.equal(half.code, 1)
    t.match(half.stderr, /policy: /)
    const bare = await ask({ policy: both, lookups: lookups.slice(0, 1) })
    t.match(bare.stderr, /0_1: /, 'a proof, too')
  })

  t.test('refuse the VRF proof of another person, and a bundle with one bit changed', async t => {
    const { name } = lookups[8]!
    const { code, stderr } = await ask({ lookups: [{ ...lookups[7]!, name }] })
    t.equal(code, 1)
    t.match(stderr, /VRF proof/)
    const url = await startCosigned(t, http, [], (path, bytes) => {
      if (path === '/tile/entries/000') bytes[100]! ^= 1
    })
    t.match((await ask({ lookups: [], url })).stderr, /fsck: /)
  })
})
