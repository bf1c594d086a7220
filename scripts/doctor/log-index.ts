/** The index of the log: whether there is one, how far its map goes, and whether readers get a checkpoint of it. */

import { keyMissing, prospectOf } from '../../src/keyserver/index/index-opening.ts'
import type { IndexState } from '../../src/keyserver/index/index-tables.ts'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { readRestoreMarker } from '../../src/keyserver/restore-marker.ts'
import { openCheckpoint } from '../../src/log/checkpoint.ts'
import { formatVerifierKey, type SignerKey, type VerifierKey } from '../../src/log/note.ts'
import type { Config } from '../../src/server/settings/config.ts'
import { type Finding, fails, off, ok, reasonOf } from './finding.ts'
import { ask } from './http.ts'

/** The index as the doctor finds it in the store. */
export interface StoredIndex {
  readonly state: IndexState
  /** Leaves that are signed; the last one may not be shown yet. */
  readonly signedSize: number
  /** The note of the shown checkpoint; undefined before the first leaf. */
  readonly shown: string | undefined
}

/** The keys of the index in the settings; the first one is shown to clients. */
export type IndexSigners = readonly SignerKey[]

/** The index in the store; `headNote` is what the head file of its output log holds. */
export function judgeIndex(
  { isDevelopment, dataFolder, log: { isFrozen } }: Config,
  origin: string,
  [signer, ...others]: IndexSigners,
  store: {
    readonly index: StoredIndex | undefined
    readonly treeSize: number
    readonly headNote: string | undefined
  },
): Finding {
  if (signer === undefined) {
    // A new key would begin another index, which apps that know this one refuse.
    if (store.index !== undefined) return fails('index', keyMissing(store.index.state.vkey))
    return off(
      'index',
      isDevelopment
        ? 'nobody made a key for it in this folder: a new folder gets one'
        : `set KT_INDEX_PRIVATE_KEY, so that lookups prove that they are complete: \`keygen --index --origin ${origin}\` makes it`,
    )
  }
  const vkey = formatVerifierKey(signer)
  if (store.index === undefined) return ok('index', `${vkey}: will be built when the server starts`)
  const { state, shown } = store.index
  const prospect = prospectOf(state, [signer, ...others])
  if (prospect === 'is held')
    return fails(
      'index',
      'will be held: KT_INDEX_PRIVATE_KEY or the second key has signed an earlier index of this log; make another key with `keygen --index`',
    )
  const marker = readRestoreMarker(dataFolder, INDEX_LOG)
  if (prospect === 'begins anew' && (marker === undefined || isFrozen)) return judgeNewKey(vkey, state)
  const recorded = store.headNote === undefined ? undefined : leavesIn(store.headNote, [signer, ...others])
  const { signedSize } = store.index
  if (recorded !== undefined && recorded > signedSize) {
    return fails(
      'index',
      `its head file has signed ${recorded} leaves, the store holds ${signedSize}: it is an older copy; put the newest one there`,
    )
  }
  // As on the server: the head file answers, and a frozen log is not asked.
  if (marker !== undefined && recorded === undefined && !isFrozen) {
    return fails(
      'index',
      `was restored from ${marker.backup}: start once with ${INDEX_LOG.knownFlag} FILE, its newest checkpoint that anybody has seen`,
    )
  }
  if (state.isHeld) {
    return fails(
      'index',
      `is held, so lookups come without its proofs: the line index-held in the server's log says why and what to do`,
    )
  }
  if (shown === undefined) {
    return ok('index', `${vkey}: is being built, ${state.entries} of ${store.treeSize} entries`)
  }
  if (leavesIn(shown, [signer, ...others]) === undefined)
    return fails(
      'index',
      `the checkpoint in the store is not signed by ${state.vkey}: look with fsck, and restore a backup`,
    )
  const behind = store.treeSize - state.entries
  if (behind > BEHIND_MAX) {
    return fails(
      'index',
      `is ${behind} entries behind the log: look for lines index- and witness- in the server's log`,
    )
  }
  return ok('index', `${vkey} has ${state.leaves} leaves, over ${state.entries} of ${store.treeSize} entries`)
}

/** A key that the index in the store does not have begins a new index. */
function judgeNewKey(vkey: string, { vkey: stored, leaves }: IndexState): Finding {
  if (leaves === 0)
    return ok('index', `${vkey}: will be begun anew, since the one in the store is of ${stored}`)
  return fails(
    'index',
    `the next start throws away the index in the store, since ${vkey} is not its key, and apps that know it refuse the new one: unless ${stored} is lost, put that key back, or change it in steps`,
  )
}

/** Whether clients that come by the public address find the index. */
export async function checkServedIndex(publicUrl: string, signers: IndexSigners): Promise<Finding> {
  const url = `${publicUrl}/index/checkpoint`
  const check = 'index served'
  try {
    const { status, text } = await ask({ skews: [] }, url)
    const [{ name }] = signers as [SignerKey]
    if (status === 503) return off(check, `${url} answers 503: start the server, and wait until it is built`)
    if (status !== 200)
      return fails(check, `${url} answers ${status}: have the proxy pass on everything below /index/`)
    const leaves = leavesIn(text, signers)
    return leaves === undefined
      ? fails(check, `${url} is not a checkpoint of ${name}: where does it lead?`)
      : ok(check, `${url} is signed, of ${leaves} leaves`)
  } catch (error) {
    return fails(check, `${url} can't be reached from here (${reasonOf(error)})`)
  }
}

function leavesIn(note: string, keys: readonly VerifierKey[]): number | undefined {
  for (const key of keys) {
    try {
      return openCheckpoint(note, key).treeSize
    } catch {
      // It may be signed by the other key alone.
    }
  }
  return undefined
}

/** A step takes as many; after the first one the next follows at once. */
const BEHIND_MAX = 8_192
