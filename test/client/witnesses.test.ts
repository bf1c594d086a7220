/** A client that wants witnesses to have seen what the log shows it. */
import t from 'tap'
import {
  LogClient,
  MemoryStore,
  parseLogKeys,
  verifyCheckpoint,
  verifyWitnesses,
} from '../../src/client/client.ts'
import { cosignatureLine, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { type SignerKey, signNote } from '../../src/log/note.ts'
import { encodeBase64 } from '../../src/log/primitives-node.ts'
import { type LyingFetch, LyingLog } from '../support/lying-log.ts'

const log = new LyingLog()
log.grow(3)
log.register(1n, 1n)
const ann = { userId: '1', deviceId: '1', vrfHash: log.leaf(3).vrfHash }
const witnesses = [2, 3, 4].map(number => witnessKeyFromSeed(`w${number}`, new Uint8Array(32).fill(number)))
const stranger = witnessKeyFromSeed('w2', new Uint8Array(32).fill(9))
const { vkey, vrfPublicKey } = log.published
const policy = `log ${vkey}\n${witnesses.map(line).join('')}group two 2 w2 w3 w4\nquorum two\n`
const keys = parseLogKeys({ policy, vrfPublicKey })
const NOW_S = Math.floor(Date.now() / 1_000)

function line({ name, keyId, publicKey }: SignerKey): string {
  const id = keyId.toString(16).padStart(8, '0')
  return `witness ${name} ${name}+${id}+${encodeBase64(Uint8Array.of(4, ...publicKey))}\n`
}

/** The log's checkpoint with cosignatures, each of a witness at a time. */
function noteBy(...by: readonly (readonly [SignerKey, number])[]): string {
  const note = log.note()
  const text = note.slice(0, note.indexOf('\n\n') + 1)
  return note + by.map(([witness, seconds]) => cosignatureLine(text, witness, seconds)).join('')
}

function clientOf(note: string, options: { maxAgeMs?: number } = {}): LogClient {
  const fetch = log.fetch(path => {
    if (path === 'checkpoint') return note
    return path === 'api/get-public-keys' ? { results: [log.result(3, { note })] } : undefined
  }) as LyingFetch
  return new LogClient({
    policy,
    vrfPublicKey,
    url: 'https://log.example',
    fetch: fetch as never,
    store: new MemoryStore(),
    ...options,
  })
}

const [w2, w3, w4] = witnesses as [SignerKey, SignerKey, SignerKey]

t.test('a checkpoint that the quorum has cosigned is good; any other one is refused', async t => {
  const fresh = { nowMs: 1_000_000 }
  const outcome = (note: string) => verifyWitnesses(keys, note, fresh)
  t.same(outcome(noteBy([w2, 700], [w4, 900])), { kind: 'witnessed', atMs: 700_000 })
  t.same(outcome(noteBy([w2, 700], [w4, 900], [w3, 800])), { kind: 'witnessed', atMs: 800_000 })
  t.same(outcome(noteBy([w2, 100], [w2, 700], [w4, 900])), { kind: 'witnessed', atMs: 700_000 })
  for (const note of [
    noteBy(),
    noteBy([w2, 700]),
    noteBy([w2, 700], [w2, 800]),
    noteBy([w2, 700], [stranger, 800]),
    noteBy([w2, 700]) + cosignatureLine('another text\n', w3, 800),
  ])
    t.match(outcome(note), { kind: 'refused', check: 'witnesses', detail: /quorum two/ })
  t.match(outcome(new LyingLog({ number: 2 }).note()), { kind: 'refused', check: 'signature' })
  t.same(verifyWitnesses(parseLogKeys(log.published), noteBy(), fresh), {
    kind: 'witnessed',
    atMs: undefined,
  })
})

t.test('a checkpoint that the quorum saw too long ago is stale', async t => {
  const note = noteBy([w2, 700], [w4, 900])
  t.match(verifyWitnesses(keys, note, { nowMs: 760_000, maxAgeMs: 60_000 }), { kind: 'witnessed' })
  const late = verifyWitnesses(keys, note, { nowMs: 760_001, maxAgeMs: 60_000 })
  t.match(late, { kind: 'refused', check: 'stale', detail: /60 s ago/ })
})

t.test('a client takes no answer without its witnesses, nor an old one played again', async t => {
  const good = clientOf(noteBy([w2, NOW_S], [w3, NOW_S]), { maxAgeMs: 3_600_000 })
  t.match(await good.lookUp(ann), { kind: 'verified' })
  t.match(await good.refreshCheckpoint(), { kind: 'verified' })
  for (const [note, check] of [
    [noteBy([w2, NOW_S]), 'witnesses'],
    [noteBy([w2, NOW_S], [w3, NOW_S - 7_200]), 'stale'],
  ] as const) {
    const client = clientOf(note, { maxAgeMs: 3_600_000 })
    t.match(await client.lookUp(ann), { kind: 'refused', check })
    t.match(await client.refreshCheckpoint(), { kind: 'refused', check })
    t.equal(await client.highestCheckpoint(), undefined, 'it is not the highest one seen')
    // Between two clients the log's own signature is evidence enough.
    t.match(await client.compareWith(note), { kind: 'verified' })
  }
})

t.test('a policy for a client has one log, and an age needs a quorum', async t => {
  const refused = (options: object, code: string) =>
    t.throws(() => new LogClient({ url: 'https://log.example', vrfPublicKey, ...options } as never), { code })
  refused({ policy: 'quorum none\n' }, 'MALFORMED')
  refused(
    { policy: `log ${vkey}\nlog ${new LyingLog({ origin: 'other.example' }).published.vkey}\nquorum none\n` },
    'MALFORMED',
  )
  refused({ policy: `log ${vkey}\nquorum none\n`, maxAgeMs: 1 }, 'KEY_INVALID')
  refused({ vkey, maxAgeMs: 1 }, 'KEY_INVALID')
})

t.test(
  'while a log changes its key, either key will do, and a false signature by one of them will not',
  async t => {
    const [old, next] = [log, new LyingLog({ number: 2 })]
    const policy = `log ${next.published.vkey}\nlog ${vkey}\nquorum none\n`
    const keys = parseLogKeys({ policy, vrfPublicKey })
    const text = old.note().split('\n\n')[0]!
    const byBoth = signNote(`${text}\n`, [old.signer, next.signer])
    for (const note of [old.note(), signNote(`${text}\n`, [next.signer]), byBoth])
      t.match(verifyCheckpoint(keys, note), { kind: 'verified' })
    const stranger = new LyingLog({ number: 3 }).signer
    t.match(verifyCheckpoint(keys, signNote(`${text}\n`, [stranger])), { check: 'signature' })
    const broken = byBoth.replace(/.{4}\n$/, 'AAA=\n')
    t.match(verifyCheckpoint(keys, broken), { kind: 'refused' })
  },
)
