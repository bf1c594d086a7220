/**
 * The witness: the published requests with their statuses (c2sp.org/tlog-witness), several at once, and a kill between two.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseLogList } from '../../scripts/witness/log-list.ts'
import { formatAddCheckpoint, parseAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { formatCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { cosignedAtSeconds, parseWitnessKey } from '../../src/log/cosignature.ts'
import {
  formatVerifierKey,
  parseSignerKey,
  readNote,
  signerKeyFromSeed,
  signNote,
} from '../../src/log/note.ts'
import { codeOf } from '../support/codes.ts'
import { runScript } from '../support/commands.ts'
import { NaiveTree, naiveLeafHash } from '../support/naive-tree.ts'
import { bySize, sized } from '../support/size.ts'
import { readVectors } from '../support/vectors.ts'
import { type RunningWitness, startWitness, witnessKeyText } from '../support/witness-process.ts'

interface Step {
  readonly request_body: string
  readonly status_current_spec: number
  readonly body_contains?: string
  readonly body_equals?: string
}

interface WitnessVectors {
  readonly litewitness: {
    readonly log_vkey: string
    readonly witness_name: string
    readonly steps: readonly Step[]
  }
  readonly sumdb: { readonly log_vkey: string; readonly origin: string; readonly request_body: string }
  readonly zero_size: { readonly cases: readonly { readonly case: string; readonly status: number }[] }
  readonly request_format: {
    readonly old_size: number
    readonly proof_base64: readonly string[]
    readonly body: string
  }
}

interface GoldenLog {
  readonly vkey: string
  readonly checkpoints: readonly string[]
  readonly leaf_hashes_base64: readonly string[]
}

const vectors = readVectors<WitnessVectors>('witness-add-checkpoint')
const signer = signerKeyFromSeed('any.example/log', new Uint8Array(32).fill(7))
const leafHashes = Array.from({ length: 300 }, (_, index) => naiveLeafHash(Buffer.from(`leaf ${index}`)))
const tree = new NaiveTree(leafHashes)
const fork = new NaiveTree([naiveLeafHash(Buffer.from('other')), ...leafHashes.slice(1)])
/** The same to size 5. */
const laterFork = new NaiveTree(leafHashes.with(5, leafHashes[0]!))

/** A request with a checkpoint of the tree; only the given members differ from a good one. */
function requestOf(
  oldSize: number,
  treeSize: number,
  { of = tree, proof = oldSize === 0 || oldSize === treeSize ? [] : of.consistency(oldSize, treeSize) } = {},
): string {
  const note = signCheckpoint({ treeSize, rootHash: of.root(0, treeSize) }, signer)
  return formatAddCheckpoint({ oldSize, proof, note })
}

async function post(
  http: string,
  body: string | Uint8Array,
): Promise<{ status: number; type: string | null; text: string }> {
  const answer = await fetch(`${http}/add-checkpoint`, { method: 'POST', body })
  return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() }
}

function ownWitness(t: Test, folder: string = t.testdir(), port = 0): Promise<RunningWitness> {
  return startWitness(t, { folder, name: 'witness.example', logs: [formatVerifierKey(signer)], port })
}

t.test('the published requests get their statuses, and a cosignature that verifies', async t => {
  const { log_vkey, witness_name, steps } = vectors.litewitness
  const witness = await startWitness(t, { folder: t.testdir(), name: witness_name, logs: [log_vkey] })
  for (const { request_body, status_current_spec, body_contains, body_equals } of steps) {
    const { status, text, type } = await post(witness.http, request_body)
    t.equal(status, status_current_spec)
    if (body_equals !== undefined) t.same({ text, type }, { text: body_equals, type: 'text/x.tlog.size' })
    if (status !== 200) continue
    t.ok(text.startsWith(body_contains!))
    const note = parseAddCheckpoint(request_body).note + text
    const { text: checkpoint, signatures } = readNote(note)
    t.type(
      cosignedAtSeconds(checkpoint, parseWitnessKey(witness.vkey), signatures.at(-1)!.signature),
      'number',
    )
  }
})

t.test('a request is read and written as sigsum does it', async t => {
  const { old_size, proof_base64, body } = vectors.request_format
  const { oldSize, proof, note } = parseAddCheckpoint(body)
  t.equal(oldSize, old_size)
  t.same(
    proof.map(hash => Buffer.from(hash).toString('base64')),
    proof_base64,
  )
  t.equal(formatAddCheckpoint({ oldSize, proof, note }), body)
})

t.test(
  'a log whose origin is not its key’s name is cosigned for, from a list of the witness network',
  async t => {
    const { log_vkey, origin, request_body } = vectors.sumdb
    const folder = t.testdir()
    const list = `# ours\nlogs/v0\n\nvkey ${log_vkey}\nqpd 86400\ncontact sum@example\norigin ${origin}\n`
    t.same([...parseLogList(list).keys()], [origin])
    const witness = await startWitness(t, { folder, name: 'witness.example', logs: [], list })
    t.equal((await post(witness.http, request_body)).status, 200)
  },
)

t.test('sizes from zero on: each request gets the status of the published table', async t => {
  const emptyWith = (rootHash: Uint8Array) => {
    const text = formatCheckpoint({ origin: signer.name, treeSize: 0, rootHash, extensions: [] })
    return formatAddCheckpoint({ oldSize: 0, proof: [], note: signNote(text, [signer]) })
  }
  const any = leafHashes[0]!
  const requests: Readonly<Record<string, string>> = {
    'empty tree with another root': emptyWith(any),
    'empty tree with an all-zero root': emptyWith(new Uint8Array(32)),
    'empty tree with a proof line': requestOf(0, 0, { proof: [any] }),
    'empty tree with the empty-tree root, old 0, no proof': requestOf(0, 0),
    'first non-empty tree with a proof line': requestOf(0, 5, { proof: [any] }),
    'first non-empty tree, old 0, no proof': requestOf(0, 5),
    'old 0 sent while the witness knows a non-empty tree': requestOf(0, 6),
    'old size above the checkpoint size': requestOf(7, 7).replace('old 7', 'old 8'),
    'more than 63 proof lines': requestOf(5, 7, { proof: Array.from({ length: 64 }, () => any) }),
  }
  const { http } = await ownWitness(t)
  const expected = new Map(vectors.zero_size.cases.map(each => [each.case, each.status]))
  t.same(Object.keys(requests).sort(), [...expected.keys()].sort())
  for (const [name, body] of Object.entries(requests))
    t.equal((await post(http, body)).status, expected.get(name), name)
})

t.test('one size with one root is cosigned again, and with another root never', async t => {
  const { http } = await ownWitness(t)
  t.equal((await post(http, requestOf(0, 5))).status, 200)
  t.equal((await post(http, requestOf(5, 5))).status, 200)
  t.equal((await post(http, requestOf(5, 5, { of: fork }))).status, 422)
  t.equal((await post(http, requestOf(5, 9, { of: fork }))).status, 422)
  t.equal((await post(http, requestOf(5, 9))).status, 200)
})

t.test('a body that is no request is refused, and the next one is answered', async t => {
  const { http } = await ownWitness(t)
  const good = requestOf(0, 5)
  for (const [body, status] of [
    ['', 400],
    [good.replace('old 0', 'old 00'), 400],
    [good.replace('old 0', 'old 9007199254740992'), 400],
    [good.replace('old 0', 'new 0'), 400],
    [good.replace('old 0\n', 'old 0\nAAAA\n'), 400],
    [Buffer.concat([Buffer.from(good), Uint8Array.of(0xff)]), 400],
    [good.replaceAll('any.example/log', 'other.example/log'), 404],
    [good.replace('\n5\n', '\n6\n'), 403],
    [good + 'x'.repeat(70_000), 413],
    [good, 200],
  ] as const)
    t.equal((await post(http, body)).status, status, body.toString().slice(0, 20))
  t.equal((await fetch(`${http}/add-checkpoint`)).status, 405)
  t.equal((await fetch(`${http}/`)).status, 404)
})

t.test('monitors find the newest cosigned checkpoint under the hash of the origin', async t => {
  const { http, vkey } = await ownWitness(t)
  const hash = 'e3dcc1a0c2f1'
  t.equal((await fetch(`${http}/${hash}/checkpoint`)).status, 404)
  const url = `${http}/${await hexSha256(signer.name)}/checkpoint`
  t.equal((await fetch(url)).status, 404)
  await post(http, requestOf(0, 5))
  const { text: line } = await post(http, requestOf(5, 8))
  const note = await (await fetch(url)).text()
  t.equal(note, parseAddCheckpoint(requestOf(5, 8)).note + line)
  t.ok(line.startsWith(`\u2014 ${vkey.split('+')[0]} `))
})

t.test('forks that come at once: one is cosigned, whatever the order', async t => {
  const { http } = await ownWitness(t)
  await post(http, requestOf(0, 5))
  const sizes = Array.from({ length: 20 }, (_, at) => 6 + at)
  const answers = await Promise.all(
    sizes.flatMap(size => [tree, laterFork].map(of => post(http, requestOf(5, size, { of })))),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array.from({ length: 39 }, () => 409)])
})

t.test('killed at any moment, it never cosigns a fork of what it has answered', sized(), async t => {
  const folder = t.testdir()
  let witness = await ownWitness(t, folder)
  const inOrder = bySize({ short: 1, long: 3 })
  let size = 0
  for (let round = 0; round < 2 * inOrder; round++) {
    const next = size + 7
    const answered = post(witness.http, requestOf(size, next)).catch(() => undefined)
    // The first half waits for the answer, the second kills it on the way.
    const cosigned = round < inOrder ? await answered : undefined
    await witness.end('SIGKILL')
    await answered
    witness = await ownWitness(t, folder)
    const { status, text } = await post(witness.http, requestOf(next, next, { of: fork }))
    if (cosigned !== undefined) t.equal(status, 422)
    t.notSame(status, 200)
    size = status === 409 ? Number(text) : next
    t.equal((await post(witness.http, requestOf(size, size))).status, 200)
  }
})

t.test('its key is made once, and another name or a second process is refused', async t => {
  const folder = t.testdir()
  const witness = await ownWitness(t, folder)
  const key = witnessKeyText(folder)
  t.equal(statSync(join(folder, 'key')).mode & 0o777, 0o600)
  const flags = [
    '--key',
    join(folder, 'key'),
    '--logs',
    join(folder, 'logs'),
    '--data-dir',
    join(folder, 'data'),
  ]
  const second = await runScript('witness', flags)
  t.match(second, { code: 2, stderr: /in use by process/ })
  await witness.end()
  const renamed = await runScript('witness', [...flags, '--name', 'other.example'])
  t.match(renamed, { code: 2, stderr: /is of another name than --name other\.example/ })
  const again = await ownWitness(t, folder)
  t.equal(again.vkey, witness.vkey)
  t.equal(parseSignerKey(witnessKeyText(folder)).name, 'witness.example')
  t.equal(witnessKeyText(folder), key)
  const keyless = await runScript('witness', [...flags.slice(2), '--key', join(folder, 'none')])
  t.match(keyless, { code: 2, stderr: /can't be read .*--name NAME makes one/ })
})

t.test('a list without logs, with a log twice, or with other lines is refused', async t => {
  const vkey = formatVerifierKey(signer)
  for (const list of [
    'quorum none\n',
    'logs/v0\n',
    `logs/v0\nvkey ${vkey}\nvkey ${vkey}\n`,
    `logs/v0\norigin a\nvkey ${vkey}\n`,
    `logs/v0\nvkey ${vkey}\nnonsense\n`,
    `log ${vkey}\n`,
  ])
    t.equal(
      codeOf(() => parseLogList(list)),
      'MALFORMED',
      list,
    )
  t.equal(
    codeOf(() => parseLogList(`logs/v0\nvkey ${vkey}x\n`)),
    'KEY_INVALID',
  )
  t.same([...parseLogList(`log ${vkey} https://any.example\nquorum none\n`).keys()], [signer.name])
})

async function hexSha256(text: string): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(text))).toString('hex')
}

t.test('a log of Tessera is cosigned size by size', async t => {
  const { vkey, checkpoints, leaf_hashes_base64 } = readVectors<GoldenLog>('tessera-golden-log')
  const golden = new NaiveTree(leaf_hashes_base64.map(hash => Buffer.from(hash, 'base64')))
  const { http } = await startWitness(t, { folder: t.testdir(), name: 'witness.example', logs: [vkey] })
  const statuses: number[] = []
  for (const [size, note] of checkpoints.entries()) {
    const oldSize = Math.max(0, size - 1)
    const proof = oldSize === 0 ? [] : golden.consistency(oldSize, size)
    statuses.push((await post(http, formatAddCheckpoint({ oldSize, proof, note }))).status)
  }
  t.same(
    statuses,
    checkpoints.map(() => 200),
  )
  t.equal(statuses.length, 16)
})
