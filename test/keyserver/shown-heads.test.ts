/** The heads of an index that a node has shown, where the index is begun anew with another key. */

import t from 'tap'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { ShownHeads } from '../../src/keyserver/shown-heads.ts'
import { type LogHead, signCheckpoint } from '../../src/log/checkpoint.ts'
import { type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { INDEX_SIGNER } from '../support/filled-index.ts'

const NEW = signerKeyFromSeed(INDEX_SIGNER.name, Buffer.alloc(32, 53))
const NOTHING = { head: () => undefined, readHashes: () => [] }

function headOf(treeSize: number, signer: SignerKey): LogHead {
  return { treeSize, checkpoint: signCheckpoint({ treeSize, rootHash: Buffer.alloc(32, treeSize) }, signer) }
}

t.test('a head of the earlier key is neither recorded nor in the way of the new one', async t => {
  const folder = t.testdir()
  const open = (signer: SignerKey) => ShownHeads.open(folder, undefined, signer, INDEX_LOG)
  await open(INDEX_SIGNER).record(headOf(30, INDEX_SIGNER))
  t.throws(() => open(INDEX_SIGNER).assertExtendedBy(NOTHING), { code: 'CHECKPOINT_INVALID' })
  const heads = open(NEW)
  // The copy of a node still has the earlier index.
  await heads.record(headOf(30, INDEX_SIGNER))
  heads.assertExtendedBy(NOTHING)
  await heads.record(headOf(1, NEW))
  t.throws(() => heads.assertExtendedBy(NOTHING), { message: /shown its checkpoint of 1/ })
  t.throws(() => open(NEW).assertExtendedBy(NOTHING), { message: /shown its checkpoint of 1/ })
})
