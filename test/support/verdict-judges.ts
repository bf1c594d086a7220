/** The verdict of `@callsign/sdk/client` on a case of the corpus, in one text that another implementation can give too. */
import {
  compareCheckpoints,
  comparisonCode,
  type HistoryClaim,
  type KeyHistory,
  type LogKeys,
  type LookupClaim,
  type LookupResult,
  type PublishedKeys,
  type PublishedPolicy,
  parseLogKeys,
  type Refusal,
  readCallKey,
  readShareFragment,
  verifyCheckpoint,
  verifyKeyHistory,
  verifyLookup,
  verifyWitnesses,
} from '../../src/client/client.ts'
import { consistencyFromTiles } from '../../src/client/tile-consistency.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { judgeDeviceList } from '../../src/log/device-list.ts'
import * as node from '../../src/log/primitives-node.ts'
import * as portable from '../../src/log/primitives-portable.ts'
import { formatTilePath } from '../../src/log/tile.ts'
import { fromHex, toHex } from './bytes.ts'
import { codeOf } from './codes.ts'
import { type IndexClaim, verdictOn } from './index-lookups.ts'
import type { Json } from './verdict-edits.ts'

/** The keys of the logs of a corpus, by name. */
export type NamedKeys = Readonly<Record<string, PublishedKeys | PublishedPolicy>>

type Members = { readonly [member: string]: Json }
type Judge = (value: Members, keysOf: (name: string) => LogKeys) => string | Promise<string>

/** By the kind of case. Each throws only for a defect. */
export const JUDGES: Readonly<Record<string, Judge>> = {
  lookup({ keys, claim, result }, keysOf) {
    const asked = claim as unknown as LookupClaim
    const verify = () => verifyLookup(keysOf(keys as string), asked, result as unknown as LookupResult)
    return ofIds(() =>
      outcome(verify(), ({ index, checkpoint }) => `verified ${index} of ${checkpoint.treeSize}`),
    )
  },
  history({ keys, claim, history }, keysOf) {
    const asked = claim as unknown as HistoryClaim
    const verify = () => verifyKeyHistory(keysOf(keys as string), asked, history as unknown as KeyHistory)
    return ofIds(() =>
      outcome(verify(), ({ entries }) => `verified ${entries.map(({ index }) => index).join(' ')}`),
    )
  },
  checkpoint({ keys, note }, keysOf) {
    const verdict = verifyCheckpoint(keysOf(keys as string), note as string)
    return outcome(verdict, ({ checkpoint: { treeSize, rootHash } }) => `verified ${treeSize} ${rootHash}`)
  },
  witnesses({ keys, note, nowMs, maxAgeMs }, keysOf) {
    const freshness = { nowMs: nowMs as number, maxAgeMs: maxAgeMs as number }
    const verdict = verifyWitnesses(keysOf(keys as string), note as string, freshness)
    return outcome(verdict, ({ atMs }) => `witnessed ${atMs ?? 'by none'}`)
  },
  comparison({ keys, known, seen }, keysOf) {
    const [one, other] = [known, seen].map(note => verifyCheckpoint(keysOf(keys as string), note as string))
    if (one!.kind === 'refused' || other!.kind === 'refused') return 'not two checkpoints'
    return outcome(compareCheckpoints(one!.checkpoint, other!.checkpoint), ({ kind }) => kind)
  },
  list({ userId, previous, next }) {
    const before = typeof previous === 'string' ? fromHex(previous) : undefined
    const verdict = judgeDeviceList(BigInt(userId as string), before, fromHex(next as string))
    return verdict.kind === 'refused' ? verdict.reason : verdict.kind
  },
  ed25519({ publicKey, message, signature }) {
    return signatureText(each => each.ed25519Verify, [publicKey, message, signature])
  },
  p256({ publicKey, message, signature }) {
    return signatureText(each => each.p256Verify, [publicKey, message, signature])
  },
  keys(value) {
    return codeOf(() => parseLogKeys(value as unknown as PublishedKeys))
  },
  consistency({ oldSize, oldRoot, newSize, newRoot, proof }) {
    return codeOf(() =>
      verifyConsistency({
        oldSize: oldSize as number,
        oldRoot: node.decodeBase64(oldRoot as string),
        newSize: newSize as number,
        newRoot: node.decodeBase64(newRoot as string),
        proof: (proof as string[]).map(node.decodeBase64),
      }),
    )
  },
  async tiles({ older, newer, tiles }) {
    const headOf = ({ treeSize, rootHash }: Members) => ({
      treeSize: treeSize as number,
      rootHash: node.decodeBase64(rootHash as string),
    })
    const bytesOf = (tiles ?? {}) as Record<string, string>
    const fetchTile = async (tile: Parameters<typeof formatTilePath>[0]) =>
      fromHex(bytesOf[formatTilePath(tile)] ?? '')
    try {
      const found = await consistencyFromTiles(fetchTile, headOf(older as Members), headOf(newer as Members))
      return found.kind === 'consistent' ? found.kind : found.check
    } catch (error) {
      return (error as { code: string }).code
    }
  },
  index({ keys, ...claim }, keysOf) {
    return verdictOn(keysOf(keys as string), claim as unknown as IndexClaim)
  },
  share({ fragment, origin }) {
    return result(() => {
      const person = readShareFragment(fragment as string, origin as string)
      if (person === undefined) return 'nothing'
      const index = person.indexNote === undefined ? '' : ` ${person.indexNote}`
      return `${person.userId} ${person.listHash} ${person.note ?? '-'}${index}`
    })
  },
  callKey({ opened, origin }) {
    return result(() => {
      const read = readCallKey(fromHex(opened as string), origin as string)
      const { callKey, setHash, sealedAtMs, note } = read
      return `${toHex(callKey)} ${toHex(setHash)} ${sealedAtMs} ${note ?? '-'}`
    })
  },
  code({ one, ...other }) {
    const personOf = ({ userId, listHash }: Members) => ({
      userId: BigInt(userId as string),
      listHash: listHash as string,
    })
    return result(() => comparisonCode(personOf(one as Members), personOf(other)))
  },
}

/** By Node's library and by the portable code, which have to agree. */
function signatureText(
  verifyOf: (primitives: typeof node | typeof portable) => typeof node.p256Verify,
  hexes: readonly (Json | undefined)[],
): string {
  const [publicKey, message, signature] = hexes.map(hex => fromHex(hex as string))
  const holds = [node, portable].map(each => verifyOf(each)(publicKey!, message!, signature!))
  if (holds[0] !== holds[1]) return 'the two builds disagree'
  return holds[0] ? 'holds' : 'does not hold'
}

function ofIds(act: () => string): string {
  try {
    return act()
  } catch (error) {
    if (error instanceof RangeError) return 'no id'
    throw error
  }
}

function outcome<Held extends { readonly kind: string }>(
  verdict: Held | Refusal,
  held: (verdict: Held) => string,
) {
  return verdict.kind === 'refused' ? (verdict as Refusal).check : held(verdict as Held)
}

function result(act: () => string): string {
  let text = ''
  const code = codeOf(() => {
    text = act()
  })
  return code === 'none' ? text : code
}
