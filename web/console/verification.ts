/**
 * Checks the log as an app would, step by step, with `@callsign/sdk/client`: the checkpoint's signature, that the tree has
 * only grown since the checkpoint this page remembers, that an entry is in it, and the owner of its key. Everything
 * that the server says is verified but for the keys, because a page of the server has nothing better.
 */

import {
  compareCheckpoints,
  consistencyFromTiles,
  type DeviceToLookUp,
  type Identity,
  LogClient,
  type LogKeys,
  type LookupResult,
  leastOf,
  MemoryStore,
  type PublishedKeys,
  parseLogKeys,
  type Refusal,
  type SignedCheckpoint,
  treeHeadOf,
  verifyCheckpoint,
  verifyLookup,
} from '../../src/client/client.ts'
import { LogRequests } from '../../src/client/log-requests.ts'
import { messageOf } from '../../src/errors.ts'
import { encodeBase64 } from '../../src/log/base64.ts'
import { type Entry, parseEntry } from '../../src/log/entry.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { inclusionNodes, proveInclusion, verifyInclusion } from '../../src/log/inclusion.ts'
import {
  entryInBundle,
  formatTilePath,
  hashInTile,
  TILE_WIDTH,
  type Tile,
  tileOfNode,
  tileWidth,
} from '../../src/log/tile.ts'
import type { Node } from '../../src/log/tree.ts'
import { completenessWords } from '../shared/completeness.ts'

/** One step of the account. `open` marks a check that was not possible, which is no fault of the log. */
export interface Step {
  readonly name: string
  readonly verdict: 'holds' | 'fails' | 'open'
  readonly detail: string
  /** Two signed notes that contradict each other, the one known before first. */
  readonly evidence?: readonly [string, string]
}

export interface Question {
  readonly keys: PublishedKeys
  readonly remembered: SignedCheckpoint | undefined
  /** The leaf to look for; absent for the newest. */
  readonly leaf: number | undefined
  /** Possible owners of the key; the VRF proof says which of them has it. */
  readonly owners: readonly Identity[]
  /** Whether the one owner is claimed to be it: then that the key is another's fails the check. */
  readonly isOwnerNamed: boolean
  /** Hears of each step as it is done. */
  readonly onStep: (step: Step) => void
  /** Hears of each tile that is fetched. */
  readonly onTile: (path: string) => void
}

/** The checkpoint to remember, or undefined when an earlier step failed. Never rejects. */
export async function verifyLog(question: Question): Promise<SignedCheckpoint | undefined> {
  const { onStep } = question
  let checkpoint: SignedCheckpoint | undefined
  try {
    const keys = parseLogKeys(question.keys)
    onStep(holds('keys', `${keys.verifier.name}, and the key of its VRF`))
    const signed = await signedCheckpoint(keys, onStep)
    await holdAgainstRemembered(question, signed)
    checkpoint = signed
    if (signed.treeSize === 0)
      throw new Stopped(open('inclusion', 'the log has no entry yet: register a key'))
    const { index, entry } = await includedEntry(question, signed)
    await verifyOwner(keys, question, index, entry)
  } catch (error) {
    onStep(error instanceof Stopped ? error.step : open('answer', messageOf(error)))
  }
  return checkpoint
}

/** The step at which checking ends. */
class Stopped extends Error {
  readonly step: Step

  constructor(step: Step) {
    super(step.detail)
    this.step = step
  }
}

async function signedCheckpoint(keys: LogKeys, onStep: Question['onStep']): Promise<SignedCheckpoint> {
  const verdict = verifyCheckpoint(keys, await requests.checkpoint())
  if (verdict.kind === 'refused') throw new Stopped(failed(verdict))
  const { treeSize, origin } = verdict.checkpoint
  onStep(holds('signature', `${origin} signed tree size ${treeSize}`))
  return verdict.checkpoint
}

/** Throws `Stopped` when the log is not the one this page has seen before, or has been rewritten since. */
async function holdAgainstRemembered(question: Question, seen: SignedCheckpoint): Promise<void> {
  const { remembered, onStep } = question
  if (remembered === undefined) {
    onStep(
      open('consistency', `this page knew no checkpoint yet; from now on it knows that of ${seen.treeSize}`),
    )
    return
  }
  const evidence = [remembered.note, seen.note] as const
  const comparison = compareCheckpoints(remembered, seen)
  if (comparison.kind === 'refused') throw new Stopped(failed(comparison))
  if (comparison.kind === 'same') {
    onStep(
      holds('consistency', `tree size ${seen.treeSize} is the one this page remembers, with the same root`),
    )
    return
  }
  const [older, newer] = comparison.kind === 'larger' ? [remembered, seen] : [seen, remembered]
  const found = await consistencyFromTiles(tileSource(question), treeHeadOf(older), treeHeadOf(newer))
  if (found.kind === 'inconsistent') {
    // Tiles that lead to no signed root may be a cache's doing.
    if (found.check === 'tiles') throw new Stopped(open('tiles', found.detail))
    const detail = `the log is not an extension of what this page remembers: ${found.detail}`
    throw new Stopped({ name: found.check, verdict: 'fails', detail, evidence })
  }
  if (comparison.kind === 'smaller') {
    const detail = `tree size ${seen.treeSize} is the beginning of ${remembered.treeSize}, which this page has seen: an old answer`
    throw new Stopped(open('stale', detail))
  }
  const detail = `the tree of ${seen.treeSize} begins with that of ${remembered.treeSize}, by its tiles`
  onStep(holds('consistency', detail))
}

/** The entry of the leaf, once its way to the signed root has been followed. Throws `Stopped` otherwise. */
async function includedEntry(
  question: Question,
  checkpoint: SignedCheckpoint,
): Promise<{ readonly index: number; readonly entry: Entry }> {
  const { rootHash, treeSize } = treeHeadOf(checkpoint)
  const index = question.leaf ?? treeSize - 1
  if (index >= treeSize)
    throw new Stopped(open('inclusion', `leaf ${index} is not in a tree of size ${treeSize}`))
  const bytes = await entryBytes(question, index, treeSize)
  const tiles = await tilesOf(question, inclusionNodes(index, treeSize), treeSize)
  const path = proveInclusion(index, treeSize, nodes =>
    nodes.map(node => hashInTile(tiles.get(keyOf(node))!, node)),
  )
  try {
    verifyInclusion({ leafHash: hashLeaf(bytes), index, treeSize, path, rootHash })
  } catch (error) {
    throw new Stopped({ name: 'inclusion', verdict: 'fails', detail: messageOf(error) })
  }
  question.onStep(holds('inclusion', `leaf ${index} leads by ${path.length} hashes to the signed root`))
  return { index, entry: parseEntry(bytes) }
}

/** Asks for the key under the entry's hash: which of the owners has it, and whether it is their newest. */
async function verifyOwner(keys: LogKeys, question: Question, index: number, entry: Entry): Promise<void> {
  const { owners, isOwnerNamed, onStep } = question
  const vrfHash = encodeBase64(entry.vrfHash)
  const answer = (await requests.post('api/get-public-keys', { targets: [{ publicKeyHash: vrfHash }] })) as {
    readonly results: readonly LookupResult[]
  }
  const [result] = answer.results
  let refusal: Refusal | undefined
  for (const owner of owners) {
    const verdict = verifyLookup(keys, { ...owner, vrfHash }, result!)
    if (verdict.kind === 'verified') {
      const newer = verdict.index === index ? '' : `; its newest key is leaf ${verdict.index}`
      onStep(holds('owner', `the VRF proof holds for ${owner.userId}_${owner.deviceId}${newer}`))
      if (keys.index !== undefined) await verifyNewest(question, { ...owner, vrfHash })
      return
    }
    refusal = verdict
    // Another device's key is an answer too, as long as owners are left to try.
    if (verdict.check !== 'vrf') throw new Stopped(failed(verdict))
  }
  if (isOwnerNamed && refusal !== undefined) throw new Stopped(failed(refusal))
  onStep(open('owner', whyNobody(owners.length)))
}

/** Whether the index proves that the device's key is the newest one. */
async function verifyNewest({ keys, onStep }: Question, device: DeviceToLookUp): Promise<void> {
  const store = new MemoryStore()
  const client = new LogClient({ ...keys, url: location.origin, store })
  const outcome = await client.lookUp(device)
  if (outcome.kind === 'refused') throw new Stopped(failed(outcome))
  if (outcome.kind === 'unanswered') return onStep(open('completeness', outcome.detail))
  const step = outcome.complete === true ? holds : open
  onStep(step('completeness', completenessWords(leastOf([outcome]))))
}

function whyNobody(owners: number): string {
  if (owners === 0)
    return 'name a device, as user_device, to check whose key it is: the entry itself does not tell'
  return `the key is of no connected device (${owners} tried): name its device, as user_device, to check the VRF proof`
}

/** Reads tiles, each once in a verification. */
function tileSource({ onTile }: Question): (tile: Tile) => Promise<Uint8Array> {
  return tile => {
    onTile(formatTilePath(tile))
    return requests.tile(tile)
  }
}

async function tilesOf(question: Question, nodes: readonly Node[], treeSize: number) {
  const fetchTile = tileSource(question)
  const tiles = new Map<string, Promise<Uint8Array>>()
  for (const node of nodes) {
    const { level, index } = tileOfNode(node)
    if (!tiles.has(keyOf(node)))
      tiles.set(keyOf(node), fetchTile({ level, index, width: tileWidth(level, index, treeSize) }))
  }
  const fetched = await Promise.all([...tiles].map(async ([key, bytes]) => [key, await bytes] as const))
  return new Map(fetched)
}

function keyOf(node: Node): string {
  const { level, index } = tileOfNode(node)
  return `${level}/${index}`
}

async function entryBytes(question: Question, index: number, treeSize: number): Promise<Uint8Array> {
  const bundle = Math.floor(index / TILE_WIDTH)
  const width = tileWidth('entries', bundle, treeSize)
  const bytes = await tileSource(question)({ level: 'entries', index: bundle, width })
  return entryInBundle(bytes, index % TILE_WIDTH)
}

function holds(name: string, detail: string): Step {
  return { name, verdict: 'holds', detail }
}

function open(name: string, detail: string): Step {
  return { name, verdict: 'open', detail }
}

function failed({ check, detail, evidence }: Refusal): Step {
  return { name: check, verdict: 'fails', detail, ...(evidence === undefined ? {} : { evidence }) }
}

const requests = new LogRequests(location.origin, (url, init) => fetch(url, init), 10_000)
