/** Whole values that a corpus of verdicts begins from: what an honest log serves, and what lying ones sign. */

import { packCallKey } from '../../src/client/call-key-content.ts'
import { shareFragment } from '../../src/client/comparison.ts'
import { consistencyFromTiles } from '../../src/client/tile-consistency.ts'
import { cosignatureLine, formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { deviceListHash } from '../../src/log/device-list.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import { type SignerKey, signNote } from '../../src/log/note.ts'
import { formatTilePath } from '../../src/log/tile.ts'
import { fromHex, toBase64, toHex } from './bytes.ts'
import { contentAfter, listedDevice, listSigner, signedList } from './device-lists.ts'
import { INDEX_KEYS, indexLookups } from './index-lookups.ts'
import { LyingLog, numberedKey } from './lying-log.ts'
import { ed25519Bases, p256Bases } from './verdict-curve-bases.ts'
import type { Json, Shape } from './verdict-edits.ts'
import type { NamedKeys } from './verdict-judges.ts'

/** The values of one kind of case, and how they may be changed. `share` of all random cases are of this kind. */
export interface Bases {
  readonly shape: Shape
  readonly share: number
  readonly values: Readonly<Record<string, Json>>
}

const ALICE = 3
const BOB = 7

/** Alice is leaf 3 and again 20, Bob leaf 7, Alice's list leaf 25. */
function honestLog(size: number): LyingLog {
  const log = new LyingLog()
  log.grow(ALICE)
  log.register(1n, 1n)
  log.grow(BOB)
  log.register(2n, 2n ** 32n + 5n)
  log.grow(20)
  log.register(1n, 1n)
  log.grow(25)
  log.register(1n, 0n, toBase64(deviceListHash(LISTS.first!)))
  log.grow(size)
  return log
}

const [w2, w3, w4] = [2, 3, 4].map(number =>
  witnessKeyFromSeed(`w${number}`, new Uint8Array(32).fill(number)),
) as [SignerKey, SignerKey, SignerKey]
const witnessLines = [w2, w3, w4].map(key => `witness ${key.name} ${formatWitnessKey(key)}\n`).join('')

const LISTS = deviceLists()
const log = honestLog(300)
const stranger = new LyingLog({ number: 2 })
const imitator = new LyingLog({ number: 3 })
const elsewhere = new LyingLog({ origin: 'other.example/kt' })
elsewhere.grow(5)
const forked = log.fork(20)
forked.register(66n, 6n)
forked.grow(300)

const INDEXED = new Map(indexLookups().cases.map(each => [each.name, each]))

export const NAMED_KEYS: NamedKeys = {
  plain: log.published,
  strange: { ...log.published, vrfPublicKey: stranger.published.vrfPublicKey },
  witnessed: {
    policy: `log ${log.published.vkey}\n${witnessLines}group two 2 w2 w3 w4\nquorum two\n`,
    vrfPublicKey: log.published.vrfPublicKey,
  },
  changing: {
    policy: `log ${imitator.published.vkey}\nlog ${log.published.vkey}\nquorum none\n`,
    vrfPublicKey: log.published.vrfPublicKey,
  },
  ...Object.fromEntries(['plain', 'witnessed', 'rebuilt'].map(name => [`index ${name}`, INDEX_KEYS[name]!])),
}

const alice = { userId: '1', deviceId: '1', vrfHash: log.leaf(ALICE).vrfHash }
const bob = { userId: '2', deviceId: `${2n ** 32n + 5n}`, vrfHash: log.leaf(BOB).vrfHash }

function textOf(note: string): string {
  return note.slice(0, note.indexOf('\n\n') + 1)
}

function cosigned(note: string, ...by: readonly (readonly [SignerKey, number])[]): string {
  return note + by.map(([witness, seconds]) => cosignatureLine(textOf(note), witness, seconds)).join('')
}

function signedText(text: string, ...signers: readonly SignerKey[]): string {
  return signNote(text, signers)
}

const emptyText = `${log.signer.name}\n0\n${toBase64(EMPTY_ROOT)}\n`
const extended = signedText(`${textOf(log.note(40))}one line\nü and another\n`, log.signer)
const byBoth = signedText(textOf(log.note(40)), imitator.signer, log.signer)
const seenByTwo = cosigned(log.note(40), [w2, 700], [w4, 900])

const NOTES: Readonly<Record<string, string>> = {
  whole: log.note(40),
  larger: log.note(300),
  one: log.note(1),
  cosigned: seenByTwo,
  'cosigned by three': cosigned(log.note(40), [w2, 700], [w4, 900], [w3, 800]),
  'cosigned twice by one': cosigned(log.note(40), [w2, 700], [w2, 800]),
  'cosigned on another text': log.note(40) + cosignatureLine('another text\n', w3, 800),
  extended,
  'by both keys': byBoth,
  'by the next key': signedText(textOf(log.note(40)), imitator.signer),
  empty: signedText(emptyText, log.signer),
  'empty with a root': signedText(emptyText.replace(toBase64(EMPTY_ROOT), toBase64(log.root(1))), log.signer),
  forked: forked.note(40),
  elsewhere: elsewhere.note(5),
  'elsewhere by this key': signedText(textOf(elsewhere.note(5)), log.signer),
  'no checkpoint': signedText(`${log.signer.name}\nis no checkpoint\n`, log.signer),
  'short root': signedText(`${log.signer.name}\n40\nAAAA\n`, log.signer),
  'size with a zero': signedText(textOf(log.note(40)).replace('\n40\n', '\n040\n'), log.signer),
  'size beyond': signedText(textOf(log.note(40)).replace('\n40\n', `\n${2 ** 53}\n`), log.signer),
}

const lookup = (keys: string, claim: Json, result: Json): Json => ({ keys, claim, result })

function lookups(): Record<string, Json> {
  const foreign = stranger.identity(1n, 1n)
  const path = log.path(ALICE, 40)
  return {
    alice: lookup('plain', { ...alice, publicKey: numberedKey(ALICE) }, log.result(ALICE, { treeSize: 40 })),
    again: lookup('plain', alice, log.result(20, { treeSize: 300 })),
    bob: lookup('plain', bob, log.result(BOB, { treeSize: 300 })),
    'alone in the tree': lookup('plain', { userId: '5', deviceId: '6' }, alone()),
    'at a power of two': lookup('plain', alice, log.result(ALICE, { treeSize: 32 })),
    list: lookup('plain', { userId: '1', deviceId: '0' }, log.result(25, { treeSize: 33 })),
    cosigned: lookup('witnessed', alice, log.result(ALICE, { note: seenByTwo, treeSize: 40 })),
    'by both keys': lookup('changing', alice, log.result(ALICE, { note: byBoth, treeSize: 40 })),
    extended: lookup('plain', alice, log.result(ALICE, { note: extended, treeSize: 40 })),
    'another key': lookup('plain', alice, log.result(ALICE, { publicKey: numberedKey(999), treeSize: 40 })),
    'the key of another': lookup('plain', alice, log.result(BOB, { treeSize: 40 })),
    'a strange proof': lookup('plain', alice, log.result(ALICE, { ...foreign, treeSize: 40 })),
    'under strange keys': lookup('strange', alice, log.result(ALICE, { ...foreign, treeSize: 40 })),
    'of another tree': lookup('plain', alice, log.result(ALICE, { note: forked.note(40), treeSize: 40 })),
    'a short path': lookup('plain', alice, log.result(ALICE, { path: path.slice(1), treeSize: 40 })),
    'a long path': lookup('plain', alice, log.result(ALICE, { path: [...path, path[0]!], treeSize: 40 })),
    'of no tree': lookup('plain', alice, log.result(ALICE, { index: 40, treeSize: 40 })),
    elsewhere: lookup('plain', alice, log.result(ALICE, { note: NOTES.elsewhere!, treeSize: 40 })),
  }
}

function alone() {
  const small = new LyingLog()
  small.register(5n, 6n)
  return small.result(0)
}

function histories(): Record<string, Json> {
  const first = log.history([ALICE], 40)
  const both = log.history([ALICE, 20], 40)
  const broken = both.entries.map((entry, at) =>
    at === 0
      ? entry
      : { ...entry, proof: log.result(20, { ...stranger.identity(1n, 1n), treeSize: 40 }).proof },
  )
  const of = (history: Json, claim: Json = alice): Json => ({ keys: 'plain', claim, history })
  return {
    one: of(first),
    both: of(both),
    late: of(log.history([ALICE, 20], 300)),
    bob: of(log.history([BOB], 300), bob),
    backwards: of({ ...both, entries: both.entries.toReversed() }),
    'two checkpoints': of({ ...both, entries: [first.entries[0]!, log.history([20], 39).entries[0]!] }),
    'a strange proof': of({ ...both, entries: broken }),
    'of another': of(both, bob),
    empty: of({ ...both, entries: [] }),
  }
}

/** Lists by a phone, a tablet and a laptop of user 1, each after the one that it names. */
function deviceLists(): Record<string, Uint8Array> {
  const device = (number: number) => {
    const signer = listSigner(`corpus ${number}`)
    const listed = listedDevice(2n ** 32n + BigInt(number), Uint8Array.of(number, 1, 2), signer)
    return { signer, listed: number === 3 ? { ...listed, algorithm: 'RSA-2048' as const } : listed }
  }
  const devices = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(device)
  const list = (
    numbers: readonly number[],
    by: number,
    previous?: { bytes: Uint8Array; seq: number },
    userId = 1n,
  ) => {
    const named = numbers.map(number => devices[number - 1]!.listed)
    const signerDeviceId = devices[by - 1]!.listed.deviceId
    const content = contentAfter(previous, { userId, devices: named, signerDeviceId })
    return signedList(content, devices[by - 1]!.signer)
  }
  const first = list([1], 1)
  const second = list([1, 2], 1, { bytes: first, seq: 0 })
  const third = list([2, 3], 2, { bytes: second, seq: 1 })
  return {
    first,
    second,
    third,
    'by a newcomer': list([1, 2], 2, { bytes: first, seq: 0 }),
    'started over': list([3], 3),
    jumped: list([1, 2], 1, { bytes: first, seq: 5 }),
    'after another': list([1, 3], 1, { bytes: third, seq: 0 }),
    ten: list([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 10, { bytes: first, seq: 0 }),
    'of another user': list([1], 1, undefined, 2n),
  }
}

function lists(): Record<string, Json> {
  const pairs: Record<string, Json> = {}
  for (const [name, next] of Object.entries(LISTS)) {
    pairs[name] = { userId: '1', next: toHex(next) }
    for (const before of ['first', 'second'])
      pairs[`${name} after ${before}`] = { userId: '1', previous: toHex(LISTS[before]!), next: toHex(next) }
  }
  return pairs
}

function consistencies(): Record<string, Json> {
  const values: Record<string, Json> = {}
  const { tree } = log.tiles
  for (const [oldSize, newSize] of [
    [0, 40],
    [1, 8],
    [4, 9],
    [6, 9],
    [7, 40],
    [32, 40],
    [33, 300],
    [40, 40],
    [255, 256],
    [256, 300],
  ] as const) {
    const proof = oldSize === 0 ? [] : tree.consistency(oldSize, newSize).map(toBase64)
    const roots = { oldRoot: toBase64(log.root(oldSize)), newRoot: toBase64(log.root(newSize)) }
    values[`${oldSize} to ${newSize}`] = { oldSize, newSize, ...roots, proof }
  }
  return values
}

async function tilePairs(): Promise<Record<string, Json>> {
  const values: Record<string, Json> = {}
  for (const [name, older, newer, served] of [
    ['honest', log, log, log],
    ['forked', forked, log, log],
    ['served of another', log, log, forked],
  ] as const) {
    for (const [oldSize, newSize] of [
      [0, 40],
      [7, 40],
      [40, 40],
      [30, 97],
      [250, 270],
    ] as const) {
      const tiles: Record<string, string> = {}
      const head = (of: LyingLog, treeSize: number) => ({ treeSize, rootHash: of.root(treeSize) })
      await consistencyFromTiles(
        async tile => {
          const bytes = served.tile(tile)
          tiles[formatTilePath(tile)] = toHex(bytes)
          return bytes
        },
        head(older, oldSize),
        head(newer, newSize),
      )
      const headIn = (of: LyingLog, treeSize: number) => ({ treeSize, rootHash: toBase64(of.root(treeSize)) })
      values[`${name}, ${oldSize} to ${newSize}`] = {
        older: headIn(older, oldSize),
        newer: headIn(newer, newSize),
        tiles,
      }
    }
  }
  return values
}

const checkpointOf = (of: LyingLog, treeSize: number) => ({
  origin: of.signer.name,
  treeSize,
  rootHash: toBase64(of.root(treeSize)),
  note: of.note(treeSize),
})

/** Those of `index-lookups.json` that hold. */
function indexes(): Record<string, Json> {
  const names = [
    'several entries, the newest shown',
    'no entry',
    'one entry, in the tail only',
    'the only leaf of the output log',
    'the quorum has cosigned',
    'a rebuilder has cosigned',
    'the tail is unread',
  ]
  return Object.fromEntries(
    names.map(name => {
      const { name: _, verdict: __, keys, ...claim } = INDEXED.get(name)!
      return [name, { keys: `index ${keys}`, ...claim } as unknown as Json]
    }),
  )
}

/** The bases of each kind of case. */
export async function allBases(): Promise<Readonly<Record<string, Bases>>> {
  const origin = log.signer.name
  const notes = (keys: string, members: Json = {}): Record<string, Json> =>
    Object.fromEntries(
      Object.entries(NOTES).map(([name, note]) => [
        `${name}, ${keys}`,
        { keys, ...(members as Record<string, Json>), note },
      ]),
    )
  const listHash = toBase64(deviceListHash(LISTS.first!))
  const callKey = fromHex('00112233445566778899aabbccddeeff'.repeat(2))
  const content = { callKey, setHash: fromHex('ff'.repeat(32)), sealedAtMs: 1_795_000_000_000 }
  const published = NAMED_KEYS as unknown as Readonly<Record<string, Json>>
  return {
    lookup: { shape: { fixed: ['keys'], loose: ['result'] }, share: 34, values: lookups() },
    history: { shape: { fixed: ['keys'], loose: ['history'] }, share: 14, values: histories() },
    checkpoint: {
      shape: { fixed: ['keys'] },
      share: 12,
      values: { ...notes('plain'), ...notes('changing') },
    },
    witnesses: {
      shape: { fixed: ['keys'] },
      share: 10,
      values: notes('witnessed', { nowMs: 760_000, maxAgeMs: 60_000 }),
    },
    comparison: {
      shape: { fixed: ['keys'] },
      share: 2,
      values: {
        same: { keys: 'plain', known: NOTES.whole!, seen: NOTES.cosigned! },
        smaller: { keys: 'plain', known: NOTES.larger!, seen: NOTES.whole! },
        larger: { keys: 'plain', known: NOTES.one!, seen: NOTES.whole! },
        fork: { keys: 'plain', known: NOTES.whole!, seen: NOTES.forked! },
      },
    },
    list: { shape: { fixed: ['userId', 'previous'], hex: ['next'] }, share: 12, values: lists() },
    ed25519: { shape: { hex: ['publicKey', 'message', 'signature'] }, share: 2, values: ed25519Bases() },
    p256: { shape: { hex: ['publicKey', 'message', 'signature'] }, share: 2, values: p256Bases() },
    keys: { shape: {}, share: 4, values: published },
    consistency: { shape: {}, share: 5, values: consistencies() },
    tiles: { shape: { hex: ['tiles'] }, share: 3, values: await tilePairs() },
    index: {
      shape: { fixed: ['keys', 'vrfHash', 'nowMs', 'maxIndexAgeMs', 'shown', 'tail'], loose: ['proof'] },
      share: 10,
      values: indexes(),
    },
    share: {
      shape: { fixed: ['origin'] },
      share: 2,
      values: {
        whole: { fragment: shareFragment({ userId: 7n, listHash }, checkpointOf(log, 40)), origin },
        'with the note of an index': {
          fragment: shareFragment({ userId: 7n, listHash }, checkpointOf(log, 40), {
            ...checkpointOf(log, 40),
            origin: log.index.signer.name,
            note: log.index.append(log).note(),
          }),
          origin,
        },
        'without a note': { fragment: shareFragment({ userId: 2n ** 64n - 1n, listHash }), origin },
        nothing: { fragment: '#top', origin },
      },
    },
    callKey: {
      shape: { fixed: ['origin'], hex: ['opened'] },
      share: 1,
      values: {
        whole: { opened: toHex(packCallKey(content, checkpointOf(log, 40))), origin },
        alone: { opened: toHex(packCallKey(content)), origin },
      },
    },
    code: {
      shape: { fixed: ['one', 'userId'] },
      share: 1,
      values: {
        two: {
          one: { userId: `${2n ** 53n - 1n}`, listHash },
          userId: '7',
          listHash: toBase64(new Uint8Array(32)),
        },
      },
    },
  }
}
