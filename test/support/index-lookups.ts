/**
 * Lookups in an index with the verdict of `@callsign/sdk/client` on each, for implementations in other languages:
 *
 *     node dist/test/support/index-lookups.js > test/vectors/index-lookups.json
 *
 * Each verdict that matters is written beside its case; any other is an error.
 */
import { pathToFileURL } from 'node:url'
import type { PublishedKeys, PublishedPolicy } from '../../src/client/client.ts'
import {
  type IndexProof,
  judgeCompleteness,
  type ShownEntry,
  verifyIndex,
} from '../../src/client/index-proof.ts'
import { type LogKeys, parseLogKeys } from '../../src/client/log-keys.ts'
import { formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { type SignerKey, signNote } from '../../src/log/note.ts'
import { flipBit, fromBase64, fromUtf8, toBase64 } from './bytes.ts'
import type { Client } from './client-builds.ts'
import { LyingIndex, type MapEntry } from './lying-index.ts'
import { LyingLog } from './lying-log.ts'

export interface IndexLookups {
  readonly remark: readonly string[]
  readonly keys: Readonly<Record<string, PublishedKeys | PublishedPolicy>>
  readonly cases: readonly IndexLookup[]
}

export interface IndexLookup {
  readonly name: string
  readonly keys: string
  readonly vrfHash: string
  readonly nowMs: number
  readonly maxIndexAgeMs: number
  /** Null where nothing is said to be under the hash. */
  readonly shown: ShownEntry | null
  readonly tail: readonly number[] | 'unread'
  readonly proof: unknown
  readonly verdict: string
}

const REMARK = [
  'Each case is one lookup in the index of a log, and the verdict on it.',
  'keys: by their name, what the app knows the log by: vkey and indexVkey, or the text of a policy; and the VRF key.',
  'vrfHash: the hash that was looked up, base64. proof: the indexProof of the answer, any JSON value.',
  'nowMs, maxIndexAgeMs: the clock, and how old the cosignatures of the output checkpoint may be.',
  'shown: the log entry of the answer and the tree size of its checkpoint; null where nothing is said to be under the hash.',
  'tail: the entries under the hash that the log has appended between the input checkpoint and that of the answer, or "unread".',
  'verdict: "refused at CHECK", "unanswered at CHECK", "tail-unread", or',
  '"complete [INDEXES] age AGE_MS|unknown proved|unproved". No pin is held against any checkpoint here.',
]

const NOW_MS = 1_790_000_000_000
const SEEN_S = NOW_MS / 1_000 - 60
const DAY_MS = 86_400_000

const [w1, w2, r1] = ['w1', 'w2', 'r1'].map((name, at) =>
  witnessKeyFromSeed(name, new Uint8Array(32).fill(0x40 + at)),
) as [SignerKey, SignerKey, SignerKey]

/** Alice is leaf 3 and again 20, Bob leaf 7, Carol leaf 41; Dora is in no leaf. */
const log = new LyingLog()
log.grow(3)
log.register(1n, 1n)
log.grow(7)
log.register(2n, 1n)
log.grow(20)
log.register(1n, 1n)
log.grow(41)
log.register(3n, 1n)
log.grow(45)
const [alice, bob, carol, dora] = [1n, 2n, 3n, 4n].map(userId => log.identity(userId, 1n).vrfHash) as [
  string,
  string,
  string,
  string,
]
const stranger = new LyingLog({ number: 2 })
const index = new LyingIndex(log.signer.name)
for (const treeSize of [5, 25, 30, 40]) index.append(log, { treeSize })

const { vkey, vrfPublicKey } = log.published
const witnessLine = (key: SignerKey) => `witness ${key.name} ${formatWitnessKey(key)}\n`
const logLines = `log ${vkey}\nlog ${index.vkey}\n`
const witnessLines = [w1, w2, r1].map(witnessLine).join('')

export const INDEX_KEYS: Readonly<Record<string, PublishedKeys | PublishedPolicy>> = {
  plain: { vkey, vrfPublicKey, indexVkey: index.vkey },
  otherKey: { vkey, vrfPublicKey, indexVkey: new LyingIndex(log.signer.name, 6).vkey },
  unwitnessed: { policy: `${logLines}quorum none\n`, vrfPublicKey },
  twoKeys: {
    policy: `log ${vkey}\nlog ${new LyingIndex(log.signer.name, 6).vkey}\nlog ${index.vkey}\nquorum none\n`,
    vrfPublicKey,
  },
  witnessed: { policy: `${logLines}${witnessLines}group two all w1 w2\nquorum two\n`, vrfPublicKey },
  rebuilt: {
    policy: `${logLines}${witnessLines}group two all w1 w2\ngroup rebuilders any r1\nquorum two\n`,
    vrfPublicKey,
  },
}

interface Given {
  readonly vrfHash?: string
  readonly keys?: string
  readonly proof?: unknown
  readonly shown?: ShownEntry | null
  readonly tail?: readonly number[] | 'unread'
  readonly nowMs?: number
  readonly maxIndexAgeMs?: number
}

const cosigned = {
  quorum: [
    [w1, SEEN_S - 30],
    [w2, SEEN_S],
  ],
  half: [[w1, SEEN_S]],
  rebuilder: [[r1, SEEN_S]],
  old: [
    [w1, SEEN_S - 86_400],
    [w2, SEEN_S],
  ],
  future: [[r1, SEEN_S + 600]],
  twice: [
    [r1, SEEN_S - 90_000],
    [r1, SEEN_S - 5],
  ],
} as const

const honest = index.proof(alice)

function withNote(note: string): IndexProof {
  return { ...honest, output_log_cp: toBase64(fromUtf8(note)) }
}

function witnessed(by: keyof typeof cosigned): IndexProof {
  return index.proof(alice, index.size, index.note(index.size, cosigned[by]))
}

/** A lookup in an index with a lie as its newest leaf. */
function lying(lies: Parameters<LyingIndex['append']>[1], vrfHash = alice): IndexProof {
  return index.fork().append(log, lies).proof(vrfHash)
}

function flipped(member: 'output_log_cp' | 'output_log_leaf' | 'index_proof', bit: number): IndexProof {
  return { ...honest, [member]: toBase64(flipBit(fromBase64(honest[member]), bit)) }
}

function flippedPath(at: number): IndexProof {
  const path = honest.output_log_proof.map(hash => [...hash])
  path[at]![31]! ^= 1
  return { ...honest, output_log_proof: path }
}

const without = (left: number) => (entries: readonly MapEntry[]) =>
  entries.filter(each => each.index !== left)
const SHOWN = { index: 20, treeSize: 45 }
const ABSENT = { vrfHash: dora, shown: null }
const COMPLETE = 'complete [3,20] age unknown unproved'
const REFUSED = 'refused at completeness'
/** With so many unknown signatures that a leaf of it has more than 65,535 octets. */
const LONG_NOTE = log.note(40) + `— x ${toBase64(new Uint8Array(600))}\n`.repeat(61)
const leafText = Buffer.from(honest.output_log_leaf, 'base64').toString()

const CASES: Readonly<Record<string, readonly [Given, string]>> = {
  'several entries, the newest shown': [{}, COMPLETE],
  'one entry': [
    { vrfHash: bob, proof: index.proof(bob), shown: { index: 7, treeSize: 45 } },
    'complete [7] age unknown unproved',
  ],
  'no entry': [{ ...ABSENT, proof: index.proof(dora) }, 'complete [] age unknown unproved'],
  'no entry in a map of one key': [
    { ...ABSENT, proof: index.fork(0).append(log, { treeSize: 1 }).proof(dora) },
    'complete [] age unknown unproved',
  ],
  'no entry in an empty map': [
    { ...ABSENT, proof: index.fork(0).append(log, { treeSize: 0 }).proof(dora) },
    'complete [] age unknown unproved',
  ],
  'one entry, in the tail only': [
    { vrfHash: carol, proof: index.proof(carol), shown: { index: 41, treeSize: 45 }, tail: [41] },
    'complete [41] age unknown unproved',
  ],
  'the newest entry is in the tail': [
    { tail: [44], shown: { index: 44, treeSize: 45 } },
    'complete [3,20,44] age unknown unproved',
  ],
  'the only leaf of the output log': [
    { proof: index.fork(0).append(log, { treeSize: 40 }).proof(alice) },
    COMPLETE,
  ],
  'the index is ahead of the answer': [{ shown: { index: 20, treeSize: 32 } }, COMPLETE],
  'an older entry is shown': [{ shown: { index: 3, treeSize: 45 } }, REFUSED],
  'an entry of the tail is left out': [{ tail: [44] }, REFUSED],
  'an older entry in an answer from before the newer one': [
    { shown: { index: 3, treeSize: 18 } },
    'unanswered at stale',
  ],
  'the index leaves out the entry shown': [{ proof: lying({ entries: without(20) }), shown: SHOWN }, REFUSED],
  'the index leaves out an entry from before the one shown': [
    { proof: lying({ entries: without(3) }) },
    'complete [20] age unknown unproved',
  ],
  'an entry from before the one shown, in an old answer': [
    { proof: lying({ entries: without(3) }), shown: { index: 3, treeSize: 18 } },
    REFUSED,
  ],
  'nothing is said to be there, and there is': [{ shown: null }, REFUSED],
  'nothing is said to be there, and the tail has one': [
    { ...ABSENT, vrfHash: carol, proof: index.proof(carol), tail: [41] },
    REFUSED,
  ],
  'something is shown, and the index has nothing': [
    { vrfHash: dora, proof: index.proof(dora), shown: { index: 20, treeSize: 45 } },
    REFUSED,
  ],
  'the tail is unread': [{ tail: 'unread' }, 'tail-unread'],
  'the tail is unread, and shows the entry': [
    { tail: 'unread', shown: { index: 42, treeSize: 45 } },
    'tail-unread',
  ],
  'the tail is unread, and the first entry in it shown': [
    { vrfHash: carol, proof: index.proof(carol), shown: { index: 41, treeSize: 45 }, tail: 'unread' },
    'tail-unread',
  ],
  'the tail is unread, and an older entry is shown': [
    { tail: 'unread', shown: { index: 3, treeSize: 45 } },
    REFUSED,
  ],
  'the tail is unread, and nothing is said to be there': [
    { ...ABSENT, proof: index.proof(dora), tail: 'unread' },
    'tail-unread',
  ],

  'a key of the index that is not the app’s': [{ keys: 'otherKey' }, 'refused at signature'],
  'the second of two keys': [{ keys: 'twoKeys' }, COMPLETE],
  'the signature of the log’s own key': [
    { proof: withNote(signNote(`${index.note().split('\n\n')[0]}\n`, [log.signer])) },
    'refused at signature',
  ],
  'the log’s own checkpoint': [{ proof: withNote(log.note()) }, 'refused at origin'],
  'an output checkpoint without signatures': [
    { proof: withNote(index.note().split('\n\n')[0]!) },
    'refused at checkpoint',
  ],
  'an output checkpoint that is no text': [
    { proof: { ...honest, output_log_cp: toBase64(Uint8Array.of(0xff, 0x0a)) } },
    REFUSED,
  ],
  'an empty output log': [{ proof: withNote(index.fork(0).note()) }, REFUSED],
  'an older leaf with its own checkpoint': [{ proof: index.proof(alice, 3) }, COMPLETE],
  'an older leaf under the newest checkpoint': [
    { proof: { ...honest, output_log_leaf: index.proof(alice, 3).output_log_leaf } },
    REFUSED,
  ],
  'the input checkpoint of another log': [
    { proof: lying({ inputNote: new LyingLog({ origin: 'other.example/kt' }).note(0) }) },
    'refused at origin',
  ],
  'an input checkpoint that the log has not signed': [
    { proof: lying({ inputNote: stranger.note(0) }) },
    'refused at signature',
  ],
  'an input checkpoint that is no note': [
    { proof: lying({ inputNote: `${log.signer.name}\n` }) },
    'refused at checkpoint',
  ],
  'a map over more than its input checkpoint': [
    { proof: lying({ treeSize: 45, inputNote: log.note(20) }) },
    REFUSED,
  ],
  'a leaf that is another JSON text': [
    { proof: lying({ bytes: fromUtf8(leafText.replace('{', '{ ')) }) },
    REFUSED,
  ],
  'a leaf with one number of its root left out': [
    { proof: lying({ bytes: fromUtf8(leafText.replace(/,[0-9]+\]/, ']')) }) },
    REFUSED,
  ],
  'a leaf with a number that is no octet': [
    { proof: lying({ bytes: fromUtf8(leafText.replace(/,[0-9]+\]/, ',256]')) }) },
    REFUSED,
  ],
  'an empty leaf': [{ proof: lying({ bytes: new Uint8Array(0) }) }, REFUSED],
  'another list of entries': [{ proof: { ...honest, index_value: [3] } }, REFUSED],
  'no entries, and the proof of some': [{ proof: { ...honest, index_value: [] }, shown: null }, REFUSED],
  'entries, and the proof of none': [
    { vrfHash: dora, proof: { ...index.proof(dora), index_value: [20] } },
    REFUSED,
  ],
  'the lookup of another hash': [{ proof: index.proof(bob), shown: { index: 7, treeSize: 45 } }, REFUSED],
  'the absence of another hash': [{ vrfHash: alice, proof: index.proof(dora), shown: null }, REFUSED],
  'a path of another leaf': [
    { proof: { ...honest, output_log_proof: index.proof(alice, 3).output_log_proof } },
    REFUSED,
  ],
  'a path with one hash too many': [
    {
      proof: {
        ...honest,
        output_log_proof: [...honest.output_log_proof, honest.output_log_proof[0]!],
      },
    },
    REFUSED,
  ],
  'a path with a flipped bit': [{ proof: flippedPath(0) }, REFUSED],
  'a map proof cut off': [
    { proof: { ...honest, index_proof: toBase64(fromBase64(honest.index_proof).subarray(0, -1)) } },
    REFUSED,
  ],
  'a map proof without steps': [{ proof: { ...honest, index_proof: '' } }, REFUSED],

  'no proof': [{ proof: null }, REFUSED],
  'a text': [{ proof: 'proof' }, REFUSED],
  'an empty object': [{ proof: {} }, REFUSED],
  'a proof with a further member': [{ proof: { ...honest, more: 1 } }, COMPLETE],
  'entries out of order': [{ proof: { ...honest, index_value: [20, 3] } }, REFUSED],
  'an entry twice': [{ proof: { ...honest, index_value: [3, 20, 20] } }, REFUSED],
  'a negative entry': [{ proof: { ...honest, index_value: [-3, 20] } }, REFUSED],
  'an entry beyond 2^53': [{ proof: { ...honest, index_value: [3, 2 ** 53] } }, REFUSED],
  'an entry that is half a number': [{ proof: { ...honest, index_value: [3.5, 20] } }, REFUSED],
  'an entry that is a text': [{ proof: { ...honest, index_value: ['3', 20] } }, REFUSED],
  'entries that are no list': [{ proof: { ...honest, index_value: null } }, REFUSED],
  'a hash of 31 octets': [{ proof: { ...honest, output_log_proof: [Array(31).fill(0)] } }, REFUSED],
  'a hash with a number that is no octet': [
    { proof: { ...honest, output_log_proof: [Array(32).fill(256)] } },
    REFUSED,
  ],
  'a path that is no list': [{ proof: { ...honest, output_log_proof: null } }, REFUSED],
  'a path of 64 hashes': [
    { proof: { ...honest, output_log_proof: Array(64).fill(Array(32).fill(0)) } },
    REFUSED,
  ],
  'a member that is not base64': [{ proof: { ...honest, index_proof: '!' } }, REFUSED],
  'base64 that is not canonical': [{ proof: { ...honest, index_proof: 'AB==' } }, REFUSED],
  'a leaf that is too long': [{ proof: lying({ treeSize: 40, inputNote: LONG_NOTE }) }, REFUSED],

  'no time without a quorum': [{ keys: 'unwitnessed' }, COMPLETE],
  'the quorum has not cosigned': [{ keys: 'witnessed' }, 'refused at witnesses'],
  'half of the quorum has cosigned': [
    { keys: 'witnessed', proof: witnessed('half') },
    'refused at witnesses',
  ],
  'the quorum has cosigned': [
    { keys: 'witnessed', proof: witnessed('quorum') },
    'complete [3,20] age 90000 unproved',
  ],
  'the quorum is as old as its last member': [
    { keys: 'witnessed', proof: witnessed('old'), maxIndexAgeMs: 2 * DAY_MS },
    'complete [3,20] age 86460000 unproved',
  ],
  'the cosignatures are too old': [{ keys: 'witnessed', proof: witnessed('old') }, 'refused at stale'],
  'one at exactly the age': [
    { keys: 'witnessed', proof: witnessed('quorum'), maxIndexAgeMs: 90_000 },
    'complete [3,20] age 90000 unproved',
  ],
  'one a millisecond older': [
    { keys: 'witnessed', proof: witnessed('quorum'), maxIndexAgeMs: 89_999 },
    'refused at stale',
  ],
  'a rebuilder has cosigned': [
    { keys: 'rebuilt', proof: witnessed('rebuilder') },
    'complete [3,20] age 60000 proved',
  ],
  'a rebuilder has cosigned twice': [
    { keys: 'rebuilt', proof: witnessed('twice') },
    'complete [3,20] age 65000 proved',
  ],
  'a clock ahead of the app’s': [
    { keys: 'rebuilt', proof: witnessed('future') },
    'complete [3,20] age 0 proved',
  ],
  'the quorum of the log does not stand for the rebuilders': [
    { keys: 'rebuilt', proof: witnessed('quorum') },
    'refused at witnesses',
  ],
  'a cosignature of another checkpoint': [
    {
      keys: 'rebuilt',
      proof: withNote(
        index.note() +
          index
            .note(3, cosigned.rebuilder)
            .split('\n')
            .find(line => line.startsWith('— r1'))! +
          '\n',
      ),
    },
    'refused at witnesses',
  ],
  'the log’s own checkpoint needs no cosignature here': [
    { keys: 'rebuilt', proof: witnessed('rebuilder'), shown: { index: 20, treeSize: 40 } },
    'complete [3,20] age 60000 proved',
  ],
}

/** Bits of every member, turned over one by one. */
function* flips(): Generator<readonly [string, IndexProof]> {
  for (const member of ['output_log_cp', 'output_log_leaf', 'index_proof'] as const) {
    const bits = 8 * fromBase64(honest[member]).length
    for (let part = 0; part < 12; part++) {
      const bit = Math.floor(((part + 0.5) * bits) / 12)
      yield [`bit ${bit} of ${member}`, flipped(member, bit)]
    }
  }
}

/** The facts that a lookup is judged by. */
export type IndexClaim = Omit<IndexLookup, 'verdict' | 'name' | 'keys'>

/** `client` is the module as Node loads it, or as it is bundled for a browser. */
export function verdictOn(
  keys: LogKeys,
  { vrfHash, proof, nowMs, maxIndexAgeMs, tail, shown }: IndexClaim,
  client: Pick<Client, 'verifyIndex' | 'judgeCompleteness'> = { verifyIndex, judgeCompleteness },
): string {
  const withIndex = { ...keys, index: keys.index! }
  const verified = client.verifyIndex(withIndex, vrfHash, proof, { nowMs, maxAgeMs: maxIndexAgeMs })
  if (verified.kind === 'refused') return `refused at ${verified.check}`
  const { isRebuilt: isProved } = withIndex.index
  const judged = client.judgeCompleteness({ isProved, index: verified }, tail, shown ?? undefined)
  if (judged.kind !== 'judged') return `${judged.kind} at ${judged.check}`
  const { completeness } = judged
  if (completeness.complete !== true) return completeness.complete
  const { indexes, indexAgeMs } = completeness
  return `complete [${indexes}] age ${indexAgeMs} ${completeness.isProved ? 'proved' : 'unproved'}`
}

function judged(name: string, given: Given): IndexLookup {
  const lookup = {
    keys: 'plain',
    vrfHash: alice,
    nowMs: NOW_MS,
    maxIndexAgeMs: DAY_MS,
    shown: SHOWN,
    tail: [],
    proof: honest,
    ...given,
  }
  return { name, ...lookup, verdict: verdictOn(parseLogKeys(INDEX_KEYS[lookup.keys]!), lookup) }
}

export function indexLookups(): IndexLookups {
  const cases = Object.entries(CASES).map(([name, [given, expected]]) => {
    const found = judged(name, given)
    if (found.verdict !== expected) throw new Error(`${name}: ${found.verdict}, not ${expected}`)
    return found
  })
  for (const [name, proof] of flips()) {
    const found = judged(name, { proof })
    if (!found.verdict.startsWith('refused at')) throw new Error(`${name}: ${found.verdict}`)
    cases.push(found)
  }
  return { remark: REMARK, keys: INDEX_KEYS, cases }
}

/** One case a line. */
export function formatIndexLookups({ remark, keys, cases }: IndexLookups): string {
  const lines = cases.map(each => `  ${JSON.stringify(each)}`).join(',\n')
  return `{\n "remark": ${JSON.stringify(remark, null, 2)},\n "keys": ${JSON.stringify(keys, null, 2)},\n "cases": [\n${lines}\n ]\n}\n`
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href)
  process.stdout.write(formatIndexLookups(indexLookups()))
